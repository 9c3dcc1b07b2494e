//! The published device set, which every stream and every call reads.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use devices::DeviceSet;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::host::adapter_reader::Activity;
use crate::metrics::PluginMetrics;

/// A device set, and whether the devices of the host are known.
#[derive(Clone, Debug)]
pub enum Discovery {
    /// The host has not been read yet: the set has the resources of the configuration, without
    /// devices.
    Pending(Arc<DeviceSet>),
    /// The set has the devices of the host.
    Done(Arc<DeviceSet>),
}

impl Discovery {
    /// The set, with or without devices.
    #[must_use]
    pub fn set(&self) -> &Arc<DeviceSet> {
        match self {
            Discovery::Pending(set) | Discovery::Done(set) => set,
        }
    }
}

/// The published set.
#[derive(Clone)]
pub(crate) struct PublishedDevices {
    discovery: watch::Sender<Discovery>,
    /// What the reader of the host is doing.
    activity: Activity,
    /// What happens to the devices is counted here.
    pub(crate) metrics: PluginMetrics,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    last_allocation: Option<Instant>,
}

impl PublishedDevices {
    /// Publishes a set before the first snapshot, while the reader is doing `activity`.
    pub(crate) fn pending_discovery(set: DeviceSet, activity: Activity) -> PublishedDevices {
        PublishedDevices {
            discovery: watch::Sender::new(Discovery::Pending(Arc::new(set))),
            activity,
            metrics: PluginMetrics::default(),
            state: Arc::default(),
        }
    }

    /// The current set.
    pub(crate) fn set(&self) -> Arc<DeviceSet> {
        Arc::clone(self.discovery.borrow().set())
    }

    /// Replaces the set.
    pub(crate) fn publish(&self, discovery: Discovery) {
        self.discovery.send_replace(discovery);
    }

    /// The current set and its changes.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Discovery> {
        self.discovery.subscribe()
    }

    /// Why the devices are not known yet; `None` if they are.
    pub(crate) fn pending(&self) -> Option<String> {
        match *self.discovery.borrow() {
            Discovery::Pending(_) => {
                Some(format!("the first discovery has not completed: {}", self.activity.text()))
            }
            Discovery::Done(_) => None,
        }
    }

    /// Records that devices were allocated now.
    pub(crate) fn allocated(&self) {
        self.state().last_allocation = Some(Instant::now());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change under this lock is complete, so a poisoned lock still holds a valid state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When devices were allocated the last time.
    pub(crate) fn last_allocation(&self) -> Option<Instant> {
        self.state().last_allocation
    }
}
