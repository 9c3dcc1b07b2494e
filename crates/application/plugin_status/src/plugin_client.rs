//! Follows what the daemons of this node report, for a program that runs beside them.
//!
//! It keeps one connection to each daemon and asks once a second. Other programs on the node could
//! put sockets into the directory, so it believes only those of administrators and of its account.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use device_plugin::UnixSockets;
use device_plugin::status::{ANSWER_LIMIT, StatusConnection, StatusError, StatusReport};
use device_plugin::unix_sockets::is_trusted;
use futures_util::future::join_all;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::answering_daemons::{Answers, NodeState, sockets};
use process::logging::Repeated;

/// How often the daemons are asked.
const INTERVAL: Duration = Duration::from_secs(1);

type Answer = Result<StatusReport, StatusError>;

/// The connections to the daemons of a node.
pub struct PluginClient {
    directory: PathBuf,
    connections: BTreeMap<PathBuf, Connected>,
    /// Further sockets of the daemons to which there is a connection, each with the number of its
    /// daemon.
    others: BTreeMap<PathBuf, u64>,
    /// The sockets that were reported because they belong to another account.
    distrusted: BTreeSet<PathBuf>,
    failures: Repeated<String>,
}

struct Connected {
    connection: StatusConnection,
    instance: u64,
}

impl PluginClient {
    /// A client of the daemons with sockets in `directory`, without connections.
    #[must_use]
    pub fn new(directory: PathBuf) -> PluginClient {
        PluginClient {
            directory,
            connections: BTreeMap::new(),
            others: BTreeMap::new(),
            distrusted: BTreeSet::new(),
            failures: Repeated::default(),
        }
    }

    /// Publishes what the daemons list together whenever it changes.
    pub async fn follow(mut self, states: watch::Sender<NodeState>) -> Infallible {
        let mut ticks = interval(INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let now = self.ask().await.node_state();
            states.send_if_modified(|before| {
                let is_changed = *before != now;
                *before = now;
                is_changed
            });
        }
    }

    /// Asks every daemon. Takes at most twice [`ANSWER_LIMIT`].
    pub async fn ask(&mut self) -> Answers {
        let sockets = match sockets(&self.directory, &[]) {
            Ok(sockets) => sockets,
            Err(error) => {
                self.directory_failed(&error);
                Vec::new()
            }
        };
        self.distrusted.retain(|socket| sockets.contains(socket));
        self.connections.retain(|socket, _| sockets.contains(socket));
        let mut answers = self.ask_connected().await;
        let instances: BTreeSet<u64> =
            self.connections.values().map(|connected| connected.instance).collect();
        self.others
            .retain(|socket, instance| sockets.contains(socket) && instances.contains(instance));
        let is_known =
            |socket: &PathBuf| answers.contains_key(socket) || self.others.contains_key(socket);
        let mut new = sockets;
        new.retain(|socket| !is_known(socket));
        new.retain(|socket| self.believes(socket));
        answers.extend(self.connect(new).await);
        Answers::of(answers)
    }

    /// Asks over the connections that exist. One that was lost is dropped and has no answer, so its
    /// socket is new again.
    async fn ask_connected(&mut self) -> BTreeMap<PathBuf, Answer> {
        let asked = self.connections.iter_mut().map(|(socket, connected)| async move {
            let answer = timeout(ANSWER_LIMIT, connected.connection.get()).await;
            (socket.clone(), answer.unwrap_or(Err(StatusError::Busy)))
        });
        let mut answers: BTreeMap<PathBuf, Answer> = join_all(asked).await.into_iter().collect();
        answers.retain(|_, answer| matches!(answer, Ok(_) | Err(StatusError::Busy)));
        self.connections.retain(|socket, _| answers.contains_key(socket));
        for (socket, answer) in &answers {
            if let (Some(connected), Ok(status)) = (self.connections.get_mut(socket), answer) {
                connected.instance = status.instance;
            }
        }
        answers
    }

    /// Connects to these sockets, and keeps one connection to each daemon.
    async fn connect(&mut self, sockets: Vec<PathBuf>) -> Vec<(PathBuf, Answer)> {
        let opened =
            join_all(sockets.iter().map(|socket| timeout(ANSWER_LIMIT, open(socket)))).await;
        let mut answers = Vec::new();
        for (socket, opened) in sockets.into_iter().zip(opened) {
            let answer = match opened.unwrap_or(Err(StatusError::Busy)) {
                Ok((connection, status)) => {
                    self.keep(&socket, connection, status.instance);
                    Ok(status)
                }
                Err(error) => Err(error),
            };
            answers.push((socket, answer));
        }
        answers
    }

    fn keep(&mut self, socket: &Path, connection: StatusConnection, instance: u64) {
        let is_known = self.connections.values().any(|connected| connected.instance == instance);
        if is_known && instance != 0 {
            self.others.insert(socket.to_owned(), instance);
        } else {
            self.connections.insert(socket.to_owned(), Connected { connection, instance });
        }
    }

    /// Whether no ordinary user of the node can have created the socket. One that cannot be
    /// inspected was removed, or is not believed.
    fn believes(&mut self, socket: &Path) -> bool {
        let is_trusted = is_trusted(socket);
        let is_gone =
            is_trusted.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
        if matches!(is_trusted, Ok(true)) || is_gone {
            return !is_gone;
        }
        if self.distrusted.insert(socket.to_owned()) {
            let error = is_trusted.err().map(|error| error.to_string());
            tracing::warn!(
                socket = %socket.display(),
                error,
                "not asking a socket that no administrator owns"
            );
        }
        false
    }

    fn directory_failed(&mut self, error: &io::Error) {
        let error = error.to_string();
        if self.failures.is_due(error.clone()) {
            let directory = self.directory.display();
            tracing::warn!(%directory, error, "cannot find the plugin");
        }
    }
}

async fn open(socket: &Path) -> Result<(StatusConnection, StatusReport), StatusError> {
    let mut connection = StatusConnection::open(&UnixSockets, socket).await?;
    let status = connection.get().await?;
    Ok((connection, status))
}

#[cfg(unix)]
#[cfg(test)]
mod tests;
