//! Whether a kubelet has the device lists: the answer to a readiness probe.

use std::collections::BTreeMap;
use std::time::Duration;

use strum::VariantArray;
use tokio::time::Instant;

use crate::registered_resource::reason::NewSocketReason;
use crate::status::{Phase, ResourceStatus, StatusReport};

/// The state of every resource, in the order of [`Served::resources`](crate::Served).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Readiness {
    /// One entry for each resource.
    pub resources: Vec<ResourceReadiness>,
    /// What the plugin reports in addition; see [`Served::document`](crate::Served::document).
    pub document: Vec<u8>,
    /// A random number of the plugin while it runs; see [`StatusReport::instance`].
    pub instance: u64,
}

impl Readiness {
    /// Whether there is at least one resource, and a kubelet has the list of known devices of
    /// every resource.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        !self.resources.is_empty() && self.resources.iter().all(ResourceReadiness::is_ready)
    }

    /// The answer to a status call at this time.
    #[must_use]
    pub fn report(&self, now: Instant) -> StatusReport {
        let resources = self.resources.iter().map(|resource| resource.report(now)).collect();
        StatusReport { resources, document: self.document.clone(), instance: self.instance }
    }
}

/// The state of one resource.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ResourceReadiness {
    /// The name of the extended resource.
    pub name: String,
    /// The registration phase with the current kubelet.
    pub phase: Phase,
    /// When the phase began.
    pub since: Instant,
    /// The last error of the phase, with its causes, or the daemon that the resource waits for.
    /// Empty if there was none.
    pub last_error: String,
    /// Why the devices are not known yet; see [`Resource::pending`](crate::Resource::pending).
    pub pending: Option<String>,
    /// How many registrations a kubelet accepted, by cause. The causes are words such as
    /// `startup` and `kubelet_replaced`, and every cause is there from the start.
    pub registrations: BTreeMap<&'static str, u64>,
}

impl ResourceReadiness {
    /// The state of a resource that was never registered.
    pub fn starting(name: impl Into<String>) -> Self {
        ResourceReadiness {
            name: name.into(),
            phase: Phase::Starting,
            since: Instant::now(),
            last_error: String::new(),
            pending: None,
            registrations: NewSocketReason::VARIANTS.iter().map(|r| (r.as_str(), 0)).collect(),
        }
    }

    /// Whether a kubelet has the list of the known devices.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.phase == Phase::Ready && self.pending.is_none()
    }

    fn report(&self, now: Instant) -> ResourceStatus {
        let is_waiting =
            matches!(self.phase, Phase::WaitingForKubelet | Phase::WaitingForOtherDaemon);
        let waited = if is_waiting { now - self.since } else { Duration::ZERO };
        ResourceStatus {
            name: self.name.clone(),
            phase: self.phase.into(),
            waiting_ms: u64::try_from(waited.as_millis()).unwrap_or(u64::MAX),
            last_error: self.last_error.clone(),
            pending: self.pending.clone().unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delivered_list_of_unknown_devices_is_not_ready() {
        let mut gpu = ResourceReadiness::starting("example.com/gpu");
        gpu.phase = Phase::Ready;
        let mut readiness = Readiness { resources: vec![gpu], ..Readiness::default() };
        assert!(readiness.is_ready());
        readiness.resources[0].pending = Some("the first discovery has not completed".to_owned());
        assert!(!readiness.is_ready());
        assert!(!Readiness::default().is_ready());
    }
}
