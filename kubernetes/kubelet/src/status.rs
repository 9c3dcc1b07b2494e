//! The status call: reports the readiness of a running plugin to a probe on the same host.
//!
//! Every socket of the plugin answers `status.v1.Status/Get` in addition to the kubelet's calls,
//! with the readiness of all resources of its process. A socket is better than a status file: the
//! file could be left over from a process that was killed.

mod query;

use tokio::time::Instant;

pub use self::query::{ANSWER_LIMIT, StatusError, find_sockets, query_all};
pub use self::v1::{OutdatedContainer, Phase, ResourceStatus, StatusReport};
use crate::readiness::{Readiness, ResourceState};

/// The messages, the server and the client.
#[allow(missing_docs, clippy::all, clippy::pedantic, reason = "generated from proto/status.proto")]
#[allow(unreachable_pub, reason = "generated from proto/status.proto")]
pub(crate) mod v1 {
    include!("generated/status.rs");
}

impl StatusReport {
    /// The report of a process whose resources have these states.
    #[must_use]
    pub fn of(readiness: &Readiness, now: Instant) -> StatusReport {
        let ms_since =
            |start: &Instant| u64::try_from((now - *start).as_millis()).unwrap_or(u64::MAX);
        let resources = readiness.resources.iter().map(|resource| {
            let (phase, waiting_ms, last_error) = match &resource.state {
                ResourceState::Starting => (Phase::Starting, 0, String::new()),
                ResourceState::WaitingForKubelet { since, last_error } => {
                    let last_error = last_error.clone().unwrap_or_default();
                    (Phase::WaitingForKubelet, ms_since(since), last_error)
                }
                ResourceState::WaitingForOtherDaemon { since, holder } => {
                    (Phase::WaitingForOtherDaemon, ms_since(since), holder.clone())
                }
                ResourceState::Registered => (Phase::Registered, 0, String::new()),
                ResourceState::ListDelivered => (Phase::Ready, 0, String::new()),
            };
            ResourceStatus {
                name: resource.name.clone(),
                phase: phase.into(),
                waiting_ms,
                last_error,
                pending: resource.pending.clone().unwrap_or_default(),
            }
        });
        StatusReport {
            resources: resources.collect(),
            rejected_configuration: readiness.rejected_configuration.clone().unwrap_or_default(),
            notices: readiness.notices.clone(),
            outdated: readiness.outdated.clone().unwrap_or_default(),
            outdated_known: readiness.outdated.is_some(),
        }
    }

    /// Whether there is at least one resource and a kubelet has the device list of every resource.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        !self.resources.is_empty() && self.resources.iter().all(ResourceStatus::is_ready)
    }
}

impl ResourceStatus {
    /// Whether a kubelet has the list of the resource's known devices.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.phase() == Phase::Ready && self.pending.is_empty()
    }
}
