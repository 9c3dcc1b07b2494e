//! Two daemons with the same resource in one device plugin directory.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use kubelet::UnixSockets;
use kubelet_double::{KubeletDouble, Options};
use serde_json::{Value, json};

use crate::daemon::{DISPLAY, LIMIT, status};
use crate::harness::{program, recorded};

/// A daemon with one resource. It is killed when dropped.
struct Daemon(Child);

impl Daemon {
    fn start(directory: &Path, flags: &[&str]) -> Daemon {
        let mut command = program();
        command.args(["serve", "--driver-model", "wddm", "--device-plugin-dir"]).arg(directory);
        command.arg("--inventory").arg(recorded("aws-t4-two.yaml")).args(flags);
        Daemon(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until the report of `status` satisfies `condition`.
async fn until(directory: &Path, what: &str, condition: impl Fn(&Value) -> bool) -> Value {
    let started = Instant::now();
    loop {
        let directory = directory.to_owned();
        let (_, report) = tokio::task::spawn_blocking(move || status(&directory)).await.unwrap();
        if condition(&report) {
            return report;
        }
        assert!(started.elapsed() < LIMIT, "{what}: {report}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn is_ready(report: &Value) -> bool {
    report["ready"] == json!(true)
}

fn waiting(report: &Value) -> usize {
    report["waitingSockets"].as_array().unwrap().len()
}

#[tokio::test]
async fn a_second_daemon_waits_and_takes_over_at_once_with_replace() {
    if uds::skips_test() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path();
    let kubelet = KubeletDouble::start(UnixSockets, directory, Options::default()).unwrap();
    let first = Daemon::start(directory, &[]);
    until(directory, "one daemon", is_ready).await;
    assert_eq!(kubelet.registrations(DISPLAY), 1);

    let second = Daemon::start(directory, &[]);
    until(directory, "a waiting daemon", |report| is_ready(report) && waiting(report) == 1).await;
    assert_eq!(kubelet.registrations(DISPLAY), 1);
    let third = Daemon::start(directory, &["--replace"]);
    // While the new daemon takes over, the first one may still be ready.
    let replaced = |report: &Value| {
        kubelet.registrations(DISPLAY) == 2 && is_ready(report) && waiting(report) == 2
    };
    until(directory, "a new daemon", replaced).await;

    drop((second, third));
    until(directory, "the first daemon", |report| is_ready(report) && waiting(report) == 0).await;
    assert_eq!(kubelet.registrations(DISPLAY), 3);
    drop(first);
}

/// A process that listens on a socket with the name of the resource, and answers nothing.
#[tokio::test]
async fn status_reports_that_a_daemon_waits_for_another_program() {
    use kubelet::Transport as _;

    if uds::skips_test() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("wddm-1.sock");
    let _silent = UnixSockets.bind(&other).unwrap();
    let _daemon = Daemon::start(folder.path(), &[]);
    let report = until(folder.path(), "a waiting daemon", |report| waiting(report) == 1).await;
    assert!(!is_ready(&report), "{report}");
    let resource = &report["resources"][0];
    assert_eq!(resource["state"], "waiting for another daemon", "{report}");
    let named = other.display().to_string();
    assert!(resource["lastError"].as_str().unwrap().contains(&named), "{report}");
}
