//! The thread that reads the configuration again when its files have changed.
//!
//! A file that is missing for a moment is not a change: on Windows, the kubelet updates the volume
//! of a `ConfigMap` by removing a link and creating it again. Nobody waits for the thread.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use command_line::configuration::{FileState, Reading, read};
use command_line::file_poll::{FilePoll, INTERVAL};
use config::{Config, Flags};
use tokio::sync::mpsc;

use crate::DaemonError;

/// After this time a missing file is an error.
const MISSING_TIME: Duration = Duration::from_secs(5);

/// A configuration whose files have changed.
pub(crate) type Update = Result<Config, DaemonError>;

static READ_AGAIN: AtomicBool = AtomicBool::new(false);

/// Makes the thread read the files again, if it runs, although they look the same.
pub(crate) fn read_again() {
    READ_AGAIN.store(true, Ordering::Relaxed);
}

/// Starts the thread, for a process with these `flags`. The result ends only if it has panicked.
pub(crate) fn start(flags: Flags) -> io::Result<mpsc::UnboundedReceiver<Update>> {
    let (updates, received) = mpsc::unbounded_channel();
    let mut watched = WatchedFiles::new(MISSING_TIME);
    let mut update = watched.update(|| read(&flags));
    std::thread::Builder::new().name("configuration".to_owned()).spawn(move || {
        while !updates.is_closed() {
            if let Some(update) = update.take() {
                // Without a receiver, the process is ending.
                let _ = updates.send(update);
            }
            sleep(INTERVAL);
            watched.is_due |= READ_AGAIN.swap(false, Ordering::Relaxed);
            update = watched.update(|| read(&flags));
        }
    })?;
    Ok(received)
}

struct WatchedFiles {
    poll: FilePoll,
    missing_time: Duration,
    /// The files of the last valid configuration.
    in_use: Vec<PathBuf>,
    /// Whether to read them although they have not changed: the first time, when a signal asks for
    /// it, and while one of them is ignored because others may change it. Changed access rights do
    /// not change its size and times.
    is_due: bool,
}

impl WatchedFiles {
    fn new(missing_time: Duration) -> WatchedFiles {
        let poll = FilePoll::default();
        let in_use = Vec::new();
        WatchedFiles { poll, missing_time, in_use, is_due: true }
    }

    /// What `read` returns, if a file may have changed.
    fn update(&mut self, read: impl Fn() -> Reading) -> Option<Update> {
        let has_changed = self.poll.has_changed();
        if !has_changed && !self.is_due {
            return None;
        }
        let mut reading = read();
        if self.missing(&reading).is_some() {
            sleep(self.missing_time);
            reading = read();
        }
        let missing = self.missing(&reading).map(Path::to_owned);
        let Reading { result, files } = reading;
        self.poll.set_paths(files.keys().cloned().collect());
        self.is_due = files.values().any(|state| *state == FileState::Distrusted);
        if self.is_due && !has_changed {
            return None;
        }
        let config = match (result, missing) {
            (Err(error), _) => return Some(Err(error.into())),
            (Ok(_), Some(path)) => return Some(Err(DaemonError::ConfigurationGone(path))),
            (Ok(config), None) => config,
        };
        let read = files.into_iter().filter(|(_, state)| *state == FileState::Read);
        self.in_use = read.map(|(path, _)| path).collect();
        Some(Ok(config))
    }

    /// A file of the last valid configuration that is missing now.
    fn missing<'a>(&self, reading: &'a Reading) -> Option<&'a Path> {
        let missing = reading.files.iter().filter(|(_, state)| **state != FileState::Read);
        missing.map(|(path, _)| path.as_path()).find(|path| self.in_use.iter().any(|p| p == path))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn reading(state: FileState) -> Reading {
        let files = [("config.yaml".into(), state)].into();
        Reading { result: command_line::configuration::load(&Flags::default()), files }
    }

    /// The error, or an empty text for a valid configuration.
    fn text(update: Option<Update>) -> Option<String> {
        update.map(|update| {
            update.err().map_or_else(String::new, |failure| command_line::error_chain(&failure))
        })
    }

    #[test]
    fn a_missing_file_is_an_error_only_if_it_stays_missing() {
        let mut watched = WatchedFiles::new(Duration::ZERO);
        assert!(watched.update(|| reading(FileState::Read)).unwrap().is_ok());
        for (stays_missing, error) in [
            (false, ""),
            (true, "the configuration file `config.yaml` is missing or no longer trusted"),
        ] {
            watched.is_due = true;
            let reads = Cell::new(0);
            let update = watched.update(|| {
                reads.set(reads.get() + 1);
                let is_read = reads.get() > 1 && !stays_missing;
                reading(if is_read { FileState::Read } else { FileState::Missing })
            });
            assert_eq!((text(update).as_deref(), reads.get()), (Some(error), 2));
        }
    }

    #[test]
    fn a_file_that_is_not_trusted_is_read_again() {
        let mut watched = WatchedFiles::new(Duration::ZERO);
        let mut is_read =
            |state| watched.update(|| reading(state)).is_some_and(|update| update.is_ok());
        assert!(!is_read(FileState::Distrusted));
        assert!(is_read(FileState::Distrusted), "its path was not known before");
        assert!(!is_read(FileState::Distrusted), "it is still ignored");
        assert!(is_read(FileState::Missing));
        assert!(!is_read(FileState::Missing), "it is trusted already");
    }
}
