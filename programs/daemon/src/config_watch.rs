//! The thread that reads the configuration again when its files may have changed.
//!
//! In come notifications of the operating system and requests; out goes each configuration that
//! differs from the last one. A file that is missing for a moment is not a change: on Windows, the
//! kubelet updates the volume of a `ConfigMap` by removing a link and creating it again. Nobody
//! waits for the thread.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use ::config::Config;
use cli::Failure;
use file_watch::{FileWatch, KeepsChanging};
use tokio::sync::mpsc;

use crate::config::{ConfigSource, FileContent, FileRead, Reading};

/// How often the files are read although no change was reported: network file systems report
/// none.
const REREAD_INTERVAL: Duration = Duration::from_secs(60);

/// How long to wait for a file that had changed before it was watched, because somebody may be in
/// the middle of writing it. From then on, its changes are reported.
const SETTLING_TIME: Duration = Duration::from_millis(200);

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
            run(&source, ReadFilter::new(files), &notify, &triggers, &send);
        })?;
        Ok(ConfigWatch { requests, updates })
    }
}

fn run(
    source: &ConfigSource,
    mut filter: ReadFilter,
    notify: &Sender<Trigger>,
    triggers: &Receiver<Trigger>,
    updates: &mpsc::UnboundedSender<Update>,
) {
    let mut watched = Watched::start(paths(&filter.last), notify);
    // The files may have changed before they were watched.
    let mut trigger = Trigger::FilesChanged;
    let mut watch_is_new = true;
    loop {
        let reading = watched.read(|| match trigger {
            Trigger::Requested => Some(source.read()),
            Trigger::FilesChanged | Trigger::TimePassed => source.read_if_changed(&filter.last),
        });
        let reading = reading.transpose();
        if std::mem::take(&mut watch_is_new) && reading.is_some() {
            std::thread::sleep(SETTLING_TIME);
            continue;
        }
        let looked_for = reading.as_ref().and_then(|r| Some(paths(&r.as_ref().ok()?.files)));
        if let Some(reading) = reading
            && let Some(update) = filter.update(trigger, reading)
            && updates.send(update).is_err()
        {
            return;
        }
        if let Some(paths) = looked_for.filter(|paths| *paths != watched.paths) {
            // Another file may have changed before it is watched.
            watched = Watched::start(paths, notify);
            (trigger, watch_is_new) = (Trigger::FilesChanged, true);
            continue;
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

/// The files whose changes are reported.
struct Watched {
    paths: Vec<PathBuf>,
    /// `None` if the operating system refuses; the files are then read at intervals.
    watch: Option<FileWatch>,
}

impl Watched {
    fn start(paths: Vec<PathBuf>, notify: &Sender<Trigger>) -> Watched {
        let notify = notify.clone();
        let watch = FileWatch::start(&paths, move || {
            // Without a receiver, the thread of the configuration has ended.
            let _ = notify.send(Trigger::FilesChanged);
        });
        let watch = watch.inspect_err(|error| {
            let interval_s = REREAD_INTERVAL.as_secs();
            tracing::warn!(%error, interval_s, "cannot watch the configuration files; reading them at intervals");
        });
        Watched { paths, watch: watch.ok() }
    }

    fn read<T>(&self, mut read: impl FnMut() -> T) -> Result<T, KeepsChanging> {
        match &self.watch {
            Some(watch) => watch.read_still(read),
            None => Ok(read()),
        }
    }
}

fn paths(files: &[FileRead]) -> Vec<PathBuf> {
    files.iter().map(|file| file.path.clone()).collect()
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
            return self.missing_update(trigger, &path);
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
    fn missing_update(&mut self, trigger: Trigger, path: &Path) -> Option<Update> {
        let is_due = match trigger {
            Trigger::FilesChanged => false,
            Trigger::TimePassed => !self.missing_reported,
            Trigger::Requested => true,
        };
        if !is_due {
            return None;
        }
        self.missing_reported = true;
        // The file is an update when it returns, whatever it contains.
        self.last.clear();
        let error = anyhow::anyhow!("the configuration file `{}` is missing", path.display());
        let hint = "restore the file, or restart the plugin to run without it";
        Some(Update { trigger, result: Err(Failure::usage(error).hint(hint)) })
    }
}

fn existing(files: &[FileRead]) -> Vec<PathBuf> {
    let existing = files.iter().filter(|file| file.content != FileContent::Missing);
    existing.map(|file| file.path.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_missing_file_is_no_update_unless_it_stays_missing() {
        let mut filter = filter();
        let mut update = |trigger, content| {
            let update = filter.update(trigger, Ok(reading(content)))?;
            Some(update.result.err().map(|failure| failure.chain()))
        };
        let missing = Some(Some(format!("the configuration file `{FILE}` is missing")));
        assert_eq!(update(Trigger::FilesChanged, 0), None);
        assert_eq!(update(Trigger::FilesChanged, 1), None);
        assert_eq!(update(Trigger::TimePassed, 0), missing);
        assert_eq!(update(Trigger::TimePassed, 0), None);
        assert_eq!(update(Trigger::Requested, 0), missing);
        // The same content: it is valid again.
        assert_eq!(update(Trigger::FilesChanged, 1), Some(None));
        assert_eq!(update(Trigger::TimePassed, 0), missing);
    }

    #[test]
    fn a_file_that_was_never_there_may_be_missing() {
        let mut filter = ReadFilter::new(reading(0).files);
        assert!(filter.update(Trigger::FilesChanged, Ok(reading(0))).is_none());
        assert!(filter.update(Trigger::FilesChanged, Ok(reading(1))).is_some());
    }
}
