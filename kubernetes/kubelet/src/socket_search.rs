//! Searches the device plugin directory for sockets of other processes, and removes those that no
//! process listens on.
//!
//! A process that is killed leaves its socket behind. No process listens on it, and nothing else
//! removes it until the kubelet starts again.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::other_daemons::{Answer, OtherSocket, file_name};
use crate::socket_names;
use crate::status::{StatusError, query_all};
use crate::transport::Transport;

/// How many sockets are queried in one search. A node has one or two daemons with a few sockets
/// each.
const MAX_QUERIED: usize = 32;

/// What a search found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// The sockets that a process listens on.
    pub(crate) others: Vec<OtherSocket>,
    /// The sockets that refused the connection and still exist.
    pub(crate) refused: BTreeSet<PathBuf>,
}

/// The sockets in `directory` whose processes may serve the resources with `prefixes`, newest first,
/// without `own`. If the directory cannot be read, there are none.
pub(crate) fn sockets<T: Transport>(
    transport: &T,
    directory: &Path,
    prefixes: &[&str],
    own: &BTreeSet<&Path>,
) -> Vec<PathBuf> {
    let mut paths = transport.list(directory).unwrap_or_default();
    paths.retain(|path| {
        let name = file_name(path);
        prefixes.iter().any(|prefix| socket_names::may_serve(prefix, &name))
            && !own.contains(path.as_path())
    });
    paths.sort_unstable_by(|a, b| b.cmp(a));
    paths.truncate(MAX_QUERIED);
    paths
}

/// Queries the processes behind `sockets`. Removes the sockets that refuse the connection now and
/// are in `refused`, which did so in the previous search: a socket that is being created refuses
/// connections for a moment.
pub(crate) async fn query<T: Transport>(
    transport: T,
    sockets: Vec<PathBuf>,
    refused: BTreeSet<PathBuf>,
) -> Found {
    let mut found = Found::default();
    let answers = query_all(&transport, &sockets).await;
    for (path, answer) in sockets.into_iter().zip(answers) {
        let answer = match answer {
            Ok(report) => Answer::Report(report),
            Err(StatusError::OtherProgram(_)) => Answer::UnknownCall,
            Err(StatusError::Busy | StatusError::Unreachable(_)) => Answer::Nothing,
            Err(StatusError::Absent(error)) => {
                if error.kind() == ErrorKind::ConnectionRefused {
                    if !refused.contains(&path) {
                        found.refused.insert(path);
                    } else if transport.remove(&path).is_ok() {
                        tracing::info!(socket = %path.display(), "removed stale socket");
                    }
                }
                continue;
            }
        };
        found.others.push(OtherSocket { path, answer });
    }
    found
}
