//! What a plugin that runs says of itself, to a probe on the same host.
//!
//! Every socket of ours answers `status.v1.Status/Get` beside the kubelet's calls, with
//! the readiness of all resources of its process. A file could be as old as a process
//! that was killed; a socket answers or it does not. The messages are ours alone, so
//! they are written here and not in the kubelet's `.proto`.

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
use crate::readiness::{Readiness, ResourceState};
use crate::transport::Transport;
use crate::wire::{self, Client};

/// The path of the call.
pub(crate) const GET: &str = "/status.v1.Status/Get";

/// How long a plugin may take to answer; it takes less than a millisecond.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);

/// The question.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct StatusRequest {}

/// The answer: every resource of the process that was asked.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct StatusReport {
    /// In the order the process has them; none while it starts or ends.
    #[prost(message, repeated, tag = "1")]
    pub resources: Vec<ResourceStatus>,
}

impl StatusReport {
    /// Whether a kubelet has the list of every resource (and there is one).
    #[must_use]
    pub fn is_ready(&self) -> bool {
        !self.resources.is_empty() && self.resources.iter().all(ResourceStatus::is_ready)
    }
}

/// One resource of a [`StatusReport`].
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ResourceStatus {
    /// The extended resource's name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// How far it has come.
    #[prost(enumeration = "Phase", tag = "2")]
    pub phase: i32,
    /// How long it has been waiting for a kubelet, in milliseconds; 0 where it does not wait.
    #[prost(uint64, tag = "3")]
    pub waiting_ms: u64,
    /// What went wrong last while it waits; empty where nothing did.
    #[prost(string, tag = "4")]
    pub last_error: String,
}

impl ResourceStatus {
    /// Whether a kubelet has the resource's list.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.phase() == Phase::Ready
    }
}

/// How far a resource has come; see [`ResourceState`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, prost::Enumeration)]
#[repr(i32)]
pub enum Phase {
    /// Nothing was tried yet.
    Starting = 0,
    /// No kubelet has accepted the resource.
    WaitingForKubelet = 1,
    /// A kubelet has accepted it and not yet asked for the list.
    Registered = 2,
    /// A kubelet has the list.
    Ready = 3,
}

impl StatusReport {
    fn of(readiness: &Readiness, now: Instant) -> StatusReport {
        let resources = readiness.resources.iter().map(|resource| {
            let blank = ResourceStatus { name: resource.name.clone(), ..Default::default() };
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

/// Answers the call.
pub(crate) async fn answer(
    readiness: watch::Receiver<Readiness>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let codec: ProstCodec<StatusReport, StatusRequest> = ProstCodec::default();
    let mut grpc = tonic::server::Grpc::new(codec)
        .apply_max_message_size_config(Some(MESSAGE_LIMIT), Some(MESSAGE_LIMIT));
    Ok(grpc.unary(Answer { readiness }, request).await)
}

struct Answer {
    readiness: watch::Receiver<Readiness>,
}

impl tonic::server::UnaryService<StatusRequest> for Answer {
    type Response = StatusReport;
    type Future = std::future::Ready<Result<tonic::Response<StatusReport>, Status>>;

    fn call(&mut self, _: tonic::Request<StatusRequest>) -> Self::Future {
        let report = StatusReport::of(&self.readiness.borrow(), Instant::now());
        std::future::ready(Ok(tonic::Response::new(report)))
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum StatusError {
    /// Nobody listens, or the connection was lost.
    #[error("nobody answers")]
    Unreachable(#[source] io::Error),
    /// No answer in time.
    #[error("no answer within {} s", ANSWER_LIMIT.as_secs())]
    Silent,
    /// Whoever listens does not know the question: another plugin, or an earlier one.
    #[error("whoever listens is not this plugin: {}", .0.message())]
    Stranger(Status),
}

/// Asks the plugin behind the socket at `path`.
///
/// # Errors
/// See [`StatusError`].
pub async fn ask<T: Transport>(transport: T, path: &Path) -> Result<StatusReport, StatusError> {
    match timeout(ANSWER_LIMIT, ask_patiently(transport, path)).await {
        Ok(answer) => answer,
        Err(_) => Err(StatusError::Silent),
    }
}

async fn ask_patiently<T: Transport>(
    transport: T,
    path: &Path,
) -> Result<StatusReport, StatusError> {
    let io = transport.connect(path).await.map_err(StatusError::Unreachable)?;
    let (client, driver) = wire::connect(io).await.map_err(StatusError::Unreachable)?;
    let call = async {
        let mut grpc = tonic::client::Grpc::with_origin(client, Client::origin());
        grpc.ready().await.map_err(|e| StatusError::Unreachable(io::Error::other(e)))?;
        let codec: ProstCodec<StatusRequest, StatusReport> = ProstCodec::default();
        let request = tonic::Request::new(StatusRequest {});
        let path = http::uri::PathAndQuery::from_static(GET);
        let answer = grpc.unary(request, path, codec).await.map_err(StatusError::Stranger)?;
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

/// Whether `name` is that of a socket which a plugin of ours makes for `prefix`.
#[must_use]
pub fn is_socket_of(prefix: &str, name: &str) -> bool {
    crate::leftovers::is_named_for(prefix, name)
}
