//! What the daemon counts while it runs. The counters can be shared between threads.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;

use crate::metrics::sheet::{Labels, labels};

/// Bounds for an Allocate call, in seconds: it takes 50 µs, or longer if files must be checked on
/// a slow disk.
const ALLOCATE_BOUNDS: [f64; 11] =
    [0.000_01, 0.000_05, 0.000_1, 0.000_5, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0];

/// Bounds for a read of the host, in seconds: it takes milliseconds, or much longer while a driver
/// is installed.
const DISCOVERY_BOUNDS: [f64; 10] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0];

/// The values of the label `reason` of refusals in metrics.
pub const REFUSAL_REASONS: [&str; 11] = [
    "no_devices",
    "malformed_id",
    "replica_out_of_range",
    "unknown_device",
    "unhealthy",
    "shared_request",
    "several_devices",
    "no_device_class",
    "different_classes",
    "no_location_path",
    "no_cdi_specification",
];

/// The counters. A clone counts into the same ones.
#[derive(Clone, Debug)]
pub struct PluginMetrics {
    pub(crate) allocations: Family<Labels, Counter>,
    pub(crate) refusals: Family<Labels, Counter>,
    pub(crate) allocate_seconds: Family<Labels, Histogram, fn() -> Histogram>,
    pub(crate) list_updates: Family<Labels, Counter>,
    /// The time of each read of the host that succeeded.
    pub discovery_seconds: Histogram,
    /// The reads of the host that failed.
    pub discovery_failures: Counter,
}

impl Default for PluginMetrics {
    fn default() -> Self {
        PluginMetrics {
            allocations: Family::default(),
            refusals: Family::default(),
            allocate_seconds: Family::new_with_constructor(|| Histogram::new(ALLOCATE_BOUNDS)),
            list_updates: Family::default(),
            discovery_seconds: Histogram::new(DISCOVERY_BOUNDS),
            discovery_failures: Counter::default(),
        }
    }
}

impl PluginMetrics {
    /// Creates the time series of a resource, so that they exist before the first event.
    pub fn add_resource(&self, resource: &str) {
        let label = label(resource);
        for reason in REFUSAL_REASONS {
            drop(self.refusals.get_or_create(&refusal(resource, reason)));
        }
        drop(self.allocations.get_or_create(&label));
        drop(self.allocate_seconds.get_or_create(&label));
        drop(self.list_updates.get_or_create(&label));
    }

    /// Removes the time series of a resource that the daemon no longer advertises.
    pub fn remove_resource(&self, resource: &str) {
        let label = label(resource);
        self.allocations.remove(&label);
        self.allocate_seconds.remove(&label);
        self.list_updates.remove(&label);
        for reason in REFUSAL_REASONS {
            self.refusals.remove(&refusal(resource, reason));
        }
    }

    /// Counts the answer to an Allocate call for one container: an allocation, or the reason of
    /// the refusal.
    pub fn allocate_answered(
        &self,
        resource: &str,
        outcome: Result<(), &'static str>,
        duration: Duration,
    ) {
        let label = label(resource);
        self.allocate_seconds.get_or_create(&label).observe(duration.as_secs_f64());
        match outcome {
            Ok(()) => _ = self.allocations.get_or_create(&label).inc(),
            Err(reason) => {
                debug_assert!(REFUSAL_REASONS.contains(&reason), "{reason}");
                self.refusals.get_or_create(&refusal(resource, reason)).inc();
            }
        }
    }

    /// Counts a change of a device list.
    pub fn list_updated(&self, resource: &str) {
        self.list_updates.get_or_create(&label(resource)).inc();
    }
}

fn label(resource: &str) -> Labels {
    labels(&[("resource", resource)])
}

fn refusal(resource: &str, reason: &str) -> Labels {
    labels(&[("resource", resource), ("reason", reason)])
}
