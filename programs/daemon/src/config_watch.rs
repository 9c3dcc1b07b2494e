//! The thread that reads the configuration again when its files may have changed.
//!
//! In come notifications of the operating system and requests; out goes each configuration that
//! differs from the last one. A file that is missing is not a change: on Windows, the kubelet
//! updates the volume of a `ConfigMap` by removing a link and creating it again. Nobody waits for
//! the thread.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use cli::Failure;
use file_watch::{FileWatch, KeepsChanging};
use settings::Config;
use tokio::sync::mpsc;

use crate::config::{ConfigSource, FileContent, FileRead, Reading};

/// How often the files are read although no change was reported: network file systems report
/// none.
const REREAD_INTERVAL: Duration = Duration::from_secs(60);

/// Why the configuration is read, in the order of importance.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Trigger {
    /// The operating system reported a change.
    FilesChanged,
    /// [`REREAD_INTERVAL`] has passed.
    TimePassed,
    /// An administrator requested it.
    Requested,
}

/// A configuration to handle.
pub(crate) struct Update {
    pub(crate) trigger: Trigger,
    pub(crate) result: Result<Box<Config>, Failure>,
}

/// The side of the thread's owner.
pub(crate) struct ConfigWatch {
    pub(crate) requests: Sender<Trigger>,
    /// Ends only if the thread has panicked.
    pub(crate) updates: mpsc::UnboundedReceiver<Update>,
}

impl ConfigWatch {
    /// Starts the thread. `files` are the files of the configuration in use.
    pub(crate) fn start(source: ConfigSource, files: Vec<FileRead>) -> io::Result<ConfigWatch> {
        let (requests, triggers) = channel();
        let (send, updates) = mpsc::unbounded_channel();
        let notify = requests.clone();
        std::thread::Builder::new().name("configuration".to_owned()).spawn(move || {
            run(&source, ReadFilter::new(files), notify, &triggers, &send);
        })?;
        Ok(ConfigWatch { requests, updates })
    }
}

