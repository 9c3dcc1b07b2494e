//! The messages of the status call.

use tokio::time::Instant;

use crate::claim::Claim;
use crate::readiness::{OutdatedContainer, Readiness, ResourceState};

/// The path of the call.
pub(crate) const GET: &str = "/status.v1.Status/Get";

/// The request.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(super) struct StatusRequest {}

/// The response: every resource of the process.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct StatusReport {
    /// In the order of the process's resources. Empty while the process starts or shuts down.
    #[prost(message, repeated, tag = "1")]
    pub resources: Vec<ResourceStatus>,
    /// By what daemons on the same node agree which of them serves a resource. Earlier versions send
    /// none.
    #[prost(message, optional, tag = "2")]
    pub claim: Option<Claim>,
    /// Why the newest configuration is not active. Empty if it is.
    #[prost(string, tag = "3")]
    pub rejected_configuration: String,
    /// What an administrator should know, a line each.
    #[prost(string, repeated, tag = "4")]
    pub notices: Vec<String>,
    /// The containers whose device has changed since it was allocated to them.
    #[prost(message, repeated, tag = "5")]
    pub outdated: Vec<OutdatedContainer>,
    /// Whether these containers are known. Earlier versions do not know them.
    #[prost(bool, tag = "6")]
    pub outdated_known: bool,
}

impl StatusReport {
    /// Whether there is at least one resource and a kubelet has the device list of every resource.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        !self.resources.is_empty() && self.resources.iter().all(ResourceStatus::is_ready)
    }
}

/// One resource of a [`StatusReport`].
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ResourceStatus {
    /// The name of the extended resource.
    #[prost(string, tag = "1")]
    pub name: String,
    /// The registration phase.
    #[prost(enumeration = "Phase", tag = "2")]
    pub phase: i32,
    /// How long the resource has been waiting for a kubelet or for another daemon, in milliseconds.
    /// 0 if it is not waiting.
    #[prost(uint64, tag = "3")]
    pub waiting_ms: u64,
    /// The last error while the resource waits, or the daemon that it waits for. Empty if there was
    /// none.
    #[prost(string, tag = "4")]
    pub last_error: String,
    /// Why the devices are not known yet. Empty if they are known.
    #[prost(string, tag = "5")]
    pub pending: String,
}

impl ResourceStatus {
    /// Whether a kubelet has the list of the resource's known devices.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.phase() == Phase::Ready && self.pending.is_empty()
    }
}

/// The registration phase of a resource; see [`ResourceState`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, prost::Enumeration)]
#[repr(i32)]
pub enum Phase {
    /// No registration was attempted yet.
    Starting = 0,
    /// No kubelet has accepted the resource.
    WaitingForKubelet = 1,
    /// A kubelet accepted the registration and has not received the device list yet.
    Registered = 2,
    /// A kubelet has the device list.
    Ready = 3,
    /// Another daemon on this node serves the resource.
    WaitingForOtherDaemon = 4,
}

impl StatusReport {
    /// The report of a process whose resources have these states, without its claim.
    #[must_use]
    pub fn of(readiness: &Readiness, now: Instant) -> StatusReport {
        let ms_since =
            |start: Instant| u64::try_from((now - start).as_millis()).unwrap_or(u64::MAX);
        let resources = readiness.resources.iter().map(|resource| {
            let blank = ResourceStatus {
                name: resource.name.clone(),
                pending: resource.pending.clone().unwrap_or_default(),
                ..Default::default()
            };
            match &resource.state {
                ResourceState::Starting => blank,
                ResourceState::WaitingForKubelet { since, last_error } => ResourceStatus {
                    phase: Phase::WaitingForKubelet.into(),
                    waiting_ms: ms_since(*since),
                    last_error: last_error.clone().unwrap_or_default(),
                    ..blank
                },
                ResourceState::WaitingForOtherDaemon { since, socket } => ResourceStatus {
                    phase: Phase::WaitingForOtherDaemon.into(),
                    waiting_ms: ms_since(*since),
                    last_error: format!("a daemon listens on `{}`", socket.display()),
                    ..blank
                },
                ResourceState::Registered => {
                    ResourceStatus { phase: Phase::Registered.into(), ..blank }
                }
                ResourceState::ListDelivered => {
                    ResourceStatus { phase: Phase::Ready.into(), ..blank }
                }
            }
        });
        StatusReport {
            resources: resources.collect(),
            claim: None,
            rejected_configuration: readiness.rejected_configuration.clone().unwrap_or_default(),
            notices: readiness.notices.clone(),
            outdated: readiness.outdated.clone().unwrap_or_default(),
            outdated_known: readiness.outdated.is_some(),
        }
    }
}
