//! The published device set, which every stream and every call reads.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::metrics::PluginMetrics;
use devices::{AllocatedDrivers, DeviceSet, OutdatedSlot, ResourceDevices, ResourceName};
use tokio::sync::watch;
use tokio::time::Instant;

use node::daemon::adapter_reader::Activity;

/// The published set.
#[derive(Clone)]
pub(crate) struct PublishedDevices {
    sets: watch::Sender<Arc<DeviceSet>>,
    metrics: PluginMetrics,
    state: Arc<Mutex<State>>,
}

struct State {
    /// What the reader is doing, until there is a first snapshot.
    first_discovery: Option<Activity>,
    last_allocation: Option<Instant>,
    allocated_drivers: AllocatedDrivers,
}

impl PublishedDevices {
    /// Publishes a set before the first snapshot, while the reader is doing `activity`.
    pub(crate) fn unknown(set: DeviceSet, activity: Activity) -> PublishedDevices {
        let state = State {
            first_discovery: Some(activity),
            last_allocation: None,
            allocated_drivers: AllocatedDrivers::default(),
        };
        let sets = watch::Sender::new(Arc::new(set));
        let state = Arc::new(Mutex::new(state));
        PublishedDevices { sets, metrics: PluginMetrics::default(), state }
    }

    /// The current set.
    pub(crate) fn set(&self) -> Arc<DeviceSet> {
        self.sets.borrow().clone()
    }

    /// Replaces the set.
    pub(crate) fn publish(&self, set: DeviceSet) {
        self.state().allocated_drivers.follow(&set);
        self.sets.send_replace(Arc::new(set));
    }

    /// The current set and its changes.
    pub(crate) fn sets(&self) -> watch::Receiver<Arc<DeviceSet>> {
        self.sets.subscribe()
    }

    /// Why the devices are not known yet; `None` if they are.
    pub(crate) fn pending(&self) -> Option<String> {
        let activity = self.state().first_discovery.as_ref()?.text();
        Some(format!("the first discovery has not completed: {activity}"))
    }

    /// What happens to the devices is counted here.
    pub(crate) fn metrics(&self) -> &PluginMetrics {
        &self.metrics
    }

    /// Records that these slots of the resource were allocated now.
    pub(crate) fn allocated(&self, resource: &ResourceDevices, slots: &[String]) {
        let mut state = self.state();
        state.allocated_drivers.record(resource, slots.iter().map(String::as_str));
        state.last_allocation = Some(Instant::now());
    }

    /// Whether a slot was allocated with another driver than its device has in `set`.
    pub(crate) fn is_outdated(&self, set: &DeviceSet, resource: &ResourceName, slot: &str) -> bool {
        self.state().allocated_drivers.outdated_slot(set, resource, slot).is_some()
    }

    /// The slots that were allocated with another driver than their device has.
    pub(crate) fn outdated_slots(&self) -> Vec<OutdatedSlot> {
        let set = self.set();
        self.state().allocated_drivers.outdated(&set)
    }

    /// Forgets the allocation of a slot, because its container has ended.
    pub(crate) fn forget_allocation(&self, resource: &ResourceName, slot: &str) {
        self.state().allocated_drivers.forget(resource, slot);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change under this lock is complete, so a poisoned lock still holds a valid state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When devices were allocated the last time.
    pub(crate) fn last_allocation(&self) -> Option<Instant> {
        self.state().last_allocation
    }

    /// The devices are known from now on.
    pub(crate) fn set_known(&self) {
        self.state().first_discovery = None;
    }
}

/// The published sets from the first snapshot on.
pub struct KnownSets {
    devices: PublishedDevices,
    sets: watch::Receiver<Arc<DeviceSet>>,
}

impl KnownSets {
    pub(crate) fn of(devices: &PublishedDevices) -> KnownSets {
        let mut sets = devices.sets();
        sets.mark_changed();
        KnownSets { devices: devices.clone(), sets }
    }

    /// The current set, and then the next one. Nothing is lost if this is dropped before it completes.
    ///
    /// # Panics
    /// Never: the sender is a part of this.
    pub async fn next(&mut self) -> Arc<DeviceSet> {
        loop {
            self.sets.changed().await.expect("the sender is a part of this");
            if self.devices.pending().is_none() {
                return self.sets.borrow_and_update().clone();
            }
        }
    }
}
