//! The status call: reports the readiness of a running plugin to a probe on the same host.
//!
//! Every socket of the plugin answers the call `Get` of [`SERVICE`] in addition to the kubelet's
//! calls, with the readiness of all resources of its process. A socket is better than a status file:
//! the file could be left over from a process that was killed.

mod query;

pub use self::query::{ANSWER_LIMIT, StatusError, find_sockets, query_all};
pub use self::v1::status_server::SERVICE_NAME as SERVICE;
pub use self::v1::{Phase, ResourceStatus, StatusReport};

/// The messages, the server and the client.
#[allow(missing_docs, clippy::all, clippy::pedantic, reason = "generated from proto/status.proto")]
#[allow(unreachable_pub, reason = "generated from proto/status.proto")]
pub(crate) mod v1 {
    include!("generated/status.rs");
}

impl ResourceStatus {
    /// Whether a kubelet has the list of the resource's known devices.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.phase() == Phase::Ready && self.pending.is_empty()
    }
}
