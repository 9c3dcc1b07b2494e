//! The kubelet's own device manager, in Go, drives the program of this workspace.
//!
//! `testing/kubelet_suite` holds the tests and says what they need. Here they are built with
//! the newest and with the oldest kubelet, and run against a debug build.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, bail};

use crate::process::{self, run};
use crate::workspace::{self, cargo};

/// A kubelet that the tests are built with.
struct Kubelet {
    /// The module file that requires it.
    module_file: &'static str,
    /// What `go test` is told, besides.
    build_tags: &'static [&'static str],
}

const KUBELETS: [Kubelet; 2] = [
    Kubelet { module_file: "go.mod", build_tags: &[] },
    Kubelet { module_file: "oldest.mod", build_tags: &["-tags=oldest"] },
];

/// Bounds a run, so that nothing hangs; it takes minutes where Go has to compile the
/// kubelet first, and about half a minute otherwise.
const TIME_LIMIT: &str = "-timeout=15m";

/// Runs the tests with every kubelet, all of them even if one fails.
pub(crate) fn perform() -> Result<()> {
    if !cfg!(target_os = "linux") {
        bail!("the kubelet's tests borrow /var/lib/kubelet and run on Linux alone");
    }
    if process::answer(Command::new("go").arg("version")).is_none() {
        bail!(
            "Go is missing, which builds the kubelet's device manager\n\
             hint: install Go 1.26 or newer from https://go.dev/dl"
        );
    }
    formatting()?;
    run(cargo().args(["build", "--quiet", "--package=plugin", "--bin=directx-device-plugin"]))?;
    let results = KUBELETS.map(|kubelet| run(&mut go_test(&kubelet)));
    results.into_iter().collect()
}

fn go_test(kubelet: &Kubelet) -> Command {
    let mut go = Command::new("go");
    go.current_dir(folder())
        .env("DIRECTX_DEVICE_PLUGIN", workspace::own_build("directx-device-plugin"))
        .args(["test", "-count=1", TIME_LIMIT])
        .arg(format!("-modfile={}", kubelet.module_file))
        .args(kubelet.build_tags)
        .arg("./...");
    go
}

fn formatting() -> Result<()> {
    match process::answer(Command::new("gofmt").arg("-l").arg(folder())) {
        None => bail!("`gofmt -l {}` fails", folder().display()),
        Some(files) if files.is_empty() => Ok(()),
        Some(files) => bail!("not formatted: {}\nhint: run `gofmt -w`", files.trim_end()),
    }
}

fn folder() -> PathBuf {
    workspace::root().join("testing/kubelet_suite")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kubelet_is_another_version() {
        let versions = KUBELETS.map(|kubelet| {
            let text = std::fs::read_to_string(folder().join(kubelet.module_file)).unwrap();
            let line = text.lines().find(|line| line.contains("k8s.io/kubernetes v"));
            line.expect("the module file requires a kubelet").to_owned()
        });
        assert_ne!(versions[0], versions[1]);
    }
}
