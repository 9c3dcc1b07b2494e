//! Notifications: the registrations, and the thread that calls their callbacks.
//!
//! The behavior is the documented one. Callbacks run on a separate thread, at most once
//! for each registration, and immediately if the condition already holds. Unregistering
//! waits for a running callback, except when the callback itself unregisters. If an
//! object is destroyed while it is registered, the process aborts.
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

/// How often the conditions are checked while there are registrations. Polling is
/// acceptable in a test double; it delays a notification by at most this time.
const INTERVAL: Duration = Duration::from_millis(5);

/// An object whose change a caller can register for.
pub(crate) trait Observable: Send + Sync {
    /// Whether the condition of the notification holds. Once true, it stays true.
    fn has_changed(&self) -> bool;
    /// The number of registrations of the object.
    fn registrations(&self) -> &RegistrationCount;
}

/// The number of registrations of an object.
#[derive(Default)]
pub(crate) struct RegistrationCount(AtomicUsize);

impl RegistrationCount {
    /// Aborts the process if the object is still registered, as `DXCore` does. Called
    /// when the last reference to the object is released.
    pub(crate) fn object_is_destroyed(&self, what: &str) {
        if self.0.load(Ordering::SeqCst) > 0 {
            eprintln!(
                "dxcore double: {what} was destroyed before its notifications were unregistered"
            );
            process::abort();
        }
    }
}

/// Whether a cookie belonged to a registration.
pub(crate) enum Registered {
    Yes,
    No,
}

type Function = unsafe extern "system" fn(DXCoreNotificationType, Ref<IUnknown>, *const c_void);

/// A callback function and its arguments.
#[derive(Clone, Copy)]
pub(crate) struct Callback {
    function: Function,
    kind: DXCoreNotificationType,
    object: *mut c_void,
    context: *const c_void,
}

// SAFETY: DXCore documents that it calls callbacks on its own threads, so callers pass
// a function and a context that allow it. `object` is only passed on.
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
        // SAFETY: an object lives at least as long as its registrations, and unregistering
        // waits for this call, so the pointer refers to a live object. A `Ref` is a
        // borrowed pointer of this kind.
        let object: Ref<IUnknown> = unsafe { std::mem::transmute_copy(&self.object) };
        // SAFETY: the caller registered this function to be called with these arguments.
        unsafe { (self.function)(self.kind, object, self.context) }
    }
}

struct Registration {
    observed: Arc<dyn Observable>,
    /// `None` after the callback was called, because it is called only once.
    callback: Option<Callback>,
}

#[derive(Default)]
struct Registry {
    last_cookie: u32,
    registrations: BTreeMap<u32, Registration>,
    /// The registration whose callback is running, and the thread that runs it.
    running: Option<(u32, ThreadId)>,
    has_thread: bool,
}

static REGISTRY: LazyLock<(Mutex<Registry>, Condvar)> = LazyLock::new(Default::default);

fn lock_registry() -> MutexGuard<'static, Registry> {
    REGISTRY.0.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wait(registry: MutexGuard<'static, Registry>, time: Duration) -> MutexGuard<'static, Registry> {
    REGISTRY.1.wait_timeout(registry, time).unwrap_or_else(PoisonError::into_inner).0
}

/// Registers `callback` and returns its cookie.
pub(crate) fn register(observed: Arc<dyn Observable>, callback: Callback) -> u32 {
    observed.registrations().0.fetch_add(1, Ordering::SeqCst);
    let mut registry = lock_registry();
    registry.last_cookie += 1;
    let cookie = registry.last_cookie;
    registry.registrations.insert(cookie, Registration { observed, callback: Some(callback) });
    if !registry.has_thread {
        registry.has_thread = true;
        thread::spawn(notify_until_empty);
    }
    cookie
}

/// Removes the registration with this cookie.
pub(crate) fn unregister(cookie: u32) -> Registered {
    let mut registry = lock_registry();
    let Some(registration) = registry.registrations.remove(&cookie) else { return Registered::No };
    let me = thread::current().id();
    while registry.running.is_some_and(|(running, thread)| running == cookie && thread != me) {
        registry = wait(registry, INTERVAL);
    }
    drop(registry);
    registration.observed.registrations().0.fetch_sub(1, Ordering::SeqCst);
    Registered::Yes
}

/// Runs on the notification thread: calls due callbacks until no registration is left.
fn notify_until_empty() {
    let me = thread::current().id();
    let mut registry = lock_registry();
    loop {
        let due = registry.registrations.iter_mut().find_map(|(cookie, registration)| {
            let due = registration.callback.is_some() && registration.observed.has_changed();
            due.then(|| registration.callback.take().map(|callback| (*cookie, callback)))?
        });
        if let Some((cookie, callback)) = due {
            registry.running = Some((cookie, me));
            drop(registry);
            callback.call();
            registry = lock_registry();
            registry.running = None;
            REGISTRY.1.notify_all();
        } else if registry.registrations.is_empty() {
            registry.has_thread = false;
            return;
        } else {
            registry = wait(registry, INTERVAL);
        }
    }
}
