//! The steps `socket` and `kubelet`, on real sockets where the host supports them.

use std::path::Path;

use device_plugin::UnixSockets;
use kubelet_double::{KubeletDouble, KubeletOptions};

use crate::program::{TWO_T4, recorded, report, step, verify};

const RESOURCE: &str = "directx.microsoft.com/verify";

/// `verify` without the doctor, on a directory.
fn in_directory(directory: &Path) -> std::process::Command {
    let mut command = verify(&["--skip", "doctor", "--inventory", &recorded(TWO_T4)]);
    command.arg("--device-plugin-dir").arg(directory);
    command
}

fn files(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_kubelet_receives_the_list_of_a_resource_without_devices() {
    if device_plugin::unix_sockets::skips_test() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let kubelet =
        KubeletDouble::start(UnixSockets, folder.path(), KubeletOptions::default()).unwrap();
    let before = files(folder.path());
    for run in 1..=2 {
        // The kubelet runs on this thread.
        let (send, finished) = tokio::sync::oneshot::channel();
        let mut command = in_directory(folder.path());
        std::thread::spawn(move || send.send(report(&mut command)));
        let (status, report) = finished.await.unwrap();
        assert_eq!(status, Some(0), "{report:#}");
        for name in ["socket", "kubelet"] {
            assert_eq!(step(&report, name)["result"], "ok", "{report:#}");
        }
        let measured = &step(&report, "kubelet")["measurements"];
        let time = |key: &str| measured[key].as_f64().unwrap();
        assert!(time("registeredMs") <= time("listReceivedMs"), "{measured}");
        // Each run uses the same name, because a node keeps the names.
        assert_eq!(kubelet.registrations(RESOURCE), run);
        let resources = kubelet.resources();
        assert!(resources.iter().all(|r| r.name == RESOURCE && r.capacity == 0), "{resources:?}");
        assert_eq!(files(folder.path()), before, "everything was removed");
    }
}

#[test]
fn a_missing_directory_or_kubelet_fails_and_leaves_nothing() {
    if device_plugin::unix_sockets::skips_test() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (status, missing) = report(&mut in_directory(&folder.path().join("missing")));
    assert_eq!(status, Some(1));
    assert_eq!(step(&missing, "socket")["what"], "the device plugin directory does not exist");
    assert_eq!(step(&missing, "kubelet")["what"], "the kubelet's socket does not exist");
    let (status, empty) = report(&mut in_directory(folder.path()));
    assert_eq!(status, Some(1));
    assert_eq!(step(&empty, "socket")["result"], "ok", "{empty:#}");
    assert_eq!(step(&empty, "kubelet")["result"], "failed", "{empty:#}");
    assert_eq!(files(folder.path()), Vec::<String>::new());
}

/// A kubelet that accepts connections and never answers.
#[cfg(unix)]
#[test]
fn an_interruption_ends_the_step_and_removes_its_socket() {
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    let folder = tempfile::tempdir().unwrap();
    let _silent =
        std::os::unix::net::UnixListener::bind(folder.path().join("kubelet.sock")).unwrap();
    let mut command = in_directory(folder.path());
    command.args(["--skip", "socket", "--output", "json"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_mins(2);
    while files(folder.path()).len() < 2 {
        assert!(Instant::now() < deadline, "verify did not create its socket");
        std::thread::sleep(Duration::from_millis(10));
    }
    let interrupt = format!("kill -INT {}", child.id());
    assert!(Command::new("sh").args(["-c", &interrupt]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["interrupted"], true);
    for name in ["kubelet", "container"] {
        assert_eq!(step(&report, name)["what"], "interrupted", "{report:#}");
    }
    assert_eq!(files(folder.path()), ["kubelet.sock"]);
}
