//! One watch for several files. What can happen to a single file is tested with inventories.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use file_watch::FileWatch;

/// Much longer than a notification takes.
const LIMIT: Duration = Duration::from_secs(120);
/// Longer than the notifications of one change are apart, unless the machine is busy.
const PAUSE: Duration = Duration::from_millis(500);

fn wait_for_change(changes: &Receiver<()>, what: &str) {
    changes.recv_timeout(LIMIT).unwrap_or_else(|_| panic!("{what} is not reported"));
    while changes.recv_timeout(PAUSE).is_ok() {}
}

#[test]
fn a_change_of_any_file_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let existing = folder.path().join("existing.yaml");
    fs::write(&existing, "a").unwrap();
    let missing = folder.path().join("missing/file.yaml");
    let (sender, changes) = channel();
    let watch = FileWatch::start([&existing, &missing], move || sender.send(()).unwrap()).unwrap();

    fs::write(folder.path().join("other.yaml"), "b").unwrap();
    assert!(changes.recv_timeout(PAUSE).is_err(), "another file is reported");
    fs::write(&existing, "b").unwrap();
    wait_for_change(&changes, "a write");
    fs::create_dir(missing.parent().unwrap()).unwrap();
    fs::write(&missing, "c").unwrap();
    wait_for_change(&changes, "a file in a new folder");
    let replacement = folder.path().join("replacement");
    fs::write(&replacement, "d").unwrap();
    fs::rename(&replacement, &missing).unwrap();
    wait_for_change(&changes, "a rename");
    let read = || [&existing, &missing].map(|path| fs::read_to_string(path).unwrap());
    assert_eq!(watch.read_still(read).unwrap(), ["b", "d"]);
}

#[test]
fn a_path_without_a_file_name_is_refused() {
    assert!(FileWatch::start(["/"], || ()).is_err());
}
