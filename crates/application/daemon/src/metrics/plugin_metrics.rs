//! What the daemon counts while it runs. The counters can be shared between threads.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::histogram::Histogram;
use strum::{IntoStaticStr, VariantArray};

/// Bounds for an Allocate call, in seconds: it takes 50 µs, or longer if files must be checked on
/// a slow disk.
const ALLOCATE_BOUNDS: [f64; 11] =
    [0.000_01, 0.000_05, 0.000_1, 0.000_5, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0];

/// Bounds for a read of the host, in seconds: it takes milliseconds, or much longer while a driver
/// is installed.
const DISCOVERY_BOUNDS: [f64; 10] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0];

/// Why an allocation was refused: the label `reason` in metrics.
#[derive(IntoStaticStr, VariantArray, Clone, Copy, PartialEq, Eq, Debug)]
#[strum(serialize_all = "snake_case")]
#[allow(missing_docs, reason = "`refusal` says which error has which reason")]
pub enum RefusalReason {
    NoDevices,
    MalformedId,
    ReplicaOutOfRange,
    UnknownDevice,
    Unhealthy,
    SharedRequest,
    SeveralDevices,
    NoDeviceClass,
    DifferentClasses,
    NoLauncher,
    NoLocationPath,
}

/// The counters. A clone counts into the same ones.
#[derive(Clone, Debug)]
pub struct PluginMetrics {
    resources: Arc<Mutex<BTreeMap<String, ResourceCounts>>>,
    /// The time of each read of the host that succeeded.
    pub discovery_seconds: Histogram,
    /// The reads of the host that failed.
    pub discovery_failures: Counter,
}

/// What is counted for each resource.
#[derive(Clone, Debug)]
pub(crate) struct ResourceCounts {
    pub(crate) allocations: u64,
    /// The refusals by their reason.
    pub(crate) refusals: BTreeMap<&'static str, u64>,
    pub(crate) allocate_seconds: Histogram,
    pub(crate) list_updates: u64,
}

impl Default for PluginMetrics {
    fn default() -> Self {
        PluginMetrics {
            resources: Arc::default(),
            discovery_seconds: Histogram::new(DISCOVERY_BOUNDS),
            discovery_failures: Counter::default(),
        }
    }
}

impl Default for ResourceCounts {
    fn default() -> Self {
        ResourceCounts {
            allocations: 0,
            refusals: RefusalReason::VARIANTS.iter().map(|reason| (reason.into(), 0)).collect(),
            allocate_seconds: Histogram::new(ALLOCATE_BOUNDS),
            list_updates: 0,
        }
    }
}

impl PluginMetrics {
    /// Creates the time series of a resource, so that they exist before the first event.
    pub fn add_resource(&self, resource: &str) {
        self.lock().entry(resource.to_owned()).or_default();
    }

    /// Removes the time series of a resource that the daemon no longer advertises.
    pub fn remove_resource(&self, resource: &str) {
        self.lock().remove(resource);
    }

    /// Counts the answer to an Allocate call for one container: an allocation, or the reason of
    /// the refusal.
    pub fn allocate_answered(
        &self,
        resource: &str,
        outcome: Result<(), RefusalReason>,
        duration: Duration,
    ) {
        let mut resources = self.lock();
        // A call may end after its resource was removed.
        let Some(counts) = resources.get_mut(resource) else { return };
        counts.allocate_seconds.observe(duration.as_secs_f64());
        match outcome {
            Ok(()) => counts.allocations += 1,
            Err(reason) => *counts.refusals.entry(reason.into()).or_default() += 1,
        }
    }

    /// Counts a change of a device list.
    pub fn list_updated(&self, resource: &str) {
        if let Some(counts) = self.lock().get_mut(resource) {
            counts.list_updates += 1;
        }
    }

    /// What was counted for each resource. It is a copy, so that no call waits for a scrape.
    pub(crate) fn resources(&self) -> BTreeMap<String, ResourceCounts> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, ResourceCounts>> {
        self.resources.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
