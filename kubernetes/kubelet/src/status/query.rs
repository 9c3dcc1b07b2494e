//! Queries the status of running plugins.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};
use tonic::{Code, Status};

use super::v1::status_client::StatusClient;
use super::v1::{StatusReport, StatusRequest};
use crate::channel;
use crate::socket_names::has_prefix;
use crate::transport::Transport;

/// How long all queries together may take, so that a probe with a limit of two seconds gets an
/// answer. A plugin takes less than a millisecond.
pub const ANSWER_LIMIT: Duration = Duration::from_millis(1500);

/// Why a status query failed.
#[derive(Debug, thiserror::Error)]
pub enum StatusError {
    /// The socket does not exist, or no process listens on it.
    #[error("no process listens on the socket")]
    Absent(#[source] io::Error),
    /// A process listens and does not answer in time, or has no room for one more connection or
    /// call.
    #[error("plugin is busy: it did not answer within {:.1} s", ANSWER_LIMIT.as_secs_f64())]
    Busy,
    /// The socket may not be used, or the connection was lost.
    #[error("cannot query plugin")]
    Unreachable(#[source] io::Error),
    /// The process that listens does not know the call: another plugin, or an earlier version.
    #[error("another program is listening on this socket: {}", .0.message())]
    OtherProgram(Status),
}

impl StatusError {
    fn of_connect(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Self::Absent(error),
            // Linux: too many connections wait to be accepted.
            io::ErrorKind::WouldBlock => Self::Busy,
            _ => Self::Unreachable(error),
        }
    }

    fn of_call(status: Status) -> Self {
        if let Some(lost) = channel::lost(&status) {
            return Self::Unreachable(io::Error::other(lost));
        }
        match status.code() {
            Code::ResourceExhausted | Code::DeadlineExceeded => Self::Busy,
            Code::Unavailable | Code::Cancelled => {
                Self::Unreachable(io::Error::other(status.message().to_owned()))
            }
            _ => Self::OtherProgram(status),
        }
    }
}

/// The sockets in `directory` that this plugin creates for one of `prefixes`, in a fixed order. A
/// process that was killed leaves its sockets behind.
pub fn find_sockets(directory: &Path, prefixes: &[&str]) -> io::Result<Vec<PathBuf>> {
    let mut sockets = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
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
    let mut queries = JoinSet::new();
    for (index, socket) in sockets.iter().enumerate() {
        let (transport, socket) = (transport.clone(), socket.clone());
        queries.spawn(async move {
            let answer = timeout_at(limit, query(&transport, &socket)).await;
            (index, answer.unwrap_or(Err(StatusError::Busy)))
        });
    }
    let mut answers = queries.join_all().await;
    answers.sort_by_key(|(index, _)| *index);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

async fn query<T: Transport>(transport: &T, path: &Path) -> Result<StatusReport, StatusError> {
    let io = transport.connect(path).await.map_err(StatusError::of_connect)?;
    let lost = |error| StatusError::Unreachable(io::Error::other(error));
    let channel = channel::connect(io).await.map_err(lost)?;
    let answer = StatusClient::new(channel).get(StatusRequest {}).await;
    answer.map(tonic::Response::into_inner).map_err(StatusError::of_call)
}
