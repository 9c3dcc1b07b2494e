//! Runs the Go tests in which the kubelet's own device manager drives our program.
//!
//! `testing/kubelet_suite` contains the tests and says what they need. They are built
//! with the newest and with the oldest kubelet, and run against a debug build. Go keeps
//! modules and builds in the user's cache itself, so a fresh clone reuses them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use crate::prerequisites;
use crate::process::{self, run};
use crate::workspace::{self, cargo};

/// A kubelet that the tests are built with.
struct Kubelet {
    /// The module file that requires this version.
    module_file: &'static str,
    /// Further arguments of `go test`.
    build_tags: &'static [&'static str],
}

const KUBELETS: [Kubelet; 2] = [
    Kubelet { module_file: "go.mod", build_tags: &[] },
    Kubelet { module_file: "oldest.mod", build_tags: &["-tags=oldest"] },
];

/// Bounds a run, so that nothing hangs. A run takes some minutes if Go has to compile the
/// kubelet first, and about half a minute otherwise.
const TIME_LIMIT: &str = "-timeout=15m";

/// Runs the tests with every kubelet, also after one has failed.
pub(crate) fn check() -> Result<()> {
    if !cfg!(target_os = "linux") {
        bail!("the kubelet tests use /var/lib/kubelet and run on Linux only");
    }
    prerequisites::require_go("the kubelet's device manager", "1.26")?;
    check_go_format(&folder())?;
    run(cargo().args(["build", "--quiet", "--package=plugin", "--bin=directx-device-plugin"]))?;
    let results = KUBELETS.map(|kubelet| run(&mut go_test(&kubelet)));
    results.into_iter().collect()
}

fn go_test(kubelet: &Kubelet) -> Command {
    let mut go = Command::new("go");
    go.current_dir(folder())
        .env("DIRECTX_DEVICE_PLUGIN", workspace::native_build("directx-device-plugin"))
        .args(["test", "-count=1", TIME_LIMIT])
        .arg(format!("-modfile={}", kubelet.module_file))
        .args(kubelet.build_tags)
        .arg("./...");
    go
}

/// Fails if a Go file in `folder` is not formatted.
pub(crate) fn check_go_format(folder: &Path) -> Result<()> {
    match process::stdout(Command::new("gofmt").arg("-l").arg(folder)) {
        None => bail!("`gofmt -l {}` failed", folder.display()),
        Some(files) if files.is_empty() => Ok(()),
        Some(files) => bail!("unformatted files: {}\nhint: run `gofmt -w`", files.trim_end()),
    }
}

fn folder() -> PathBuf {
    workspace::root().join("testing/kubelet_suite")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kubelets_have_different_versions() {
        let versions = KUBELETS.map(|kubelet| {
            let text = std::fs::read_to_string(folder().join(kubelet.module_file)).unwrap();
            let line = text.lines().find(|line| line.contains("k8s.io/kubernetes v"));
            line.expect("the module file requires a kubelet").to_owned()
        });
        assert_ne!(versions[0], versions[1]);
    }
}
