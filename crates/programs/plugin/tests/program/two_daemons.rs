//! Two daemons with the same resource in one device plugin directory.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use device_plugin::UnixSockets;
use kubelet_double::{KubeletDouble, KubeletOptions};
use serde_json::{Value, json};

use crate::daemon::{DISPLAY, LIMIT, status};
use crate::harness::{program, recorded};

/// A daemon with one resource. It is killed when dropped.
struct Daemon(Child);

impl Daemon {
    fn start(directory: &Path, flags: &[&str]) -> Daemon {
        Daemon::start_in_pod("", directory, flags)
    }

    fn start_in_pod(uid: &str, directory: &Path, flags: &[&str]) -> Daemon {
        let mut command = program();
        command.env("POD_UID", uid);
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
async fn a_second_daemon_waits_and_takes_over_when_the_first_one_is_killed() {
    if device_plugin::unix_sockets::skips_test() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path();
    let kubelet = KubeletDouble::start(UnixSockets, directory, KubeletOptions::default()).unwrap();
    let first = Daemon::start(directory, &[]);
    until(directory, "one daemon", is_ready).await;
    assert_eq!(kubelet.registrations(DISPLAY), 1);

    // The flag of earlier versions has no effect.
    let second = Daemon::start(directory, &["--replace"]);
    until(directory, "a waiting daemon", |report| is_ready(report) && waiting(report) == 1).await;
    assert_eq!(kubelet.registrations(DISPLAY), 1);
    drop(first);
    let replaced = |report: &Value| is_ready(report) && waiting(report) == 0;
    until(directory, "the second daemon", replaced).await;
    assert_eq!(kubelet.registrations(DISPLAY), 2);
    drop(second);
}

/// The exit codes of the readiness and the liveness probe of a pod.
#[cfg(unix)]
fn probes(uid: &str, directory: &Path) -> [Option<i32>; 2] {
    [&[][..], &["--live"]].map(|flags| {
        let mut command = program();
        command.env("POD_UID", uid).arg("status").args(flags);
        command.arg("--device-plugin-dir").arg(directory).output().unwrap().status.code()
    })
}

/// Otherwise a kubelet never restarts a daemon that hangs and has the lock.
#[cfg(unix)]
#[tokio::test]
async fn a_probe_in_a_pod_asks_only_the_daemon_of_this_pod() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path();
    let _kubelet = KubeletDouble::start(UnixSockets, directory, KubeletOptions::default()).unwrap();
    let holder = Daemon::start_in_pod("a", directory, &[]);
    until(directory, "one daemon", is_ready).await;
    let _waiting = Daemon::start_in_pod("b", directory, &[]);
    until(directory, "a waiting daemon", |report| waiting(report) == 1).await;
    let ask = async |uid: &'static str| {
        let directory = directory.to_owned();
        tokio::task::spawn_blocking(move || probes(uid, &directory)).await.unwrap()
    };
    assert_eq!(ask("a").await, [Some(0), Some(0)]);
    assert_eq!(ask("b").await, [Some(1), Some(0)]);
    assert_eq!(ask("c").await, [Some(1), Some(1)]);

    let process = holder.0.id().to_string();
    let stopped = std::process::Command::new("kill").args(["-STOP", &process]).status();
    assert!(stopped.unwrap().success());
    assert_eq!(ask("a").await, [Some(1), Some(1)]);
    assert_eq!(ask("b").await, [Some(1), Some(0)]);
    // What a kubelet does then.
    drop(holder);
    until(directory, "the other daemon", is_ready).await;
    assert_eq!(ask("b").await, [Some(0), Some(0)]);
}
