//! Queries the status of running plugins.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::{Instant, timeout_at};
use tonic::{Code, Status};

use super::v1::status_client::StatusClient;
use super::v1::{StatusReport, StatusRequest};
use crate::channel;
use crate::socket_names::has_prefix;
use crate::text::error_chain;
use crate::transport::Transport;

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
    /// The socket may not be used, the connection was lost, or the process that listens does not know
    /// the call: another plugin, or another version.
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
            _ => Self::Failed(channel::lost(status).unwrap_or(status.message().to_owned())),
        }
    }
}

/// The sockets in `directory` that this plugin creates for one of `prefixes`, in a fixed order:
/// [`default_socket_prefix`](crate::default_socket_prefix) of each resource, unless the plugin chooses
/// others. A process that was killed leaves its sockets behind.
pub fn find_sockets(directory: &Path, prefixes: &[&str]) -> io::Result<Vec<PathBuf>> {
    let mut sockets = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let file = entry.file_name();
        let name = file.to_string_lossy();
        if prefixes.iter().any(|prefix| has_prefix(prefix, &name)) {
            sockets.push(entry.path());
        }
    }
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
    let io = transport.connect(path).await.map_err(StatusError::of_connect)?;
    let channel =
        channel::connect(io).await.map_err(|error| StatusError::Failed(error_chain(&error)))?;
    let answer = StatusClient::new(channel).get(StatusRequest {}).await;
    answer.map(tonic::Response::into_inner).map_err(|status| StatusError::of_call(&status))
}
