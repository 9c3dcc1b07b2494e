//! The configuration of a running daemon.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kubelet_double::{KubeletDouble, PodRequest};

use crate::daemon::{DISPLAY, Daemon, LIMIT, display, status, until};
use crate::monitoring;

const NPU: &str = "directx.microsoft.com/npu";

/// A daemon with a configuration file that a test may replace.
struct Configured {
    daemon: Daemon,
    file: PathBuf,
    _folder: tempfile::TempDir,
}

impl Configured {
    fn start(text: &str) -> Configured {
        Configured::start_with(text, &[])
    }

    fn start_with(text: &str, flags: &[&str]) -> Configured {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.yaml");
        std::fs::write(&file, text).unwrap();
        let flags = [&["--config", file.to_str().unwrap()], flags].concat();
        let daemon = Daemon::start(&flags);
        Configured { daemon, file, _folder: folder }
    }

    /// Replaces the file atomically, by a rename.
    fn configure(&self, text: &str) {
        let new = self.file.with_extension("new");
        std::fs::write(&new, text).unwrap();
        // On Windows that fails while the daemon reads the file.
        let started = Instant::now();
        while let Err(error) = std::fs::rename(&new, &self.file) {
            assert!(started.elapsed() < LIMIT, "{error}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Waits until `status` reports that the daemon is ready, and a rejected configuration with this
/// text, or none.
pub(crate) async fn until_rejected(directory: &Path, expected: Option<&str>) -> String {
    let started = Instant::now();
    loop {
        let (code, report) = status(directory);
        let error = report["rejectedConfigurations"][0].as_str();
        if code == Some(0)
            && error.is_some() == expected.is_some()
            && error.unwrap_or_default().contains(expected.unwrap_or_default())
        {
            return error.unwrap_or_default().to_owned();
        }
        assert!(started.elapsed() < LIMIT, "{expected:?}: {report}");
        tokio::time::sleep(Duration::from_millis(40)).await;
    }
}

#[tokio::test]
async fn a_valid_configuration_is_applied_and_an_invalid_one_is_rejected() {
    if device_plugin::unix_sockets::skips_test() {
        return;
    }
    let configured = Configured::start("multitenancy: 2");
    let daemon = &configured.daemon;
    let kubelet = daemon.kubelet();
    until(&kubelet, "registered", |v| display(v) == Some((4, 4))).await;
    assert!(kubelet.admit(PodRequest::single("running", DISPLAY, 1)).await.is_ok());

    configured.configure("multitenancy: 3");
    until(&kubelet, "more replicas", |v| display(v) == Some((6, 6))).await;
    let rule = format!("resources: [{{name: {NPU}, match: {{minMemoryMiB: 1000000}}}}]");
    configured.configure(&format!("multitenancy: 3\n{rule}"));
    until(&kubelet, "a new resource", |v| v.iter().any(|v| v.name == NPU)).await;

    configured.configure("multitenancy: 3\nnonsense: true");
    let error = until_rejected(&daemon.directory(), Some("nonsense")).await;
    assert!(error.contains("config.yaml:2"), "{error}");
    configured.configure("multitenancy: 1025");
    let error = until_rejected(&daemon.directory(), Some("0 to 1024")).await;
    assert!(error.contains("config.yaml:1: multitenancy"), "{error}");
    assert_eq!(display(&kubelet.resources()), Some((6, 6)));

    configured.configure("multitenancy: 1");
    until(&kubelet, "valid again", |v| display(v) == Some((2, 2))).await;
    until_rejected(&daemon.directory(), None).await;
    assert_eq!((kubelet.registrations(DISPLAY), kubelet.registrations(NPU)), (1, 1));
    let registered = |kubelet: &KubeletDouble<_>| {
        let views = kubelet.resources();
        views.iter().any(|v| v.name == NPU && v.allocatable > 0)
    };
    assert!(!registered(&kubelet));

    let (code, log) = configured.daemon.terminate();
    assert_eq!(code, Some(0), "{log}");
    let changed = r#"key="multitenancy" value="3""#;
    assert!(log.contains(changed), "{log}");
    assert_eq!(log.matches("configuration rejected").count(), 2, "{log}");
    assert!(log.contains("resource removed"), "{log}");
}

/// A change that the size and the time of the file do not show.
#[cfg(unix)]
#[tokio::test]
async fn sighup_reads_the_configuration_again() {
    let configured = Configured::start("multitenancy: 2");
    let daemon = &configured.daemon;
    let kubelet = daemon.kubelet();
    until(&kubelet, "registered", |v| display(v) == Some((4, 4))).await;
    // The second look at the files, a second after the first one, always reads them.
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    let file = std::fs::File::options().write(true).open(&configured.file).unwrap();
    let time = file.metadata().unwrap().modified().unwrap();
    std::fs::write(&configured.file, "multitenancy: 3").unwrap();
    file.set_modified(time).unwrap();
    let mut kill = std::process::Command::new("kill");
    kill.args(["-HUP", &daemon.child.id().to_string()]);
    assert!(kill.status().unwrap().success());
    until(&kubelet, "more replicas", |v| display(v) == Some((6, 6))).await;
    daemon.wait_for_line("reading the configuration again signal=\"SIGHUP\"");
    let (code, log) = configured.daemon.terminate();
    assert_eq!(code, Some(0), "{log}");
}

/// An earlier plugin read the file. It is not one of those that must stay.
#[cfg(unix)]
#[tokio::test]
async fn the_keys_of_a_file_that_is_ignored_can_be_moved() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("kubelet")).unwrap();
    let [earlier, file] = ["wddm.toml", "wddm.yaml"].map(|name| folder.path().join(name));
    std::fs::write(&earlier, "multitenancy: 2").unwrap();
    let daemon = Daemon::start_in(folder, &[], std::process::Stdio::piped()).with_log();
    let kubelet = daemon.kubelet();
    until(&kubelet, "registered", |v| display(v) == Some((2, 2))).await;
    daemon.wait_for_line("wddm.toml` is ignored: write its keys to wddm.yaml");
    std::fs::rename(earlier, file).unwrap();
    until(&kubelet, "more replicas", |v| display(v) == Some((4, 4))).await;
}

#[tokio::test]
async fn the_outcome_and_the_resources_are_on_the_pages_for_monitoring() {
    if device_plugin::unix_sockets::skips_test() {
        return;
    }
    let rule = format!("resources: [{{name: {NPU}, match: {{minMemoryMiB: 1000000}}}}]");
    let configured = Configured::start_with(&rule, &["--listen", "127.0.0.1:0"]);
    let address = monitoring::address(&configured.daemon);
    let kubelet = configured.daemon.kubelet();
    let directory = configured.daemon.directory();
    until(&kubelet, "registered", |v| display(v) == Some((2, 2))).await;
    let of_rule = format!("resource=\"{NPU}\"");
    // The text of a scrape may be half a second old.
    let until_metrics = |is_current: bool, has_rule: bool| {
        let started = Instant::now();
        let successful = "directx_device_plugin_config_last_reload_successful";
        let value = if is_current { " 1.0" } else { " 0.0" };
        loop {
            let text = monitoring::get(address, "/metrics").1;
            let line = text.lines().find(|line| line.starts_with(successful)).unwrap();
            if line.ends_with(value) && text.contains(&of_rule) == has_rule {
                return text;
            }
            assert!(started.elapsed() < LIMIT, "{is_current} {has_rule}: {text}");
            std::thread::sleep(Duration::from_millis(100));
        }
    };
    until_metrics(true, true);

    configured.configure("nonsense: true");
    until_rejected(&directory, Some("nonsense")).await;
    let (status, text) = monitoring::get(address, "/readyz");
    assert_eq!(status, 200, "{text}");
    assert!(text.contains("configuration rejected, the previous one is active: "), "{text}");
    assert!(text.contains("nonsense"), "{text}");
    until_metrics(false, true);

    configured.configure("multitenancy: 2");
    until_rejected(&directory, None).await;
    let text = until_metrics(true, false);
    for result in ["applied", "rejected"] {
        let series = format!("directx_device_plugin_config_reloads_total{{result=\"{result}\"}} 1");
        monitoring::assert_has(&text, &series);
    }
}
