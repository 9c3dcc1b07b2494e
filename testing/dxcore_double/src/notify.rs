//! Notifications: who registered for what, and the thread that calls them.
//!
//! As documented: each callback comes from a thread of its own kind, at most once
//! a registration, at once if the condition already holds; unregistering waits for
//! a callback that is running, except from within it; and an object that is
//! destroyed while registered ends the process.
#![allow(unsafe_code, reason = "callbacks are foreign functions")]

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::process;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use windows::Win32::Graphics::DXCore::DXCoreNotificationType;
use windows::core::{IUnknown, Interface, Ref};

use crate::adapter::AdapterState;
use crate::list::ListState;

/// How often the conditions are looked at while anybody waits for one. A double may
/// poll; it adds at most this to the time a change takes.
const INTERVAL: Duration = Duration::from_millis(5);

/// How many registrations an object has.
#[derive(Default)]
pub(crate) struct Registrations(AtomicUsize);

impl Registrations {
    /// Called when the last reference to the object is released.
    pub(crate) fn object_is_destroyed(&self, what: &str) {
        if self.0.load(Ordering::SeqCst) > 0 {
            eprintln!(
                "dxcore double: {what} was destroyed before its notifications were unregistered"
            );
            process::abort();
        }
    }
}

/// The object whose condition is waited for.
pub(crate) enum Watched {
    List(Arc<ListState>),
    Adapter(Arc<AdapterState>),
}

impl Watched {
    fn has_happened(&self) -> bool {
        match self {
            Watched::List(list) => list.is_stale(),
            Watched::Adapter(adapter) => !adapter.is_valid(),
        }
    }

    fn registrations(&self) -> &AtomicUsize {
        match self {
            Watched::List(list) => &list.registrations.0,
            Watched::Adapter(adapter) => &adapter.registrations.0,
        }
    }
}

type Function = unsafe extern "system" fn(DXCoreNotificationType, Ref<IUnknown>, *const c_void);

/// What the caller wants to be called with.
#[derive(Clone, Copy)]
pub(crate) struct Callback {
    function: Function,
    kind: DXCoreNotificationType,
    object: *mut c_void,
    context: *const c_void,
}

// SAFETY: DXCore's contract is that callbacks are called from its threads, so function
// and context are fit for that; `object` is only passed on.
unsafe impl Send for Callback {}

impl Callback {
    pub(crate) fn new(
        function: Function,
        kind: DXCoreNotificationType,
        object: &IUnknown,
        context: *const c_void,
    ) -> Callback {
        Callback { function, kind, object: object.as_raw(), context }
    }

    fn call(self) {
        // SAFETY: an object lives until its registrations are gone, and unregistering
        // waits for this call, so the pointer is that of a live object. A `Ref` is
        // such a pointer, borrowed.
        let object: Ref<IUnknown> = unsafe { std::mem::transmute_copy(&self.object) };
        // SAFETY: the caller registered this function for being called so.
        unsafe { (self.function)(self.kind, object, self.context) }
    }
}

struct Registration {
    watched: Watched,
    /// Taken when it is called, which is once.
    callback: Option<Callback>,
}

#[derive(Default)]
struct Board {
    last_cookie: u32,
    registrations: BTreeMap<u32, Registration>,
    /// The registration that is being called, and by which thread.
    running: Option<(u32, ThreadId)>,
    has_thread: bool,
}

static BOARD: LazyLock<(Mutex<Board>, Condvar)> = LazyLock::new(Default::default);

fn board() -> MutexGuard<'static, Board> {
    BOARD.0.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wait(board: MutexGuard<'static, Board>, time: Duration) -> MutexGuard<'static, Board> {
    BOARD.1.wait_timeout(board, time).unwrap_or_else(PoisonError::into_inner).0
}

/// Registers `callback` and returns its cookie.
pub(crate) fn register(watched: Watched, callback: Callback) -> u32 {
    watched.registrations().fetch_add(1, Ordering::SeqCst);
    let mut board = board();
    board.last_cookie += 1;
    let cookie = board.last_cookie;
    board.registrations.insert(cookie, Registration { watched, callback: Some(callback) });
    if !board.has_thread {
        board.has_thread = true;
        thread::spawn(watch);
    }
    cookie
}

/// Takes the registration back; false where there is none with this cookie.
pub(crate) fn unregister(cookie: u32) -> bool {
    let mut board = board();
    let Some(registration) = board.registrations.remove(&cookie) else { return false };
    let me = thread::current().id();
    while board.running.is_some_and(|(running, thread)| running == cookie && thread != me) {
        board = wait(board, INTERVAL);
    }
    drop(board);
    registration.watched.registrations().fetch_sub(1, Ordering::SeqCst);
    true
}

/// The thread: calls who is due, for as long as anybody is registered.
fn watch() {
    let me = thread::current().id();
    let mut board = board();
    loop {
        let due = board.registrations.iter_mut().find_map(|(cookie, registration)| {
            let due = registration.callback.is_some() && registration.watched.has_happened();
            due.then(|| registration.callback.take().map(|callback| (*cookie, callback)))?
        });
        if let Some((cookie, callback)) = due {
            board.running = Some((cookie, me));
            drop(board);
            callback.call();
            board = self::board();
            board.running = None;
            BOARD.1.notify_all();
        } else if board.registrations.is_empty() {
            board.has_thread = false;
            return;
        } else {
            board = wait(board, INTERVAL);
        }
    }
}
