//! The source follows its file however the file changes.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use command_line::InventorySource;
use host::{AdapterSource, Luid};
use tempfile::TempDir;

/// Far more than a change takes; bounds a test whose watch is broken.
const TIME_LIMIT: Duration = Duration::from_mins(2);

/// Shorter than the pause that ends a write.
const SHORT: Duration = Duration::from_millis(150);

fn inventory(luids: &[i64]) -> String {
    let adapter = |luid: &i64| {
        format!(
            "- luid: {luid}\n  attributes: []\n  hardware: true\n  hardwareId: {{vendor: 1, device: 1}}\n"
        )
    };
    let adapters: String = luids.iter().map(adapter).collect();
    format!("schema: directx-inventory/v1\nadapters:\n{adapters}")
}

fn write(path: &Path, luids: &[i64]) {
    fs::write(path, inventory(luids)).expect("the folder is ours");
}

struct Followed {
    source: InventorySource,
    changes: Receiver<()>,
}

impl Followed {
    fn new(path: &Path) -> Followed {
        let mut source = InventorySource::new(path);
        let (sender, changes) = channel();
        source
            .watch(Box::new(move || {
                let _ = sender.send(());
            }))
            .expect("a thread can be started");
        Followed { source, changes }
    }

    /// The LUIDs of the source's current snapshot; `None` if it is an error.
    fn luids(&mut self) -> Option<Vec<i64>> {
        let snapshot = self.source.snapshot().ok()?;
        Some(snapshot.adapters.iter().map(|a| a.luid).map(|Luid(luid)| luid).collect())
    }

    /// Reads after each change until the source has the LUIDs `wanted`.
    fn becomes(&mut self, wanted: Option<&[i64]>) {
        let end = Instant::now() + TIME_LIMIT;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            assert!(self.changes.recv_timeout(left).is_ok(), "no change led to {wanted:?}");
            if self.luids().as_deref() == wanted {
                return;
            }
        }
    }
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder can be made")
}

#[test]
fn a_file_written_in_place_or_replaced_is_followed() {
    let folder = folder();
    let file = folder.path().join("host.yaml");
    write(&file, &[1]);
    let mut followed = Followed::new(&file);
    assert_eq!(followed.luids(), Some(vec![1]));
    write(&file, &[1, 2]);
    followed.becomes(Some(&[1, 2]));
    let next = folder.path().join("next");
    write(&next, &[3]);
    fs::rename(&next, &file).unwrap();
    followed.becomes(Some(&[3]));
    write(&file, &[4]);
    followed.becomes(Some(&[4]));
}

#[test]
fn a_malformed_file_is_an_error_until_it_is_corrected() {
    let folder = folder();
    let file = folder.path().join("host.yaml");
    write(&file, &[1]);
    let mut followed = Followed::new(&file);
    fs::write(&file, "schema: directx-inventory/v1\nadapters: 5\n").unwrap();
    followed.becomes(None);
    let error = followed.source.snapshot().unwrap_err().to_string();
    let wanted = format!("{}:2: adapters: expected a list", file.display());
    assert_eq!(error, wanted);
    write(&file, &[2]);
    followed.becomes(Some(&[2]));
}

#[test]
fn a_deleted_and_restored_file_is_followed() {
    let folder = folder();
    let file = folder.path().join("host.yaml");
    write(&file, &[1]);
    let mut followed = Followed::new(&file);
    fs::remove_file(&file).unwrap();
    followed.becomes(None);
    let error = followed.source.snapshot().unwrap_err();
    assert_eq!(error.to_string(), format!("cannot read the inventory `{}`", file.display()));
    assert!(error.source().is_some());
    write(&file, &[2]);
    followed.becomes(Some(&[2]));
}

#[test]
fn a_missing_or_deleted_folder_is_followed() {
    let folder = folder();
    let inner = folder.path().join("a").join("b");
    let file = inner.join("host.yaml");
    let mut followed = Followed::new(&file);
    fs::create_dir_all(&inner).unwrap();
    write(&file, &[1]);
    followed.becomes(Some(&[1]));
    fs::remove_dir_all(&inner).unwrap();
    followed.becomes(None);
    fs::create_dir_all(&inner).unwrap();
    write(&file, &[2]);
    followed.becomes(Some(&[2]));
    fs::rename(&inner, folder.path().join("old")).unwrap();
    followed.becomes(None);
    fs::create_dir_all(&inner).unwrap();
    write(&file, &[3]);
    followed.becomes(Some(&[3]));
}

