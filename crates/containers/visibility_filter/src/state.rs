//! The data that the hooks need. It is set once, before the first hook is installed.

use core::sync::atomic::{AtomicPtr, Ordering};

use crate::payload::Payload;

/// The number of hooked functions of `win32u`.
pub(crate) const ADAPTER_FUNCTIONS: usize = 6;

/// The payload and the functions that the hooks replaced.
pub(crate) struct State {
    pub(crate) payload: Payload,
    /// The trampolines of `win32u`'s functions, in the order of `adapters::hooks`; 0 for a
    /// function that this Windows does not have.
    pub(crate) adapters: [usize; ADAPTER_FUNCTIONS],
    /// `NtGdiDdDDICloseAdapter` and `NtGdiDdDDIQueryAdapterInfo`.
    pub(crate) close_adapter: usize,
    pub(crate) query_adapter: usize,
    /// The trampoline of `NtCreateUserProcess`.
    pub(crate) create_process: usize,
}

static STATE: AtomicPtr<State> = AtomicPtr::new(core::ptr::null_mut());

/// Sets the state. It is never freed.
pub(crate) fn set(state: *mut State) {
    STATE.store(state, Ordering::Release);
}

/// The state, which every hook finds.
pub(crate) fn get() -> Option<&'static State> {
    // SAFETY: `set` is called once with a complete value that nobody changes or frees.
    unsafe { STATE.load(Ordering::Acquire).as_ref() }
}
