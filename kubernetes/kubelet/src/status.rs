//! The status call: reports the readiness of a running plugin to a probe on the same host.
//!
//! Every socket of the plugin answers `status.v1.Status/Get` in addition to the kubelet's calls,
//! with the readiness of all resources of its process. A socket is better than a status file: the
//! file could be left over from a process that was killed. The messages are not part of the device
//! plugin API, so they are defined here and not in the kubelet's `.proto`.

mod messages;
mod query;

pub(crate) use messages::GET;
pub use messages::{Phase, ResourceStatus, StatusReport};
pub use query::{ANSWER_LIMIT, StatusError, find_sockets, query_all};
