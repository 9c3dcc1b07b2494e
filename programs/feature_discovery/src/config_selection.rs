//! The configuration that a label of the node selects.
//!
//! This program writes the value of the label to the file from which the device plugin and itself read
//! the name. Whether the name is that of a configuration is decided by whoever reads the file.

use std::path::{Path, PathBuf};
use std::time::Duration;

use cli::Failure;
use daemon::change_log::RepeatedText;
use daemon::config_reload::ReloadStatus;
use tokio::sync::watch;
use tokio::time::Instant;

/// The label whose value is the name of the node's configuration.
pub(crate) const LABEL: &str = "directx.microsoft.com/device-plugin.config";
/// When to retry a file that could not be written. On Windows, that fails while it is read.
const RETRY: Duration = Duration::from_secs(5);

/// The file with the name of the configuration.
pub(crate) struct SelectionFile {
    path: PathBuf,
    retry: Option<Instant>,
    failures: RepeatedText,
}

impl SelectionFile {
    pub(crate) fn new(path: PathBuf) -> SelectionFile {
        SelectionFile { path, retry: None, failures: RepeatedText::default() }
    }

    /// When to call [`follow`](SelectionFile::follow) again although nothing has changed.
    pub(crate) fn retry(&self) -> Option<Instant> {
        self.retry
    }

    /// Writes the file, unless it already contains this value of the node's label.
    pub(crate) fn follow(&mut self, label: Option<&str>) {
        self.retry = None;
        let current = documents::read_bytes(&self.path).ok();
        let current = current.and_then(|bytes| String::from_utf8(bytes).ok());
        let Some(text) = next_text(current.as_deref(), label) else { return };
        match write(&self.path, &text) {
            Ok(()) => {
                self.failures = RepeatedText::default();
                let (file, name) = (self.path.display(), text.trim_end());
                tracing::info!(%file, name, label = LABEL, "configuration selected");
            }
            Err(failure) => {
                self.retry = Some(Instant::now() + RETRY);
                let error = failure.chain();
                if self.failures.is_due(&error) {
                    let (hint, retry_in_s) = (failure.hint_text(), RETRY.as_secs());
                    tracing::warn!(error, hint, retry_in_s, "cannot select the configuration");
                }
            }
        }
    }
}

/// What to write to a file with the text `current`, for this value of the label. The file of a
/// node without the label is empty, which selects the default: readers take a file that is removed
/// for one that is being replaced.
fn next_text(current: Option<&str>, label: Option<&str>) -> Option<String> {
    let name = label.unwrap_or_default();
    if current.unwrap_or_default().trim() == name {
        return None;
    }
    Some(if name.is_empty() { String::new() } else { format!("{name}\n") })
}

/// Creates the folder, too: nothing else needs it.
fn write(path: &Path, text: &str) -> Result<(), Failure> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|error| {
            let what = format!("cannot create the folder `{}`", folder.display());
            Failure::runtime(anyhow::Error::new(error).context(what))
        })?;
    }
    cli::write_file(path, text)
}

/// The configurations that cannot be used.
pub(crate) struct Rejections {
    status: watch::Receiver<ReloadStatus>,
    seen: u64,
}

impl Rejections {
    pub(crate) fn of(status: watch::Receiver<ReloadStatus>) -> Rejections {
        Rejections { status, seen: 0 }
    }

    /// Why the newest configuration is not active. Nothing is lost if this is dropped before it
    /// completes.
    pub(crate) async fn next(&mut self) -> String {
        loop {
            let status = self.status.borrow_and_update().clone();
            if status.rejected > self.seen {
                self.seen = status.rejected;
                if let Some(error) = status.last_error {
                    return error;
                }
            }
            if self.status.changed().await.is_err() {
                // The owner of the configuration ends, and this program with it.
                std::future::pending::<()>().await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use daemon::test_log::Log;

    use super::*;

    #[test]
    fn the_file_changes_only_with_the_label() {
        for (current, label, text) in [
            (None, None, None),
            (Some(""), None, None),
            (Some("shared\n"), Some("shared"), None),
            (Some("shared"), Some("shared"), None),
            (None, Some("shared"), Some("shared\n")),
            (Some("shared\n"), Some("exclusive"), Some("exclusive\n")),
            (Some("shared\n"), None, Some("")),
            (Some("shared\n"), Some(""), Some("")),
        ] {
            assert_eq!(next_text(current, label).as_deref(), text, "{current:?} {label:?}");
        }
    }

    #[test]
    fn the_folder_is_created_and_a_file_with_the_right_name_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a").join("b").join("selection");
        let mut selection = SelectionFile::new(path.clone());
        selection.follow(None);
        assert!(!path.exists());
        for (label, text) in [(Some("shared"), "shared\n"), (Some("nul"), "nul\n"), (None, "")] {
            selection.follow(label);
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        // A name that somebody else has written, in another spelling.
        fs::write(&path, "shared\r\n").unwrap();
        selection.follow(Some("shared"));
        assert_eq!(fs::read_to_string(&path).unwrap(), "shared\r\n");
        assert_eq!(selection.retry(), None);
    }

    #[test]
    fn a_file_that_cannot_be_written_is_reported_and_retried() {
        let log = Log::start();
        let folder = tempfile::tempdir().unwrap();
        let blocked = folder.path().join("file");
        fs::write(&blocked, "").unwrap();
        let path = blocked.join("selection");
        let mut selection = SelectionFile::new(path.clone());
        for _ in 0..7 {
            selection.follow(Some("shared"));
            assert!(selection.retry().is_some());
        }
        let text = log.text();
        // After 1, 2 and 4 attempts.
        assert_eq!(text.matches("cannot select the configuration").count(), 3, "{text}");
        fs::remove_file(&blocked).unwrap();
        selection.follow(Some("shared"));
        assert_eq!(fs::read_to_string(&path).unwrap(), "shared\n");
        assert_eq!(selection.retry(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn each_rejection_is_returned_once_also_one_before_the_start() {
        let rejected = |rejected, error: Option<&str>| ReloadStatus {
            rejected,
            last_error: error.map(str::to_owned),
            ..ReloadStatus::default()
        };
        let (send, receive) = watch::channel(rejected(1, Some("first")));
        let mut rejections = Rejections::of(receive);
        assert_eq!(rejections.next().await, "first");
        let wait = Duration::from_secs(1);
        assert!(tokio::time::timeout(wait, rejections.next()).await.is_err());
        send.send_replace(rejected(1, None));
        assert!(tokio::time::timeout(wait, rejections.next()).await.is_err());
        send.send_replace(rejected(2, Some("second")));
        assert_eq!(rejections.next().await, "second");
    }
}
