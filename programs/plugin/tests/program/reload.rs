//! The configuration of a running daemon.

use std::path::{Path, PathBuf};

use kubelet_double::{KubeletDouble, PodRequest};

use crate::daemon::{DISPLAY, Daemon, display, status, until};

const NPU: &str = "directx.microsoft.com/npu";

/// A daemon with a configuration file that a test may replace.
struct Configured {
    daemon: Daemon,
    file: PathBuf,
    _folder: tempfile::TempDir,
}

impl Configured {
    fn start(text: &str) -> Configured {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.yaml");
        std::fs::write(&file, text).unwrap();
        let daemon = Daemon::start(&["--config", file.to_str().unwrap()]);
        Configured { daemon, file, _folder: folder }
    }

    /// Replaces the file atomically, by a rename.
    fn configure(&self, text: &str) {
        let new = self.file.with_extension("new");
        std::fs::write(&new, text).unwrap();
        std::fs::rename(new, &self.file).unwrap();
    }
}

/// Waits until `status` reports this many rejected configurations.
async fn until_rejected(directory: &Path, count: usize) -> serde_json::Value {
    for _ in 0..500 {
        let (code, report) = status(directory);
        assert_eq!(code, Some(0), "{report}");
        if report["rejectedConfigurations"].as_array().map_or(0, Vec::len) == count {
            return report;
        }
        tokio::time::sleep(std::time::Duration::from_millis(40)).await;
    }
    panic!("`status` does not report {count} rejected configurations");
}

#[tokio::test]
async fn a_valid_configuration_is_applied_and_an_invalid_one_is_rejected() {
    if uds::skips_test() {
        return;
    }
    let configured = Configured::start("multitenancy: 2");
    let daemon = &configured.daemon;
    let kubelet = daemon.kubelet();
    until(&kubelet, "registered", |v| display(v) == Some((4, 4))).await;
    assert!(kubelet.admit(PodRequest::single("running", DISPLAY, 1)).await.is_admitted());

    configured.configure("multitenancy: 3");
    until(&kubelet, "more replicas", |v| display(v) == Some((6, 6))).await;
    let rule = format!("resources: [{{name: {NPU}, match: {{minMemoryMiB: 1000000}}}}]");
    configured.configure(&format!("multitenancy: 3\n{rule}"));
    until(&kubelet, "a new resource", |v| v.iter().any(|v| v.name == NPU)).await;

    configured.configure("multitenancy: 3\nnonsense: true");
    let report = until_rejected(&daemon.directory(), 1).await;
    let error = report["rejectedConfigurations"][0].as_str().unwrap();
    assert!(error.contains("config.yaml:2") && error.contains("nonsense"), "{error}");
    assert_eq!(display(&kubelet.resources()), Some((6, 6)));

    configured.configure("multitenancy: 1");
    until(&kubelet, "valid again", |v| display(v) == Some((2, 2))).await;
    until_rejected(&daemon.directory(), 0).await;
    assert_eq!((kubelet.registrations(DISPLAY), kubelet.registrations(NPU)), (1, 1));
    let registered = |kubelet: &KubeletDouble<_>| {
        let views = kubelet.resources();
        views.iter().any(|v| v.name == NPU && v.allocatable > 0)
    };
    assert!(!registered(&kubelet));

    let (code, log) = configured.daemon.terminate();
    assert_eq!(code, Some(0), "{log}");
    let changed = r#"key="multitenancy" before="2" value="3""#;
    assert!(log.contains(changed), "{log}");
    assert_eq!(log.matches("configuration rejected").count(), 1, "{log}");
    assert!(log.contains("resource removed"), "{log}");
}

/// By default it would terminate the daemon.
#[cfg(unix)]
#[tokio::test]
async fn sighup_reads_the_configuration_again_and_does_not_terminate() {
    let configured = Configured::start("multitenancy: 2");
    let kubelet = configured.daemon.kubelet();
    until(&kubelet, "registered", |v| display(v) == Some((4, 4))).await;
    let hang_up = || async {
        let kill = format!("kill -HUP {}", configured.daemon.child.id());
        assert!(std::process::Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    };
    hang_up().await;
    configured.configure("nonsense: true");
    until_rejected(&configured.daemon.directory(), 1).await;
    hang_up().await;
    configured.configure("multitenancy: 3");
    hang_up().await;
    until(&kubelet, "more replicas", |v| display(v) == Some((6, 6))).await;
    assert_eq!(kubelet.registrations(DISPLAY), 1);
    let (code, log) = configured.daemon.terminate();
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("the active configuration is up to date"), "{log}");
    // Once because the file changed, and once on request.
    assert_eq!(log.matches("configuration rejected").count(), 2, "{log}");
    assert_eq!(log.matches("configuration applied").count(), 1, "{log}");
}
