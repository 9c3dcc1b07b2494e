//! Named configurations of a running daemon, one of which is selected as a node's label would.

use std::path::{Path, PathBuf};

use crate::daemon::{Daemon, display, until};
use crate::harness::{outcome, program, recorded};
use crate::monitoring;
use crate::reload::until_rejected;

/// A folder with the configurations `default` (2 replicas) and `shared` (4), and a selection.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        let folder = Folder(tempfile::tempdir().unwrap());
        std::fs::create_dir(folder.configs()).unwrap();
        std::fs::write(folder.configs().join("default"), "multitenancy: 2").unwrap();
        std::fs::write(folder.configs().join("shared"), "multitenancy: 4").unwrap();
        folder
    }

    fn configs(&self) -> PathBuf {
        self.0.path().join("configs")
    }

    fn selection(&self) -> PathBuf {
        self.0.path().join("selection")
    }

    fn select(&self, name: &str) {
        self.replace(&self.selection(), name);
    }

    /// At once: a file that is written in two steps may be read between them.
    fn replace(&self, path: &Path, text: &str) {
        let new = self.0.path().join("new");
        std::fs::write(&new, text).unwrap();
        std::fs::rename(new, path).unwrap();
    }

    fn start(&self, more: &[&str]) -> Daemon {
        let (configs, selection) = (self.configs(), self.selection());
        let path = |path: &Path| path.to_str().unwrap().to_owned();
        let (configs, selection) = (path(&configs), path(&selection));
        let own = ["--config-directory", &configs, "--config-selection", &selection];
        Daemon::start(&[&own, more].concat())
    }
}

#[tokio::test]
async fn a_daemon_follows_the_selection_and_the_configurations() {
    if uds::skips_test() {
        return;
    }
    let folder = Folder::new();
    let mut daemon = folder.start(&["--listen", "127.0.0.1:0"]);
    let address = monitoring::address(&daemon);
    let (kubelet, directory) = (daemon.kubelet(), daemon.directory());
    until(&kubelet, "the default", |v| display(v) == Some((4, 4))).await;
    folder.select("shared");
    until(&kubelet, "selected", |v| display(v) == Some((8, 8))).await;
    folder.replace(&folder.configs().join("shared"), "multitenancy: 5");
    until(&kubelet, "edited", |v| display(v) == Some((10, 10))).await;

    folder.select("exclusive");
    let error = until_rejected(&directory, Some("no configuration is named `exclusive`")).await;
    assert!(error.contains("; hint: "), "{error}");
    assert_eq!(display(&kubelet.resources()), Some((10, 10)));
    let (status, text) = monitoring::get(address, "/readyz");
    assert_eq!(status, 200, "{text}");
    assert!(text.contains("`exclusive`"), "{text}");
    let text = monitoring::get(address, "/metrics").1;
    let rejected = "directx_device_plugin_config_reloads_total{result=\"rejected\"} 1";
    monitoring::assert_has(&text, rejected);

    folder.select("");
    until(&kubelet, "the default again", |v| display(v) == Some((4, 4))).await;
    until_rejected(&directory, None).await;
    assert_eq!(kubelet.registrations(crate::daemon::DISPLAY), 1);
    assert_eq!(daemon.stop(), Some(0));
}

#[tokio::test]
async fn a_daemon_starts_with_the_default_and_reports_an_unknown_selection() {
    if uds::skips_test() {
        return;
    }
    let folder = Folder::new();
    folder.select("exclusive");
    let daemon = folder.start(&["--config-default", "shared"]);
    let kubelet = daemon.kubelet();
    until(&kubelet, "the default", |v| display(v) == Some((8, 8))).await;
    until_rejected(&daemon.directory(), Some("`exclusive`")).await;
    let (code, log) = daemon.terminate();
    assert_eq!(code, Some(0), "{log}");
    assert_eq!(log.matches("configuration rejected").count(), 1, "{log}");
}

#[test]
fn options_that_exclude_or_need_each_other_and_bad_names_are_wrong_usage() {
    for (options, message) in [
        (&["--config", "a", "--config-directory", "b"][..], "cannot be used with"),
        (&["--config-selection", "a"], "--config-directory <DIR>"),
        (&["--config-default", "a"], "--config-directory <DIR>"),
        (&["--config-directory", "a", "--config-default", "../b"], "a name has 1 to 63 letters"),
        (
            &["--config-directory", "not-there"],
            "no configuration is named `default` in `not-there`",
        ),
    ] {
        for name in ["serve", "simulate"] {
            let inventory = recorded("aws-t4-two.yaml");
            let mut command = program();
            command.arg(name).arg("--inventory").arg(inventory).args(options);
            let (status, _, err) = outcome(&command.output().unwrap());
            assert!(status == Some(2) && err.contains(message), "{name} {options:?}: {err}");
        }
    }
}
