//! Changes of the configuration while the daemon runs: which are applied, and what became of them.
//!
//! The configurations come from `watch`. Valid ones with a different effect are applied, and
//! [`ReloadStatus`] says what became of each.

use command_line::error_chain;
use config::{Config, Flags};
use devices::DriverModel;
use tokio::sync::{mpsc, watch};

use process::ProcessError;

use crate::DaemonError;
use crate::configuration::log;
use crate::configuration::watch::{Update, start as start_watch};

/// The longest error that is reported to a client, in characters. An error may quote the file.
const MAX_ERROR: usize = 1024;

/// What became of the configurations that were read since the start.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ReloadStatus {
    /// How many changes of the configuration were applied.
    pub applied: u64,
    /// How many changes of the configuration were rejected.
    pub rejected: u64,
    /// Why the newest one is not active, if it is not.
    pub last_error: Option<String>,
}

/// The configuration of a daemon and its changes.
pub struct ConfigReload {
    following: Option<Following>,
    status: watch::Sender<ReloadStatus>,
}

struct Following {
    active: Config,
    updates: mpsc::UnboundedReceiver<Update>,
}

impl ConfigReload {
    /// A configuration that does not change.
    #[must_use]
    pub fn none() -> ConfigReload {
        ConfigReload { following: None, status: watch::Sender::default() }
    }

    /// Follows the configuration of a process with these `flags`, which was `active` at the start.
    pub fn start(flags: Flags, active: Config) -> Result<ConfigReload, DaemonError> {
        let updates = start_watch(flags).map_err(|source| ProcessError::System {
            what: "start the thread that follows the configuration",
            source,
        })?;
        Ok(ConfigReload::following(active, updates))
    }

    /// Follows these updates of a configuration, which was `active` at the start.
    pub(crate) fn following(
        active: Config,
        updates: mpsc::UnboundedReceiver<Update>,
    ) -> ConfigReload {
        ConfigReload { following: Some(Following { active, updates }), ..ConfigReload::none() }
    }

    /// The status and its changes.
    #[must_use]
    pub fn status(&self) -> watch::Receiver<ReloadStatus> {
        self.status.subscribe()
    }

    /// Why the newest configuration is not active, if it is not.
    #[must_use]
    pub fn last_error(&self) -> Option<String> {
        self.status.borrow().last_error.clone()
    }

    /// The driver models of another daemon that should run on this node.
    pub(crate) fn other_driver_models(&self) -> Vec<DriverModel> {
        let active = self.following.iter().map(|following| &following.active);
        active.flat_map(|config| config.other_driver_models.clone()).collect()
    }

    /// The next valid configuration, to answer with [`applied`](Self::applied) or
    /// [`rejected`](Self::rejected); `None` if only the status has changed. Never completes if the
    /// configuration does not change. Nothing is lost if this is dropped before it completes.
    ///
    /// # Errors
    /// The thread that follows the files has panicked.
    pub async fn next(&mut self) -> Result<Option<Config>, DaemonError> {
        loop {
            let Some(following) = &mut self.following else { return std::future::pending().await };
            match following.updates.recv().await {
                None => return Err(DaemonError::Panic("follows the configuration")),
                // The file was written again with the same mistake.
                Some(Err(error)) if self.status.borrow().last_error == Some(reported(&error)) => {}
                Some(Err(error)) => {
                    self.rejected(&error);
                    return Ok(None);
                }
                Some(Ok(config)) if following.active.policy != config.policy => {
                    return Ok(Some(config));
                }
                Some(Ok(config)) => {
                    // The policy is the same, but the file may be another one.
                    log::log_changes(&following.active, &config);
                    following.active = config;
                    if self.status.send_if_modified(|status| status.last_error.take().is_some()) {
                        tracing::info!("the active configuration is up to date");
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Records that the configuration was applied.
    pub fn applied(&mut self, config: Config) {
        let Some(following) = &mut self.following else { return };
        log::log_changes(&following.active, &config);
        following.active = config;
        self.status.send_modify(|status| {
            status.applied += 1;
            status.last_error = None;
        });
        tracing::info!(applied = self.status.borrow().applied, "configuration applied");
    }

    /// Records that the configuration cannot be applied.
    pub fn rejected(&mut self, error: &DaemonError) {
        self.status.send_modify(|status| {
            status.rejected += 1;
            status.last_error = Some(reported(error));
        });
        let hint = error.hint();
        let error = error_chain(error);
        let rejected = self.status.borrow().rejected;
        tracing::warn!(
            error,
            hint,
            rejected,
            "configuration rejected; the previous configuration stays active"
        );
    }
}

/// An error for clients, with its hint.
fn reported(error: &DaemonError) -> String {
    let mut text: String = error_chain(error).chars().take(MAX_ERROR).collect();
    if let Some(hint) = error.hint() {
        text.push_str("; hint: ");
        text.push_str(hint);
    }
    text
}

#[cfg(test)]
mod tests;