#[test]
fn a_file_that_changes_before_it_is_watched_is_reported() {
    let folder = folder();
    let file = folder.path().join("host.yaml");
    write(&file, &[1]);
    let mut source = InventorySource::new(&file);
    assert!(source.snapshot().is_ok());
    write(&file, &[2, 3]);
    let (sender, changes) = channel();
    source.watch(Box::new(move || _ = sender.send(()))).unwrap();
    assert!(changes.recv_timeout(TIME_LIMIT).is_ok());
}

/// YAML that is cut between two adapters is a valid inventory.
#[test]
fn a_file_written_with_pauses_is_not_read_before_it_is_complete() {
    let whole = inventory(&[1, 2, 4]);
    let starts: Vec<usize> = whole.match_indices("- luid").map(|(at, _)| at).collect();
    let pieces = [&whole[..starts[1]], &whole[starts[1]..starts[2]], &whole[starts[2]..]];
    for keeps_open in [true, false] {
        let folder = folder();
        let file = folder.path().join("host.yaml");
        write(&file, &[1, 2, 3]);
        let mut followed = Followed::new(&file);
        let mut last_write = Instant::now();
        // A machine that was too slow for short pauses proves nothing.
        let mut is_slow = false;
        let mut writer = fs::File::create(&file).unwrap();
        for piece in pieces {
            if !keeps_open {
                writer = fs::OpenOptions::new().append(true).open(&file).unwrap();
            }
            let now = Instant::now();
            writer.write_all(piece.as_bytes()).unwrap();
            is_slow |= last_write.elapsed() > SHORT;
            last_write = now;
            std::thread::sleep(Duration::from_millis(50));
            let is_reported = followed.changes.try_recv().is_ok();
            is_slow |= last_write.elapsed() > SHORT;
            assert!(!is_reported || is_slow, "part of the file is reported");
        }
        write(&file, &[1, 2, 4]);
        followed.becomes(Some(&[1, 2, 4]));
    }
}

#[test]
fn a_dropped_source_makes_no_calls() {
    let folder = folder();
    let file = folder.path().join("host.yaml");
    write(&file, &[1]);
    let followed = Followed::new(&file);
    let Followed { source, changes } = followed;
    drop(source);
    write(&file, &[2]);
    // The callback holds the only sender: it is gone, not just silent.
    assert_eq!(changes.recv_timeout(TIME_LIMIT), Err(RecvTimeoutError::Disconnected));
}

#[cfg(unix)]
mod links {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A config map's volume: files are links over `..data`, which is swapped by rename.
    #[test]
    fn a_config_map_is_followed() {
        let folder = folder();
        let root = folder.path();
        for (version, luid) in [("..1", 1), ("..2", 2), ("..3", 3)] {
            fs::create_dir(root.join(version)).unwrap();
            write(&root.join(version).join("host.yaml"), &[luid]);
        }
        symlink("..1", root.join("..data")).unwrap();
        symlink("..data/host.yaml", root.join("host.yaml")).unwrap();
        let mut followed = Followed::new(&root.join("host.yaml"));
        assert_eq!(followed.luids(), Some(vec![1]));
        for (version, luid) in [("..2", 2), ("..3", 3)] {
            symlink(version, root.join("..data_tmp")).unwrap();
            fs::rename(root.join("..data_tmp"), root.join("..data")).unwrap();
            followed.becomes(Some(&[luid]));
        }
    }

    #[test]
    fn symbolic_links_to_other_folders_are_followed() {
        let folder = folder();
        let root = folder.path();
        for name in ["real1", "real2", "etc"] {
            fs::create_dir(root.join(name)).unwrap();
        }
        write(&root.join("real1/host.yaml"), &[1]);
        write(&root.join("real2/host.yaml"), &[2]);
        symlink(root.join("real1"), root.join("current")).unwrap();
        symlink("../current/host.yaml", root.join("etc/host.yaml")).unwrap();
        let mut followed = Followed::new(&root.join("etc/host.yaml"));
        assert_eq!(followed.luids(), Some(vec![1]));
        write(&root.join("real1/host.yaml"), &[10]);
        followed.becomes(Some(&[10]));
        fs::remove_file(root.join("current")).unwrap();
        symlink("real2", root.join("current")).unwrap();
        followed.becomes(Some(&[2]));
        write(&root.join("real2/host.yaml"), &[20]);
        followed.becomes(Some(&[20]));
    }
}
