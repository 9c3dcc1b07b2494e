//! The thread that reads the configuration again when its files have changed.
//!
//! A file that is missing for a moment is not a change: on Windows, the kubelet updates the volume of a
//! `ConfigMap` by removing a link and creating it again. Nobody waits for the thread.

use std::io;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::cli::Failure;
use crate::file_poll::{FilePoll, INTERVAL};
use config::Config;
use tokio::sync::mpsc;

use crate::daemon::config_source::{ConfigFile, ConfigSource, Reading};

/// After this time a missing file is an error.
const MISSING_TIME: Duration = Duration::from_secs(60);

/// How often a file that is ignored because others may change it is checked again: changed access
/// rights leave its size and times as they are.
const TRUST_INTERVAL: Duration = Duration::from_secs(10);

/// A configuration whose files have changed.
pub(crate) type Update = Result<Box<Config>, Failure>;

/// Starts the thread. `files` are the files of the configuration in use. The result ends only if the
/// thread has panicked.
pub(crate) fn start(
    source: ConfigSource,
    files: &[ConfigFile],
) -> io::Result<mpsc::UnboundedReceiver<Update>> {
    let (updates, received) = mpsc::unbounded_channel();
    let mut watched = WatchedFiles::new(files);
    std::thread::Builder::new().name("configuration".to_owned()).spawn(move || {
        while !updates.is_closed() {
            sleep(INTERVAL);
            if let Some(update) = watched.update(|| source.read()) {
                // Without a receiver, the process is ending.
                let _ = updates.send(update);
            }
        }
    })?;
    Ok(received)
}

struct WatchedFiles {
    poll: FilePoll,
    paths: Vec<PathBuf>,
    /// The files of the last valid configuration.
    in_use: Vec<PathBuf>,
    /// Since when one of them has been missing.
    missing_since: Option<Instant>,
    /// When it was found that one is not trusted.
    distrusted_at: Option<Instant>,
}

impl WatchedFiles {
    fn new(files: &[ConfigFile]) -> WatchedFiles {
        let (paths, in_use) = (paths(files), existing(files));
        // They may have changed since they were read.
        let poll = FilePoll::unknown(paths.clone());
        WatchedFiles { poll, paths, in_use, missing_since: None, distrusted_at: None }
    }

    /// What `read` returns, if a file has changed or is still missing.
    fn update(&mut self, read: impl FnOnce() -> Reading) -> Option<Update> {
        let is_due = self.missing_since.is_some_and(|since| since.elapsed() >= MISSING_TIME);
        let is_checked = self.distrusted_at.is_some_and(|at| at.elapsed() >= TRUST_INTERVAL);
        if !self.poll.has_changed() && !is_due && !is_checked {
            return None;
        }
        let Reading { result, files, has_distrusted } = read();
        self.distrusted_at = has_distrusted.then(Instant::now);
        if paths(&files) != self.paths {
            self.paths = paths(&files);
            self.poll = FilePoll::unknown(self.paths.clone());
        }
        let is_missing = |file: &&ConfigFile| !file.exists && self.in_use.contains(&file.path);
        if let Some(missing) = files.iter().find(is_missing) {
            if is_due {
                self.missing_since = None;
                return Some(Err(missing_failure(&missing.path)));
            }
            self.missing_since.get_or_insert_with(Instant::now);
            return None;
        }
        self.missing_since = None;
        if result.is_ok() {
            self.in_use = existing(&files);
        }
        Some(result.map(Box::new))
    }
}

fn missing_failure(path: &Path) -> Failure {
    let path = path.display();
    Failure::usage(anyhow::anyhow!(
        "the configuration file `{path}` is missing or no longer trusted"
    ))
    .hint("restore the file and its access rights, or restart the plugin to run without it")
}

fn paths(files: &[ConfigFile]) -> Vec<PathBuf> {
    files.iter().map(|file| file.path.clone()).collect()
}

fn existing(files: &[ConfigFile]) -> Vec<PathBuf> {
    files.iter().filter(|file| file.exists).map(|file| file.path.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_file_is_an_error_if_it_stays_missing() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.yaml");
        let write = || std::fs::write(&file, "multitenancy: 2").unwrap();
        write();
        let source = ConfigSource::new(&[], Some(file.clone()), None);
        let mut watched = WatchedFiles::new(&source.read().files);
        let mut update = |missing_for: Duration| {
            watched.missing_since =
                watched.missing_since.map(|at| at.checked_sub(missing_for).unwrap());
            let update = watched.update(|| source.read())?;
            Some(update.err().map(|failure| failure.chain()))
        };
        let missing =
            format!("the configuration file `{}` is missing or no longer trusted", file.display());
        assert_eq!(update(Duration::ZERO), Some(None), "it may have changed since it was read");
        assert_eq!(update(Duration::ZERO), None);
        for _ in 0..2 {
            std::fs::remove_file(&file).unwrap();
            assert_eq!(update(Duration::ZERO), None);
            assert_eq!(update(Duration::from_secs(5)), None);
            assert_eq!(update(MISSING_TIME), Some(Some(missing.clone())));
            assert_eq!(update(MISSING_TIME), None, "it was reported");
            write();
            assert_eq!(update(Duration::ZERO), Some(None));
        }
    }

    #[test]
    fn a_file_that_is_not_trusted_is_checked_again() {
        let folder = tempfile::tempdir().unwrap();
        let source = ConfigSource::new(&[], Some(folder.path().join("config.yaml")), None);
        let mut watched = WatchedFiles::new(&source.read().files);
        let mut is_read = |has_distrusted, passed: Duration| {
            watched.distrusted_at = watched.distrusted_at.map(|at| at.checked_sub(passed).unwrap());
            watched.update(|| Reading { has_distrusted, ..source.read() }).is_some()
        };
        assert!(is_read(true, Duration::ZERO), "it may have changed since the start");
        assert!(!is_read(true, Duration::ZERO));
        assert!(is_read(true, TRUST_INTERVAL));
        assert!(is_read(false, TRUST_INTERVAL));
        assert!(!is_read(false, TRUST_INTERVAL), "it is trusted now");
    }
}
