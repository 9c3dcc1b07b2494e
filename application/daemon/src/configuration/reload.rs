//! Changes of the configuration while the daemon runs: which are applied, and what became of them.
//!
//! The configurations come from `watch`. Valid ones with a different effect are applied, and
//! [`ReloadStatus`] says what became of each.

use anyhow::Context as _;
use command_line::Failure;
use config::{Config, Effective};
use tokio::sync::{mpsc, watch};

use crate::configuration::source::{self, ConfigSource};
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

/// A change of the configuration.
pub enum ConfigChange {
    /// A valid configuration: answer with [`ConfigReload::applied`] or [`ConfigReload::rejected`].
    Valid(Box<Config>),
    /// The configuration stayed the same; only the status of the reloads has changed.
    Status,
    /// The thread that follows the files has panicked.
    Ended,
}

impl ConfigReload {
    /// A configuration that does not change.
    #[must_use]
    pub fn none() -> ConfigReload {
        ConfigReload { following: None, status: watch::Sender::default() }
    }

    /// Follows a configuration that was `active` at the start.
    pub fn start(source: ConfigSource, active: Config) -> Result<ConfigReload, Failure> {
        let updates = start_watch(source)
            .context("cannot start the thread that follows the configuration")
            .map_err(Failure::runtime)?;
        let following = Some(Following { active, updates });
        Ok(ConfigReload { following, ..ConfigReload::none() })
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

    /// The next change. Never completes if the configuration does not change. Nothing is lost if
    /// this is dropped before it completes.
    pub async fn next(&mut self) -> ConfigChange {
        loop {
            let Some(following) = &mut self.following else { return std::future::pending().await };
            let Some(update) = following.updates.recv().await else { return ConfigChange::Ended };
            if let Some(change) = self.evaluate(update) {
                return change;
            }
        }
    }

    fn evaluate(&mut self, update: Update) -> Option<ConfigChange> {
        let following = self.following.as_mut()?;
        match update {
            Err(failure) => {
                // The file was written again with the same mistake.
                if self.status.borrow().last_error.as_ref() == Some(&reported(&failure)) {
                    return None;
                }
                self.rejected(&failure);
            }
            Ok(config) if following.active.policy != config.policy => {
                return Some(ConfigChange::Valid(config));
            }
            Ok(config) => {
                // The policy is the same, but its keys may be on other lines.
                log_changes(&following.active, &config);
                following.active = *config;
                if !self.status.send_if_modified(|status| status.last_error.take().is_some()) {
                    return None;
                }
                tracing::info!("the active configuration is up to date");
            }
        }
        Some(ConfigChange::Status)
    }

    /// Records that the configuration was applied.
    pub fn applied(&mut self, config: Config) {
        let Some(following) = &mut self.following else { return };
        log_changes(&following.active, &config);
        following.active = config;
        self.status.send_modify(|status| {
            status.applied += 1;
            status.last_error = None;
        });
        tracing::info!(applied = self.status.borrow().applied, "configuration applied");
    }

    /// Records that the configuration cannot be applied.
    pub fn rejected(&mut self, failure: &Failure) {
        self.status.send_modify(|status| {
            status.rejected += 1;
            status.last_error = Some(reported(failure));
        });
        let (error, hint) = (failure.chain(), failure.hint_text());
        let rejected = self.status.borrow().rejected;
        tracing::warn!(
            error,
            hint,
            rejected,
            "configuration rejected; the previous configuration stays active"
        );
    }
}

/// Logs the values and notices that `before` does not have.
fn log_changes(before: &Config, after: &Config) {
    for Effective { model, key, value, origin } in &after.effective {
        let is_known = before
            .effective
            .iter()
            .any(|old| (old.model, old.key, &old.value) == (*model, key, value));
        if !is_known {
            let model = model.map(<&str>::from);
            tracing::info!(model, key, value, %origin, "configuration changed");
        }
    }
    for notice in after.notices.iter().filter(|notice| !before.notices.contains(notice)) {
        source::log_notice(notice);
    }
}

/// An error for clients, with its hint.
fn reported(failure: &Failure) -> String {
    let mut text: String = failure.chain().chars().take(MAX_ERROR).collect();
    if let Some(hint) = failure.hint_text() {
        text.push_str("; hint: ");
        text.push_str(hint);
    }
    text
}

#[cfg(test)]
mod tests;
