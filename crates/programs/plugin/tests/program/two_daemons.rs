//! Two daemons with the same devices in one device plugin directory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
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
        command.env("POD_UID", uid).args(["serve", "--driver-model", "wddm", "--inventory"]);
        Daemon::spawn(command.arg(recorded("aws-t4-two.yaml")).args(flags), directory)
    }

    /// A daemon for these driver models, on a host with a GPU and an NPU.
    fn for_models(directory: &Path, models: &[&str]) -> Daemon {
        let mut command = program();
        command.args(["serve", "--inventory"]).arg(recorded("made-up-npu-beside-gpu.yaml"));
        for model in models {
            command.args(["--driver-model", model]);
        }
        Daemon::spawn(&mut command, directory)
    }

    fn spawn(command: &mut Command, directory: &Path) -> Daemon {
        command.arg("--device-plugin-dir").arg(directory);
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

    let second = Daemon::start(directory, &[]);
    until(directory, "a waiting daemon", |report| is_ready(report) && waiting(report) == 1).await;
    assert_eq!(kubelet.registrations(DISPLAY), 1);
    drop(first);
    let replaced = |report: &Value| is_ready(report) && waiting(report) == 0;
    until(directory, "the second daemon", replaced).await;
    assert_eq!(kubelet.registrations(DISPLAY), 2);
    drop(second);
}

/// The state of each resource, by name.
fn states(report: &Value) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let resources = report["resources"].as_array().unwrap().iter();
    resources.map(|resource| (text(&resource["name"]), text(&resource["state"]))).collect()
}

const COMPUTE: &str = "directx.microsoft.com/compute";
const SERVED: &str = "the kubelet received the device list";
const WAITS: &str = "waiting for another daemon";

/// One gives each GPU to one container, the other to four, so their resources have two names.
#[tokio::test]
async fn a_gpu_is_not_advertised_under_two_names() {
    if device_plugin::unix_sockets::skips_test() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let directory = &folder.path().join("device-plugins");
    let kubelet = KubeletDouble::start(UnixSockets, directory, KubeletOptions::default()).unwrap();
    let configured = |name: &str, text: &str| -> Daemon {
        let file: PathBuf = folder.path().join(name);
        std::fs::write(&file, text).unwrap();
        Daemon::start(directory, &["--config", file.to_str().unwrap()])
    };
    let exclusive = configured("exclusive.yaml", "multitenancy: 1");
    until(directory, "the exclusive GPUs", is_ready).await;
    let shared = "multitenancy: 4\nrenameShared: true\nresources:\n\
        - {name: example.com/other, match: {vendor: amd}}";
    let _shared = configured("shared.yaml", shared);
    let names =
        [DISPLAY.to_owned(), format!("{DISPLAY}.shared"), "example.com/other.shared".to_owned()];
    let expected = |states: [&str; 3]| -> BTreeMap<String, String> {
        names.iter().cloned().zip(states.map(str::to_owned)).collect()
    };
    let waits = expected([SERVED, WAITS, WAITS]);
    let report = until(directory, "the shared GPUs", |report| states(report) == waits).await;
    let holder = report["resources"][1]["lastError"].as_str().unwrap();
    assert!(holder.contains("directx-wddm.lock"), "{holder}");
    assert_eq!((report["ready"].clone(), waiting(&report)), (json!(false), 1));
    let devices = |name: &str| {
        let views = kubelet.resources();
        views.iter().find(|view| view.name == name).map(|view| view.allocatable)
    };
    assert_eq!((devices(&names[0]), devices(&names[1])), (Some(2), None));

    drop(exclusive);
    until(directory, "only the shared GPUs", is_ready).await;
    let replaced = kubelet.wait_for(|_| devices(&names[1]) == Some(8));
    tokio::time::timeout(LIMIT, replaced).await.unwrap();
    assert_eq!(devices(&names[0]), Some(0));
}

#[tokio::test]
async fn daemons_wait_only_for_the_devices_of_a_driver_model_that_both_advertise() {
    if device_plugin::unix_sockets::skips_test() {
        return;
    }
    let expected = |resources: &[(&str, &str)]| -> BTreeMap<String, String> {
        resources.iter().map(|(name, state)| ((*name).to_owned(), (*state).to_owned())).collect()
    };
    let both = expected(&[(COMPUTE, SERVED), (DISPLAY, SERVED)]);
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path();
    let _kubelet = KubeletDouble::start(UnixSockets, directory, KubeletOptions::default()).unwrap();
    let separate = ["wddm", "mcdm"].map(|model| Daemon::for_models(directory, &[model]));
    let side_by_side = |report: &Value| states(report) == both && waiting(report) == 0;
    until(directory, "one daemon for each driver model", side_by_side).await;
    drop(separate);

    let legacy = Daemon::for_models(directory, &["legacy"]);
    until(directory, "the class of all GPUs", is_ready).await;
    let _other = Daemon::for_models(directory, &["wddm", "mcdm"]);
    let partly =
        expected(&[(COMPUTE, SERVED), (DISPLAY, WAITS), ("microsoft.com/directx", SERVED)]);
    until(directory, "the NPU", |report| states(report) == partly).await;
    drop(legacy);
    until(directory, "all devices", side_by_side).await;
}

/// Each of two daemons has a GPU of the rule, and only one of them can serve its name.
#[tokio::test]
async fn a_gpu_that_only_a_waiting_daemon_has_is_reported() {
    if device_plugin::unix_sockets::skips_test() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let directory = &folder.path().join("device-plugins");
    let _kubelet = KubeletDouble::start(UnixSockets, directory, KubeletOptions::default()).unwrap();
    let config = folder.path().join("config.yaml");
    let rule = "resources: [{name: nvidia.com/gpu, match: {vendor: nvidia}}]";
    std::fs::write(&config, rule).unwrap();
    let start = |models: &[&str]| {
        let mut command = program();
        command.args(["serve", "--inventory"]).arg(recorded("made-up-wddm-and-mcdm.yaml"));
        command.arg("--config").arg(&config).arg("--driver-model").arg(models.join(","));
        Daemon::spawn(&mut command, directory)
    };
    let first = start(&["wddm"]);
    until(directory, "the GPU in WDDM mode", is_ready).await;
    let second = start(&["mcdm"]);
    let unlisted = |report: &Value| report["unlistedDevices"].as_array().map_or(0, Vec::len) == 1;
    let report = until(directory, "the GPU in MCDM mode", unlisted).await;
    assert_eq!((report["ready"].clone(), waiting(&report)), (json!(false), 1));
    let text = report["unlistedDevices"][0].as_str().unwrap();
    assert!(text.contains("mcdm-") && text.contains("(NVIDIA L40S)"), "{text}");
    crate::reference::assert_described("status", &[report]);
    drop(second);
    until(directory, "without a second daemon", is_ready).await;
    drop(first);

    let _both = start(&["wddm", "mcdm"]);
    let report = until(directory, "one daemon for both", is_ready).await;
    assert_eq!(report.get("unlistedDevices"), None);
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
