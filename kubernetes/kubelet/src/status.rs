//! The status call: reports the readiness of a running plugin to a probe on the same host.
//!
//! Every socket of the plugin answers `status.v1.Status/Get` in addition to the kubelet's calls,
//! with the readiness of all resources of its process. A socket is better than a status file: the
//! file could be left over from a process that was killed. The messages are not part of the device
//! plugin API, so they are defined here and not in the kubelet's `.proto`.

use std::convert::Infallible;
use std::io;
use std::path::Path;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use tonic::Status;
use tonic::body::Body;
use tonic_prost::ProstCodec;

use crate::MESSAGE_LIMIT;
use crate::http2::{self, Client};
use crate::readiness::{Readiness, ResourceState};
use crate::transport::Transport;

/// The path of the call.
pub(crate) const GET: &str = "/status.v1.Status/Get";

/// How long a plugin may take to answer; it takes less than a millisecond.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);

/// The request.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct StatusRequest {}

/// The response: every resource of the process.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct StatusReport {
    /// In the order of the process's resources. Empty while the process starts or shuts down.
    #[prost(message, repeated, tag = "1")]
    pub resources: Vec<ResourceStatus>,
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
    /// How long the resource has been waiting for a kubelet, in milliseconds. 0 if it is not
    /// waiting.
    #[prost(uint64, tag = "3")]
    pub waiting_ms: u64,
    /// The last error while the resource waits. Empty if there was none.
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
}

impl StatusReport {
    fn of(readiness: &Readiness, now: Instant) -> StatusReport {
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
                    waiting_ms: u64::try_from((now - *since).as_millis()).unwrap_or(u64::MAX),
                    last_error: last_error.clone().unwrap_or_default(),
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
        StatusReport { resources: resources.collect() }
    }
}

/// Serves the call.
pub(crate) async fn respond(
    readiness: watch::Receiver<Readiness>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let codec: ProstCodec<StatusReport, StatusRequest> = ProstCodec::default();
    let mut grpc = tonic::server::Grpc::new(codec)
        .apply_max_message_size_config(Some(MESSAGE_LIMIT), Some(MESSAGE_LIMIT));
    Ok(grpc.unary(GetStatus { readiness }, request).await)
}

struct GetStatus {
    readiness: watch::Receiver<Readiness>,
}

impl tonic::server::UnaryService<StatusRequest> for GetStatus {
    type Response = StatusReport;
    type Future = std::future::Ready<Result<tonic::Response<StatusReport>, Status>>;

    fn call(&mut self, _: tonic::Request<StatusRequest>) -> Self::Future {
        let report = StatusReport::of(&self.readiness.borrow(), Instant::now());
        std::future::ready(Ok(tonic::Response::new(report)))
    }
}

/// Why a status query failed.
#[derive(Debug, thiserror::Error)]
pub enum StatusError {
    /// No process listens on the socket, or the connection was lost.
    #[error("cannot connect to plugin")]
    Unreachable(#[source] io::Error),
    /// No answer arrived in time.
    #[error("plugin did not answer within {} s", ANSWER_LIMIT.as_secs())]
    Timeout,
    /// The process that listens does not know the call: another plugin, or an earlier version.
    #[error("another program is listening on this socket: {}", .0.message())]
    OtherProgram(Status),
}

/// Queries the status of the plugin behind the socket at `path`.
///
/// # Errors
/// See [`StatusError`].
pub async fn query<T: Transport>(transport: T, path: &Path) -> Result<StatusReport, StatusError> {
    match timeout(ANSWER_LIMIT, query_without_timeout(transport, path)).await {
        Ok(answer) => answer,
        Err(_) => Err(StatusError::Timeout),
    }
}

async fn query_without_timeout<T: Transport>(
    transport: T,
    path: &Path,
) -> Result<StatusReport, StatusError> {
    let io = transport.connect(path).await.map_err(StatusError::Unreachable)?;
    let (client, driver) = http2::connect(io).await.map_err(StatusError::Unreachable)?;
    let call = async {
        let mut grpc = tonic::client::Grpc::with_origin(client, Client::origin());
        grpc.ready().await.map_err(|e| StatusError::Unreachable(io::Error::other(e)))?;
        let codec: ProstCodec<StatusRequest, StatusReport> = ProstCodec::default();
        let request = tonic::Request::new(StatusRequest {});
        let path = http::uri::PathAndQuery::from_static(GET);
        let answer = grpc.unary(request, path, codec).await.map_err(StatusError::OtherProgram)?;
        Ok(answer.into_inner())
    };
    tokio::select! {
        biased;
        answer = call => answer,
        ended = driver => {
            let error = ended.map_or_else(|| io::ErrorKind::ConnectionReset.into(), io::Error::other);
            Err(StatusError::Unreachable(error))
        }
    }
}

/// Whether `name` is the name of a socket that this plugin creates for `prefix`.
#[must_use]
pub fn is_socket_of(prefix: &str, name: &str) -> bool {
    crate::socket_names::has_prefix(prefix, name)
}
