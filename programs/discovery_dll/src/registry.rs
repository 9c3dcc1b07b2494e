//! The living instances.
//!
//! What C holds is no address but a number in the shape of one, never used twice and
//! never a valid address. So a foreign or destroyed instance is told from a living
//! one without reading memory that may be gone.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::instance::{CallError, Instance};

/// An instance as C holds it.
pub(crate) type Handle = *mut c_void;

static LIVING: Mutex<Living> = Mutex::new(Living { next: FIRST, instances: BTreeMap::new() });

struct Living {
    next: usize,
    instances: BTreeMap<usize, Arc<Mutex<Instance>>>,
}

/// The first handle. Of 64-bit addresses neither x64 nor Arm knows any with such
/// upper bits.
const FIRST: usize = 0x4458_0000_0000_0001;

/// Registers `instance`.
pub(crate) fn add(instance: Instance) -> Handle {
    let mut living = lock(&LIVING);
    let number = living.next;
    living.next += 1;
    living.instances.insert(number, Arc::new(Mutex::new(instance)));
    ptr::without_provenance_mut(number)
}

/// Takes an instance out. It is dropped when the calls that use it have returned.
pub(crate) fn remove(handle: Handle) {
    let removed = lock(&LIVING).instances.remove(&handle.addr());
    // Dropping ends what the instance listens to, which may wait; the registry must
    // not be locked meanwhile.
    drop(removed);
}

/// Does `work` with an instance, or answers `None` where there is none. A panic of
/// `work` becomes the instance's error.
pub(crate) fn with<T>(
    handle: Handle,
    work: impl FnOnce(&mut Instance) -> Result<T, CallError>,
) -> Option<T> {
    let instance = find(handle)?;
    let mut instance = lock(&instance);
    let outcome = catch_unwind(AssertUnwindSafe(|| work(&mut instance)));
    let outcome = outcome.unwrap_or_else(|panic| Err(CallError::Panic(words(&*panic))));
    instance.conclude(outcome)
}

/// Looks at an instance without changing what it says of its last call.
pub(crate) fn look<T>(handle: Handle, at: impl FnOnce(&Instance) -> T) -> Option<T> {
    let instance = find(handle)?;
    let instance = lock(&instance);
    Some(at(&instance))
}

fn find(handle: Handle) -> Option<Arc<Mutex<Instance>>> {
    lock(&LIVING).instances.get(&handle.addr()).cloned()
}

/// A panic while it was locked leaves a value that is whole: each call replaces parts
/// of an instance only once they are made.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use devices::{AdapterSource, ChangeCallback, DeviceScope, HostSnapshot, SourceError};
    use std::sync::atomic::{AtomicI64, Ordering};

    /// One adapter with a LUID that each test sets. It never tells of changes, and a
    /// negative LUID makes it panic.
    struct Odd(&'static AtomicI64);

    impl AdapterSource for Odd {
        fn snapshot(&mut self) -> Result<HostSnapshot, SourceError> {
            let luid = self.0.load(Ordering::Relaxed);
            assert!(luid >= 0, "on purpose");
            let adapter = devices::Adapter {
                luid: devices::Luid(luid),
                attributes: devices::Attributes::default(),
                kind: devices::AdapterKind::Software,
                placement: devices::Placement::Discrete,
                attachment: devices::Attachment::Fixed,
                hardware_id: devices::HardwareId::default(),
                driver_description: String::new(),
                driver_version: None,
                dedicated_memory_mib: None,
                pnp: None,
                driver_store: None,
            };
            Ok(HostSnapshot { adapters: vec![adapter], ..HostSnapshot::default() })
        }

        fn watch(&mut self, _: ChangeCallback) -> Result<(), SourceError> {
            Err("this host does not tell".into())
        }
    }

    fn discover(handle: Handle) -> Option<()> {
        with(handle, |i| i.discover(0, DeviceScope::Include, DeviceScope::Include))
    }

    #[test]
    fn where_the_host_does_not_tell_of_changes_it_is_compared() {
        static LUID: AtomicI64 = AtomicI64::new(1);
        let handle = add(Instance::new(|| Ok(Box::new(Odd(&LUID)))));
        let is_stale = || with(handle, Instance::is_refresh_required);
        assert_eq!(is_stale(), Some(true));
        assert_eq!(discover(handle), Some(()));
        assert_eq!(is_stale(), Some(false));
        LUID.store(2, Ordering::Relaxed);
        assert_eq!(is_stale(), Some(true));
        remove(handle);
        assert_eq!(is_stale(), None);
    }

    #[test]
    fn a_panic_is_the_failure_of_one_call() {
        static LUID: AtomicI64 = AtomicI64::new(-1);
        let handle = add(Instance::new(|| Ok(Box::new(Odd(&LUID)))));
        assert_eq!(discover(handle), None);
        let error = look(handle, |i| format!("{:?}", i.error()));
        let expected = crate::wide::WideText::new("the discovery library failed: on purpose");
        assert_eq!(error, Some(format!("{expected:?}")));
        LUID.store(1, Ordering::Relaxed);
        assert_eq!(discover(handle), Some(()));
        remove(handle);
    }
}
