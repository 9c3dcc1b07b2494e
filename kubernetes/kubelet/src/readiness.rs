//! Whether a kubelet has the device lists: the answer to a readiness probe.

use std::collections::BTreeMap;

use tokio::time::Instant;

use crate::OutdatedContainer;
use crate::status::Phase;

/// The state of every resource, in the order of [`Served::resources`](crate::Served).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Readiness {
    /// One entry for each resource.
    pub resources: Vec<ResourceReadiness>,
    /// What the plugin reports besides.
    pub notes: StatusNotes,
}

/// What a plugin reports in its status besides the resources. It makes none of them less ready. Use
/// `..StatusNotes::default()`: fields may be added.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StatusNotes {
    /// Why the newest configuration is not active, if it is not. The resources are served with the
    /// previous one.
    pub rejected_configuration: Option<String>,
    /// What an administrator should know, a line each.
    pub notices: Vec<String>,
    /// The containers whose device has changed since it was allocated to them; `None` while they are
    /// not known.
    pub outdated: Option<Vec<OutdatedContainer>>,
    /// The UID of the pod of this process, for probes that must ask only this process. May be empty.
    pub pod_uid: String,
}

impl Readiness {
    /// Whether there is at least one resource, and a kubelet has the list of known devices of
    /// every resource.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        !self.resources.is_empty() && self.resources.iter().all(ResourceReadiness::is_ready)
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
    /// The last error of the phase, with its causes, or the daemon that the resource waits for. Empty
    /// if there was none.
    pub last_error: String,
    /// Why the devices are not known yet; see [`Resource::pending`](crate::Resource::pending).
    pub pending: Option<String>,
    /// How many registrations a kubelet accepted, by cause; the causes are words such as
    /// `startup` and `kubelet_replaced`.
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
            registrations: BTreeMap::new(),
        }
    }

    /// Whether a kubelet has the list of the known devices.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.phase == Phase::Ready && self.pending.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delivered_list_of_unknown_devices_is_not_ready() {
        let readiness = |pending: Option<&str>| Readiness {
            resources: vec![ResourceReadiness {
                name: "example.com/gpu".to_owned(),
                phase: Phase::Ready,
                since: Instant::now(),
                last_error: String::new(),
                pending: pending.map(str::to_owned),
                registrations: BTreeMap::new(),
            }],
            notes: StatusNotes {
                rejected_configuration: Some("config.yaml:1: unknown key".to_owned()),
                notices: vec!["a notice".to_owned()],
                outdated: Some(vec![OutdatedContainer::default()]),
                pod_uid: String::new(),
            },
        };
        assert!(readiness(None).is_ready());
        assert!(!readiness(Some("the first discovery has not completed")).is_ready());
        assert!(!Readiness::default().is_ready());
    }
}
