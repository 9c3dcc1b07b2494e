//! The published device set, which every stream and every call reads.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use devices::DeviceSet;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::host::adapter_reader::Activity;
use crate::metrics::PluginMetrics;

/// The published set.
#[derive(Clone)]
pub(crate) struct PublishedDevices {
    /// The set from the first snapshot on.
    known: watch::Sender<Option<Arc<DeviceSet>>>,
    /// What the reader of the host is doing.
    activity: Activity,
    /// What happens to the devices is counted here.
    pub(crate) metrics: PluginMetrics,
    state: Arc<Mutex<State>>,
}

struct State {
    set: Arc<DeviceSet>,
    last_allocation: Option<Instant>,
    /// Why the CDI specification could not be written.
    cdi_problem: Option<String>,
}

impl PublishedDevices {
    /// Publishes a set before the first snapshot, while the reader is doing `activity`.
    pub(crate) fn unknown(set: DeviceSet, activity: Activity) -> PublishedDevices {
        let state = State { set: Arc::new(set), last_allocation: None, cdi_problem: None };
        let (metrics, state) = (PluginMetrics::default(), Arc::new(Mutex::new(state)));
        PublishedDevices { known: watch::Sender::new(None), activity, metrics, state }
    }

    /// The current set.
    pub(crate) fn set(&self) -> Arc<DeviceSet> {
        Arc::clone(&self.state().set)
    }

    /// Replaces the set.
    pub(crate) fn publish(&self, set: DeviceSet) {
        let set = Arc::new(set);
        self.state().set = Arc::clone(&set);
        if self.pending().is_none() {
            self.known.send_replace(Some(set));
        }
    }

    /// Why the CDI specification could not be written; `None` if it exists or is not needed.
    pub(crate) fn cdi_problem(&self) -> Option<String> {
        self.state().cdi_problem.clone()
    }

    /// Replaces the problem with the CDI specification.
    pub(crate) fn set_cdi_problem(&self, problem: Option<String>) {
        self.state().cdi_problem = problem;
    }

    /// The current set and its changes; `None` until the devices are known.
    pub(crate) fn known_sets(&self) -> watch::Receiver<Option<Arc<DeviceSet>>> {
        self.known.subscribe()
    }

    /// Why the devices are not known yet; `None` if they are.
    pub(crate) fn pending(&self) -> Option<String> {
        if self.known.borrow().is_some() {
            return None;
        }
        Some(format!("the first discovery has not completed: {}", self.activity.text()))
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

    /// Makes the current set known: the devices have been discovered.
    pub(crate) fn set_known(&self) {
        self.known.send_replace(Some(self.set()));
    }
}
