//! What is printed, and what is refused.

use std::time::Duration;

use config::{EmptyEnvironment, Flags};
use daemon::node_devices::NodeDevices;
use device_plugin::status::Phase;
use device_plugin::{DevicePlugin, ResourceReadiness};
use devices::Catalog;

use crate::{recorded, run};

const T4: &str = "\
directx.microsoft.com/count=2
directx.microsoft.com/count.NVIDIA-Tesla-T4=2
directx.microsoft.com/driver-model=wddm
directx.microsoft.com/memory=15360
directx.microsoft.com/product=NVIDIA-Tesla-T4
directx.microsoft.com/replicas=1
directx.microsoft.com/sharing-strategy=none
directx.microsoft.com/vendor=nvidia
directx.microsoft.com/windows-build=10.0.20348.1547
";

/// Wine has no sockets with paths.
#[cfg(unix)]
#[test]
fn print_prints_the_labels_that_the_plugin_reports_and_ends() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let _entered = runtime.enter();
    let policy = config::load(&Flags::default(), &EmptyEnvironment).unwrap().policy;
    let host = config::inventory::read(&recorded("aws-t4-two.yaml")).unwrap();
    let devices = NodeDevices::fixed(Catalog::new(policy), host).unwrap();
    let plugin = DevicePlugin::following(folder.path(), devices.served());
    let readiness = plugin.readiness();
    runtime.spawn(plugin.run());
    let is_bound = |r: &ResourceReadiness| r.phase == Phase::WaitingForKubelet;
    while !readiness.borrow().resources.iter().all(is_bound) {
        std::thread::sleep(Duration::from_millis(10));
    }
    let directory = folder.path().display().to_string();
    let run = |arguments: &[&str]| {
        run(&[&["--print", "--device-plugin-dir", &directory], arguments].concat())
    };
    let (status, out, err) = run(&[]);
    assert_eq!((status, out.as_str(), err.as_str()), (Some(0), T4, ""));
    let (_, out, _) = run(&["--gfd-labels"]);
    assert!(out.starts_with(T4) && out.contains("\nnvidia.com/gpu.count=2\n"), "{out}");
    let (_, out, _) = run(&["--output", "json"]);
    let labels: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(labels.as_object().unwrap().len(), T4.lines().count());
    assert_eq!(labels["directx.microsoft.com/product"], "NVIDIA-Tesla-T4");
}

#[test]
fn print_needs_a_plugin() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().display().to_string();
    let (status, out, err) = run(&["--print", "--device-plugin-dir", &directory]);
    assert_eq!((status, out.as_str()), (Some(1), ""));
    let expected = format!("error: no device plugin serves devices in `{directory}`\nhint: ");
    assert!(err.starts_with(&expected) && err.contains("simulate --gfd-labels"), "{err}");
}

#[test]
fn what_the_plugin_decides_is_no_option_here() {
    for option in ["--config", "--driver-model", "--inventory"] {
        for arguments in [&[option, "x"][..], &["--print", option, "x"]] {
            refuses(
                arguments,
                &[&format!("no option `{option}`"), "reports what the device plugin", "hint: "],
            );
        }
    }
}

/// Fails with status 2 and these parts in its error.
fn refuses(arguments: &[&str], parts: &[&str]) {
    let (status, out, err) = run(arguments);
    assert_eq!((status, out.as_str()), (Some(2), ""), "{err}");
    for part in parts {
        assert!(err.contains(part), "{part}: {err}");
    }
}

#[test]
fn what_is_missing_is_named_with_a_hint() {
    refuses(&[], &["the name of the node is unknown", "hint: use `--node-name NAME`"]);
    refuses(
        &["--node-name", "n"],
        &["KUBERNETES_SERVICE_HOST is not set", "hint: name a kubeconfig file"],
    );
    refuses(
        &["--node-name", "n", "--kubeconfig", "/no/such/file"],
        &["cannot use `/no/such/file`", "hint: "],
    );
    refuses(&["cleanup"], &["KUBERNETES_SERVICE_HOST is not set", "hint: name a kubeconfig file"]);
    refuses(&["--print", "cleanup"], &["cannot be used with"]);
    refuses(&["--print", "--kubeconfig", "x"], &["cannot be used with"]);
    refuses(&["--output", "json"], &["--print"]);
}

#[test]
fn a_kubeconfig_file_that_cannot_be_used_is_refused_with_the_file_and_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config");
    let valid = "\
current-context: a
contexts: [{name: a, context: {cluster: b, user: c}}]
clusters: [{name: b, cluster: {server: 'https://127.0.0.1:1', certificate-authority-data: eA==}}]
users: [{name: c, user: {token: t}}]
";
    for (from, to, part) in [
        ("current-context: a", "current-context: z", "context: z"),
        ("cluster: b, user", "cluster: z, user", "cluster of context: z"),
        ("https://", "https:///", "cluster url"),
        ("token: t", "exec: {}", "command must be specified"),
        ("token: t", "tokenFile: missing", "missing"),
        ("eA==", "'!'", "certificate authority"),
        ("contexts: [", "contexts: {", "YAML"),
    ] {
        std::fs::write(&file, valid.replacen(from, to, 1)).unwrap();
        let path = file.display().to_string();
        refuses(&["--node-name", "n", "--kubeconfig", &path], &[part, &path, "hint: "]);
    }
}
