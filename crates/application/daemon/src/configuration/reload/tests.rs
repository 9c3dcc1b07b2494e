//! Files that change while they are followed.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use devices::DriverModel;
use tokio::time::timeout;

use super::*;
use process::logging::test_log::Log;

/// Much longer than it takes until a change is noticed.
const LIMIT: Duration = Duration::from_mins(2);
/// Longer than it takes until a change is noticed, unless the machine is busy.
const PAUSE: Duration = Duration::from_secs(2);

pub(super) struct Followed {
    pub(super) reload: ConfigReload,
    pub(super) path: PathBuf,
    pub(super) _folder: tempfile::TempDir,
}

/// Follows `path` in a folder that `set_up` has filled.
fn follow(path: &str, set_up: impl FnOnce(&Path)) -> Followed {
    let folder = tempfile::tempdir().unwrap();
    set_up(folder.path());
    let path = folder.path().join(path);
    let reload = start(Some(path.clone()));
    Followed { reload, path, _folder: folder }
}

fn start(config: Option<PathBuf>) -> ConfigReload {
    let flags = Flags { driver_models: vec![DriverModel::Wddm], config, ..Flags::default() };
    let active = command_line::configuration::load(&flags).unwrap();
    ConfigReload::start(flags, active).unwrap()
}

fn follow_file(text: &str) -> Followed {
    follow("config.yaml", |folder| fs::write(folder.join("config.yaml"), text).unwrap())
}

impl Followed {
    /// Waits for the next change and applies it. Returns the replicas of a configuration that was
    /// applied.
    pub(super) async fn apply(&mut self) -> Option<u32> {
        let change = timeout(LIMIT, self.reload.next()).await.expect("a change");
        let config = change.unwrap()?;
        let replicas = config.policy.models[0].sharing.replicas.get();
        self.reload.applied(config);
        Some(replicas)
    }

    pub(super) async fn stays_the_same(&mut self) {
        let change = timeout(PAUSE, self.reload.next()).await;
        assert!(change.is_err(), "{:?}", change.map(Result::unwrap));
    }

    pub(super) fn replace(&self, text: &str) {
        let new = self.path.with_extension("new");
        fs::write(&new, text).unwrap();
        // On Windows the rename fails while the thread reads the file.
        let started = Instant::now();
        while let Err(error) = fs::rename(&new, &self.path) {
            assert!(started.elapsed() < LIMIT, "{error}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Replaces the content at once: a file that is written in two steps may be read between them.
    pub(super) fn overwrite(&self, text: &str) {
        use std::io::Write as _;
        assert_eq!(fs::metadata(&self.path).unwrap().len(), text.len() as u64);
        let mut file = fs::OpenOptions::new().write(true).open(&self.path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    pub(super) fn status(&self) -> ReloadStatus {
        self.reload.status().borrow().clone()
    }
}

#[tokio::test]
async fn a_change_is_applied_and_its_keys_are_logged() {
    let log = Log::start();
    let mut followed = follow_file("multitenancy: 2");
    followed.stays_the_same().await;
    followed.replace("multitenancy: 3");
    assert_eq!(followed.apply().await, Some(3));
    followed.overwrite("multitenancy: 4");
    assert_eq!(followed.apply().await, Some(4));
    let status = ReloadStatus { applied: 2, rejected: 0, last_error: None };
    assert_eq!(followed.status(), status);
    let text = log.text();
    assert!(text.contains("key=\"multitenancy\" value=\"4\""), "{text}");
    // The same value on another line is no change.
    assert_eq!(text.matches("configuration changed").count(), 2, "{text}");
}

#[tokio::test]
async fn an_invalid_file_is_rejected_once_until_it_is_valid_again() {
    let log = Log::start();
    let mut followed = follow_file("multitenancy: 2");
    for _ in 0..2 {
        followed.replace("multitenancy: many");
        followed.replace("multitenancy: many");
        assert_eq!(followed.apply().await, None);
        followed.replace("multitenancy: many");
        followed.stays_the_same().await;
        let error = followed.reload.last_error().unwrap();
        assert!(error.contains("config.yaml:1: multitenancy"), "{error}");
        // The file has the active configuration again.
        followed.replace("multitenancy: 2");
        assert_eq!(followed.apply().await, None);
        assert_eq!(followed.reload.last_error(), None);
    }
    let status = ReloadStatus { applied: 0, rejected: 2, last_error: None };
    assert_eq!(followed.status(), status);
    let text = log.text();
    assert_eq!(text.matches("configuration rejected").count(), 2, "{text}");
}

#[tokio::test]
async fn the_last_of_several_edits_in_quick_succession_counts() {
    let mut followed = follow_file("multitenancy: 2");
    for replicas in 3..10 {
        fs::write(&followed.path, format!("multitenancy: {replicas}")).unwrap();
    }
    // On a busy machine, some of the others are applied first.
    while followed.apply().await != Some(9) {}
    followed.stays_the_same().await;
}

#[tokio::test]
async fn a_deleted_file_and_comments_change_nothing() {
    let mut followed = follow_file("multitenancy: 2");
    fs::remove_file(&followed.path).unwrap();
    followed.stays_the_same().await;
    followed.replace("# Moved to another line.\nmultitenancy: 2");
    followed.stays_the_same().await;
    followed.replace("multitenancy: 5");
    assert_eq!(followed.apply().await, Some(5));
}

#[tokio::test]
async fn an_error_for_clients_is_short() {
    let mut followed = follow_file("multitenancy: 2");
    let path = std::path::PathBuf::from("é".repeat(1 << 20));
    followed.reload.rejected(&DaemonError::ConfigurationGone(path));
    let error = followed.reload.last_error().unwrap();
    assert!(error.len() < 4096 && error.ends_with("to run without it"), "{}", error.len());
}

/// How the kubelet lays out and updates the volume of a `ConfigMap`.
#[cfg(unix)]
mod config_map {
    use std::os::unix::fs::symlink;

    use super::*;

    fn version(volume: &Path, name: &str, text: &str) {
        fs::create_dir(volume.join(name)).unwrap();
        fs::write(volume.join(name).join("config.yaml"), text).unwrap();
    }

    fn mounted() -> Followed {
        follow("config.yaml", |volume| {
            version(volume, "..1", "multitenancy: 2");
            symlink("..1", volume.join("..data")).unwrap();
            symlink("..data/config.yaml", volume.join("config.yaml")).unwrap();
        })
    }

    #[tokio::test]
    async fn an_atomic_swap_is_followed() {
        let mut followed = mounted();
        let volume = followed.path.parent().unwrap().to_owned();
        for replicas in 3..6 {
            let name = format!("..{replicas}");
            version(&volume, &name, &format!("multitenancy: {replicas}"));
            symlink(&name, volume.join("..data_tmp")).unwrap();
            fs::rename(volume.join("..data_tmp"), volume.join("..data")).unwrap();
            assert_eq!(followed.apply().await, Some(replicas));
        }
        assert_eq!(followed.status().rejected, 0);
    }

    /// On Windows the kubelet cannot replace the link in one step: for a moment there is none.
    #[tokio::test]
    async fn a_swap_with_a_gap_is_followed_without_an_error() {
        let mut followed = mounted();
        let volume = followed.path.parent().unwrap().to_owned();
        version(&volume, "..2", "multitenancy: 7");
        fs::remove_file(volume.join("..data")).unwrap();
        followed.stays_the_same().await;
        symlink("..2", volume.join("..data")).unwrap();
        assert_eq!(followed.apply().await, Some(7));
        assert_eq!(followed.status().rejected, 0);
    }
}
