//! The thread that reads the configuration again when its files have changed.
//!
//! A file that is missing for a moment is not a change: on Windows, the kubelet updates the volume of a
//! `ConfigMap` by removing a link and creating it again. Nobody waits for the thread.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use cli::Failure;
use inventory_source::{FilePoll, INTERVAL};
use settings::Config;
use tokio::sync::mpsc;

use crate::config::{ConfigSource, FileContent, FileRead, Reading};

/// After this time a missing file is an error.
const MISSING_TIME: Duration = Duration::from_secs(60);

/// A configuration to handle.
pub(crate) struct Update {
    /// Whether an administrator requested to read it.
    pub(crate) is_requested: bool,
    pub(crate) result: Result<Box<Config>, Failure>,
}

/// The side of the thread's owner.
pub(crate) struct ConfigWatch {
    /// Requests to read the configuration although no file has changed.
    pub(crate) requests: Sender<()>,
    /// Ends only if the thread has panicked.
    pub(crate) updates: mpsc::UnboundedReceiver<Update>,
}

impl ConfigWatch {
    /// Starts the thread. `files` are the files of the configuration in use.
    pub(crate) fn start(source: ConfigSource, files: Vec<FileRead>) -> io::Result<ConfigWatch> {
        let (requests, requested) = channel();
        let (send, updates) = mpsc::unbounded_channel();
        std::thread::Builder::new().name("configuration".to_owned()).spawn(move || {
            run(&source, ReadFilter::new(files), &requested, &send);
        })?;
        Ok(ConfigWatch { requests, updates })
    }
}

fn run(
    source: &ConfigSource,
    mut filter: ReadFilter,
    requests: &Receiver<()>,
    updates: &mpsc::UnboundedSender<Update>,
) {
    // They may have changed since they were read.
    let mut poll = FilePoll::unknown(filter.paths());
    loop {
        let is_requested = match requests.recv_timeout(INTERVAL) {
            Ok(()) => true,
            Err(RecvTimeoutError::Timeout) => false,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        if !is_requested && !poll.has_changed() && !filter.is_due() {
            continue;
        }
        let before = filter.paths();
        let update = filter.update(is_requested, source.read());
        if filter.paths() != before {
            poll = FilePoll::unknown(filter.paths());
        }
        if update.is_some_and(|update| updates.send(update).is_err()) {
            return;
        }
    }
}

/// Lets a configuration pass that differs from the last one, and one that was requested.
struct ReadFilter {
    /// What was read last.
    last: Vec<FileRead>,
    /// The files of the last valid configuration.
    in_use: Vec<PathBuf>,
    /// Since when one of them has been missing.
    missing_since: Option<Instant>,
}

impl ReadFilter {
    fn new(files: Vec<FileRead>) -> ReadFilter {
        ReadFilter { in_use: existing(&files), last: files, missing_since: None }
    }

    /// The files to look at.
    fn paths(&self) -> Vec<PathBuf> {
        self.last.iter().map(|file| file.path.clone()).collect()
    }

    /// Whether a file has been missing for so long that this is to be reported.
    fn is_due(&self) -> bool {
        self.missing_since.is_some_and(|since| since.elapsed() >= MISSING_TIME)
    }

    fn update(&mut self, is_requested: bool, reading: Reading) -> Option<Update> {
        let Reading { result, files } = reading;
        let missing = self.missing(&files).map(Path::to_owned);
        let is_due = is_requested || self.is_due();
        let result = match missing {
            Some(_) if self.missing_since.is_none() && !is_due => {
                self.missing_since = Some(Instant::now());
                return None;
            }
            Some(_) if !is_due => return None,
            Some(path) => Err(missing_failure(&path)),
            None => result,
        };
        self.missing_since = None;
        if files == self.last && !is_requested {
            return None;
        }
        if result.is_ok() {
            self.in_use = existing(&files);
        }
        self.last = files;
        Some(Update { is_requested, result: result.map(Box::new) })
    }

    /// A file in use that does not exist now.
    fn missing<'a>(&self, files: &'a [FileRead]) -> Option<&'a Path> {
        let is_missing = |file: &&FileRead| {
            file.content == FileContent::Missing && self.in_use.contains(&file.path)
        };
        files.iter().find(is_missing).map(|file| file.path.as_path())
    }
}

fn missing_failure(path: &Path) -> Failure {
    Failure::usage(anyhow::anyhow!("the configuration file `{}` is missing", path.display()))
        .hint("restore the file, or restart the plugin to run without it")
}

fn existing(files: &[FileRead]) -> Vec<PathBuf> {
    let existing = files.iter().filter(|file| file.content != FileContent::Missing);
    existing.map(|file| file.path.clone()).collect()
}

#[cfg(test)]
mod tests {
    use settings::ConfigChoice;

    use super::*;

    const FILE: &str = "/etc/config.yaml";

    /// A reading of one file; 0 means that it is missing.
    fn reading(content: u64) -> Reading {
        let content = if content == 0 { FileContent::Missing } else { FileContent::Hash(content) };
        let result = match content {
            FileContent::Missing => Err(Failure::usage(anyhow::anyhow!("no such file"))),
            _ => ConfigSource::new(&[], ConfigChoice::PerModel, None).read().result,
        };
        Reading { result, files: vec![FileRead { path: FILE.into(), content }] }
    }

    fn filter() -> ReadFilter {
        ReadFilter::new(reading(1).files)
    }

    #[test]
    fn only_other_content_or_a_request_is_an_update() {
        let mut filter = filter();
        let mut passes =
            |is_requested, content| filter.update(is_requested, reading(content)).is_some();
        assert!(!passes(false, 1));
        assert!(passes(false, 2));
        assert!(!passes(false, 2));
        assert!(passes(true, 2));
        assert!(passes(false, 1));
    }

    #[test]
    fn a_missing_file_is_no_update_unless_it_stays_missing() {
        let mut filter = filter();
        let mut update = |is_requested, content, missing_for: Duration| {
            if let Some(since) = &mut filter.missing_since {
                *since = since.checked_sub(missing_for).unwrap();
            }
            let update = filter.update(is_requested, reading(content))?;
            Some(update.result.err().map(|failure| failure.chain()))
        };
        let missing = Some(Some(format!("the configuration file `{FILE}` is missing")));
        let (short, long) = (Duration::from_secs(5), MISSING_TIME);
        assert_eq!(update(false, 0, short), None);
        assert_eq!(update(false, 1, short), None);
        assert_eq!(update(false, 0, short), None);
        assert_eq!(update(false, 0, long), missing);
        assert_eq!(update(false, 0, short), None);
        assert_eq!(update(false, 0, long), None, "reported");
        assert_eq!(update(true, 0, short), missing);
        // The same content: it is valid again.
        assert_eq!(update(false, 1, short), Some(None));
    }

    #[test]
    fn a_file_that_was_never_there_may_be_missing() {
        let mut filter = ReadFilter::new(reading(0).files);
        assert!(filter.update(false, reading(0)).is_none());
        assert!(filter.update(false, reading(1)).is_some());
    }
}