fn run(
    source: &ConfigSource,
    mut filter: ReadFilter,
    notify: Sender<Trigger>,
    triggers: &Receiver<Trigger>,
    updates: &mpsc::UnboundedSender<Update>,
) {
    let paths = filter.last.iter().map(|file| file.path.clone());
    let watch = FileWatch::start(paths, move || {
        // Without a receiver, this thread has ended.
        let _ = notify.send(Trigger::FilesChanged);
    });
    if let Err(error) = &watch {
        let interval_s = REREAD_INTERVAL.as_secs();
        tracing::warn!(%error, interval_s, "cannot watch the configuration files; reading them at intervals");
    }
    let read = || match &watch {
        Ok(watch) => watch.read_still(|| source.read()),
        Err(_) => Ok(source.read()),
    };
    // The files may have changed before they were watched.
    let mut trigger = Trigger::FilesChanged;
    loop {
        if let Some(update) = filter.update(trigger, read())
            && updates.send(update).is_err()
        {
            return;
        }
        trigger = match triggers.recv_timeout(REREAD_INTERVAL) {
            Ok(trigger) => triggers.try_iter().fold(trigger, Trigger::max),
            Err(RecvTimeoutError::Timeout) => Trigger::TimePassed,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        if updates.is_closed() {
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
    missing_reported: bool,
}

impl ReadFilter {
    fn new(files: Vec<FileRead>) -> ReadFilter {
        ReadFilter { in_use: existing(&files), last: files, missing_reported: false }
    }

    fn update(
        &mut self,
        trigger: Trigger,
        reading: Result<Reading, KeepsChanging>,
    ) -> Option<Update> {
        let Reading { result, files } = match reading {
            Ok(reading) => reading,
            Err(error) => {
                self.last.clear();
                let error = anyhow::Error::new(error).context("cannot read the configuration");
                return Some(Update { trigger, result: Err(Failure::runtime(error)) });
            }
        };
        if let Some(path) = self.missing(&files) {
            let path = path.to_owned();
            self.report_missing(trigger, &path);
            return None;
        }
        self.missing_reported = false;
        if files == self.last && trigger != Trigger::Requested {
            return None;
        }
        if result.is_ok() {
            self.in_use = existing(&files);
        }
        self.last = files;
        Some(Update { trigger, result: result.map(Box::new) })
    }

    /// A file in use that does not exist now.
    fn missing<'a>(&self, files: &'a [FileRead]) -> Option<&'a Path> {
        let is_missing = |file: &&FileRead| {
            file.content == FileContent::Missing && self.in_use.contains(&file.path)
        };
        files.iter().find(is_missing).map(|file| file.path.as_path())
    }

    /// A file that is being replaced returns long before the next read without a notification.
    fn report_missing(&mut self, trigger: Trigger, path: &Path) {
        let is_due = match trigger {
            Trigger::FilesChanged => false,
            Trigger::TimePassed => !self.missing_reported,
            Trigger::Requested => true,
        };
        if is_due {
            self.missing_reported = true;
            tracing::warn!(
                file = %path.display(),
                hint = "restore the file, or restart the plugin to run without it",
                "configuration file is missing; the current configuration stays active"
            );
        }
    }
}

fn existing(files: &[FileRead]) -> Vec<PathBuf> {
    let existing = files.iter().filter(|file| file.content != FileContent::Missing);
    existing.map(|file| file.path.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_log::Log;

    const FILE: &str = "/etc/config.yaml";

    /// A reading of one file; 0 means that it is missing.
    fn reading(content: u64) -> Reading {
        let content = if content == 0 { FileContent::Missing } else { FileContent::Hash(content) };
        let result = match content {
            FileContent::Missing => Err(Failure::usage(anyhow::anyhow!("no such file"))),
            _ => ConfigSource::new(&[], None, None).read().result,
        };
        Reading { result, files: vec![FileRead { path: FILE.into(), content }] }
    }

    fn filter() -> ReadFilter {
        ReadFilter::new(reading(1).files)
    }

    #[test]
    fn only_other_content_or_a_request_is_an_update() {
        let mut filter = filter();
        let mut passes = |trigger, content| filter.update(trigger, Ok(reading(content))).is_some();
        assert!(!passes(Trigger::FilesChanged, 1) && !passes(Trigger::TimePassed, 1));
        assert!(passes(Trigger::FilesChanged, 2));
        assert!(!passes(Trigger::FilesChanged, 2));
        assert!(passes(Trigger::Requested, 2));
        assert!(passes(Trigger::TimePassed, 1));
    }

    #[test]
    fn a_missing_file_is_no_update_and_is_reported_if_it_stays_missing() {
        let log = Log::start();
        let mut filter = filter();
        let mut reports = |trigger, content| {
            assert!(filter.update(trigger, Ok(reading(content))).is_none());
            log.text().matches("configuration file is missing").count()
        };
        assert_eq!(reports(Trigger::FilesChanged, 0), 0);
        assert_eq!(reports(Trigger::FilesChanged, 1), 0);
        assert_eq!(reports(Trigger::TimePassed, 0), 1);
        assert_eq!(reports(Trigger::TimePassed, 0), 1);
        assert_eq!(reports(Trigger::Requested, 0), 2);
        assert_eq!(reports(Trigger::FilesChanged, 1), 2);
        assert_eq!(reports(Trigger::TimePassed, 0), 3);
        assert!(log.text().contains(FILE), "{}", log.text());
    }

    #[test]
    fn a_file_that_was_never_there_may_be_missing() {
        let mut filter = ReadFilter::new(reading(0).files);
        assert!(filter.update(Trigger::FilesChanged, Ok(reading(0))).is_none());
        assert!(filter.update(Trigger::FilesChanged, Ok(reading(1))).is_some());
    }
}
