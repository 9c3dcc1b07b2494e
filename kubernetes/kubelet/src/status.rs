//! The status call: reports the readiness of a running plugin to a probe on the same host.
//!
//! Every socket of the plugin answers `status.v1.Status/Get` in addition to the kubelet's calls,
//! with the readiness of all resources of its process. A socket is better than a status file: the
//! file could be left over from a process that was killed.

mod query;

use std::time::Duration;

use tokio::time::Instant;

pub use self::query::{ANSWER_LIMIT, StatusError, find_sockets, query_all};
pub use self::v1::{OutdatedContainer, Phase, ResourceStatus, StatusReport};
use crate::readiness::Readiness;

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
        let resources = readiness.resources.iter().map(|resource| {
            let waits =
                matches!(resource.phase, Phase::WaitingForKubelet | Phase::WaitingForOtherDaemon);
            let waited = if waits { now - resource.since } else { Duration::ZERO };
            ResourceStatus {
                name: resource.name.clone(),
                phase: resource.phase.into(),
                waiting_ms: u64::try_from(waited.as_millis()).unwrap_or(u64::MAX),
                last_error: resource.last_error.clone(),
                pending: resource.pending.clone().unwrap_or_default(),
            }
        });
        let notes = readiness.notes.clone();
        StatusReport {
            resources: resources.collect(),
            rejected_configuration: notes.rejected_configuration.unwrap_or_default(),
            notices: notes.notices,
            outdated_known: notes.outdated.is_some(),
            outdated: notes.outdated.unwrap_or_default(),
            pod_uid: notes.pod_uid,
        }
    }
}

impl ResourceStatus {
    /// Whether a kubelet has the list of the resource's known devices.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.phase() == Phase::Ready && self.pending.is_empty()
    }
}
