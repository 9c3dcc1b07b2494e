//! The table of instances and the handles that C code holds.
//!
//! A handle has the type of a pointer but is a number. A number is never used twice and is
//! never a valid address. The library can therefore detect an invalid or destroyed instance
//! without reading memory that may be freed.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::instance::{CallError, Instance};

/// An instance, as C code holds it.
pub(crate) type Handle = *mut c_void;

static TABLE: Mutex<Table> = Mutex::new(Table { next: FIRST, instances: BTreeMap::new() });

struct Table {
    next: usize,
    instances: BTreeMap<usize, Arc<Mutex<Instance>>>,
}

/// The first handle. Neither x64 nor Arm has 64-bit addresses with these upper bits.
const FIRST: usize = 0x4458_0000_0000_0001;

/// Adds an instance to the table.
pub(crate) fn add(instance: Instance) -> Handle {
    let mut table = lock(&TABLE);
    let number = table.next;
    table.next += 1;
    table.instances.insert(number, Arc::new(Mutex::new(instance)));
    ptr::without_provenance_mut(number)
}

/// Removes an instance. It is dropped after the calls that use it have returned.
pub(crate) fn remove(handle: Handle) {
    let removed = lock(&TABLE).instances.remove(&handle.addr());
    // Dropping the instance unregisters its notifications, which may wait for a callback.
    // The table must not be locked during that time.
    drop(removed);
}

/// Runs `function` on an instance. If it fails or panics, the instance keeps the error and
/// the result is `None`, as for a handle without an instance.
pub(crate) fn call<T>(
    handle: Handle,
    function: impl FnOnce(&mut Instance) -> Result<T, CallError>,
) -> Option<T> {
    let instance = find(handle)?;
    let mut locked = lock(&instance);
    let outcome = catch_unwind(AssertUnwindSafe(|| function(&mut locked)))
        .unwrap_or_else(|panic| Err(CallError::Panic(panic_message(&*panic))));
    locked.conclude(outcome)
}

/// Reads from an instance without changing its last error.
pub(crate) fn inspect<T>(handle: Handle, read: impl FnOnce(&Instance) -> T) -> Option<T> {
    let instance = find(handle)?;
    let locked = lock(&instance);
    Some(read(&locked))
}

fn find(handle: Handle) -> Option<Arc<Mutex<Instance>>> {
    lock(&TABLE).instances.get(&handle.addr()).cloned()
}

/// Locks a mutex even if it is poisoned. The value is consistent after a panic, because each
/// call first computes new parts of an instance and then replaces the old ones.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

    use host::{AdapterSource, ChangeCallback, HostSnapshot, SourceError};

    use super::*;

    /// A source with one adapter, whose LUID each test sets. It does not support
    /// notifications, and it panics if the LUID is negative.
    struct TestSource(&'static AtomicI64);

    impl AdapterSource for TestSource {
        fn snapshot(&mut self) -> Result<HostSnapshot, SourceError> {
            let luid = self.0.load(Ordering::Relaxed);
            assert!(luid >= 0, "negative LUID");
            let adapter = host::Adapter {
                luid: host::Luid(luid),
                attributes: host::Attributes::default(),
                hardware: false,
                integrated: false,
                detachable: false,
                indirect_display: false,
                hardware_id: host::HardwareId::default(),
                driver_description: String::new(),
                driver_version: None,
                dedicated_memory_mib: None,
                load: None,
                nvidia: host::NvidiaFacts::default(),
                pnp: None,
                driver_store: None,
            };
            Ok(HostSnapshot { adapters: vec![adapter], ..HostSnapshot::default() })
        }

        fn watch(&mut self, _: ChangeCallback) -> Result<(), SourceError> {
            Err("notifications are unavailable".into())
        }
    }

    fn discover(handle: Handle) -> Option<()> {
        call(handle, |i| i.discover(0, true, true))
    }

    #[test]
    fn without_notifications_a_refresh_is_always_required() {
        static LUID: AtomicI64 = AtomicI64::new(1);
        let handle = add(Instance::new(|| Ok(Box::new(TestSource(&LUID)))));
        let is_stale = || inspect(handle, Instance::is_refresh_required);
        assert_eq!(is_stale(), Some(true));
        assert_eq!(discover(handle), Some(()));
        assert_eq!(is_stale(), Some(true));
        remove(handle);
        assert_eq!(is_stale(), None);
    }

    #[test]
    fn a_panic_fails_only_one_call() {
        static LUID: AtomicI64 = AtomicI64::new(-1);
        let handle = add(Instance::new(|| Ok(Box::new(TestSource(&LUID)))));
        assert_eq!(discover(handle), None);
        let error = inspect(handle, |i| format!("{:?}", i.error()));
        let expected = crate::wide::WideText::new("internal error: negative LUID");
        assert_eq!(error, Some(format!("{expected:?}")));
        LUID.store(1, Ordering::Relaxed);
        assert_eq!(discover(handle), Some(()));
        remove(handle);
    }
}
