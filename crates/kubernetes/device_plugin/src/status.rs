//! The status call: reports the readiness of a running plugin to a probe on the same host.
//!
//! Every socket of the plugin answers the call `Get` of [`SERVICE`] in addition to the kubelet's
//! calls, with the readiness of all resources of its process. A status file would be worse than a
//! socket, because it could be left over from a process that was killed.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::{Instant, timeout_at};
use tonic::transport::Channel;
use tonic::{Code, Status};

use self::v1::StatusRequest;
use self::v1::status_client::StatusClient;
use crate::connection;
use crate::names::has_prefix;
use crate::transport::Transport;
use crate::unix_sockets::UnixSockets;

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

/// How long all queries together may take, so that a probe with a limit of two seconds gets an
/// answer. A plugin takes less than a millisecond.
pub const ANSWER_LIMIT: Duration = Duration::from_millis(1500);

/// Why a status query failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StatusError {
    /// A process listens and does not answer in time, or has no room for one more connection or
    /// call.
    #[error("plugin is busy: it did not answer within {:.1} s", ANSWER_LIMIT.as_secs_f64())]
    Busy,
    /// The socket does not exist, or no process listens on it.
    #[error("no process listens on the socket")]
    Absent(#[source] io::Error),
    /// The socket may not be used, the connection was lost, or the process that listens does not
    /// know the call, because it is another plugin or another version.
    #[error("cannot query plugin: {0}")]
    Failed(String),
}

impl StatusError {
    fn of_connect(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Self::Absent(error),
            // On Linux, too many connections wait to be accepted.
            io::ErrorKind::WouldBlock => Self::Busy,
            _ => Self::Failed(error.to_string()),
        }
    }

    fn of_call(status: &Status) -> Self {
        match status.code() {
            Code::ResourceExhausted | Code::DeadlineExceeded => Self::Busy,
            Code::Unimplemented => Self::Failed("the plugin has another version".to_owned()),
            _ => Self::Failed(connection::lost(status).unwrap_or(status.message().to_owned())),
        }
    }
}

/// The sockets in `directory` that this plugin creates for one of `prefixes`, in a fixed order. A
/// process that was killed leaves its sockets behind.
///
/// The prefixes are [`default_socket_prefix`](crate::default_socket_prefix) of each resource,
/// unless the plugin chooses others.
pub fn find_sockets(directory: &Path, prefixes: &[&str]) -> io::Result<Vec<PathBuf>> {
    let mut sockets = UnixSockets.list(directory)?;
    sockets.retain(|socket| prefixes.iter().any(|prefix| has_prefix(prefix, socket)));
    sockets.sort();
    Ok(sockets)
}

/// Queries the plugins behind `sockets`, all at the same time, and returns the result of each
/// socket in the same order. Takes at most [`ANSWER_LIMIT`].
pub async fn query_all<T: Transport>(
    transport: &T,
    sockets: &[PathBuf],
) -> Vec<Result<StatusReport, StatusError>> {
    let limit = Instant::now() + ANSWER_LIMIT;
    let queries = sockets.iter().map(|socket| async move {
        timeout_at(limit, query(transport, socket)).await.unwrap_or(Err(StatusError::Busy))
    });
    join_all(queries).await
}

async fn query<T: Transport>(transport: &T, path: &Path) -> Result<StatusReport, StatusError> {
    StatusConnection::open(transport, path).await?.get().await
}

/// A connection to a plugin, for a program that asks for its status again and again. Nothing here
/// limits the time that an answer takes; see [`ANSWER_LIMIT`].
#[derive(Debug)]
pub struct StatusConnection(StatusClient<Channel>);

impl StatusConnection {
    /// Connects to the plugin behind `socket`.
    ///
    /// # Errors
    /// See [`StatusError`].
    pub async fn open<T: Transport>(transport: &T, socket: &Path) -> Result<Self, StatusError> {
        let io = transport.connect(socket).await.map_err(StatusError::of_connect)?;
        let channel = connection::connect(io).await.map_err(StatusError::Failed)?;
        Ok(StatusConnection(StatusClient::new(channel)))
    }

    /// Asks for the status.
    ///
    /// # Errors
    /// See [`StatusError`].
    pub async fn get(&mut self) -> Result<StatusReport, StatusError> {
        let answer = self.0.get(StatusRequest {}).await;
        answer.map(tonic::Response::into_inner).map_err(|status| StatusError::of_call(&status))
    }
}
