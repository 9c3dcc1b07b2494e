//! What changes no file does not wake up the watch. The only test of its process.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::time::Duration;

use file_watch::FileWatch;

const OPENS: u64 = 40;

/// How often all threads but the test's own have blocked and resumed (proc(5)).
fn wake_ups() -> u64 {
    let own = fs::read_link("/proc/thread-self").unwrap();
    let tasks = fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap());
    let others = tasks.filter(|task| Some(task.file_name().as_os_str()) != own.file_name());
    let switches = others.map(|task| {
        let status = fs::read_to_string(task.path().join("status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        line.unwrap().trim().parse::<u64>().unwrap()
    });
    switches.sum()
}

#[test]
fn opening_files_and_folders_does_not_wake_up_the_watch() {
    let folder = tempfile::tempdir().unwrap();
    let (file, other) = (folder.path().join("file"), folder.path().join("other"));
    fs::write(&file, "text").unwrap();
    fs::create_dir(&other).unwrap();
    let _watch = FileWatch::start([&file], || panic!("nothing has changed")).unwrap();
    let before = wake_ups();
    for _ in 0..OPENS {
        assert_eq!(fs::read(&file).unwrap(), b"text");
        assert_eq!(fs::read_dir(&other).unwrap().count(), 0);
        // Otherwise the kernel combines equal events.
        std::thread::sleep(Duration::from_millis(10));
    }
    let woken = wake_ups() - before;
    assert!(woken < OPENS / 2, "{OPENS} opens have caused {woken} wake-ups");
}
