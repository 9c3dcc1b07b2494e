//! Checks what users install in a cluster: the manifests in `deploy` and the Helm chart.
//!
//! `testing/manifest_suite` contains the tests. They use the API server's own validation,
//! the real helm and a debug build of our program. helm is built from its Go module once
//! per machine.

use std::env::consts::EXE_SUFFIX;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::cache::Cache;
use crate::process::{run, run_logged};
use crate::workspace::{self, cargo};
use crate::{kubelet_suite, prerequisites};

/// The helm that lints and renders the chart.
const HELM_VERSION: &str = "v4.3.1";

/// Bounds a run, so that nothing hangs. A run takes some minutes if Go has to compile the
/// API server's packages first, and some seconds otherwise.
const TIME_LIMIT: &str = "-timeout=15m";

/// Runs the Go tests.
pub(crate) fn check() -> Result<()> {
    prerequisites::require_go("helm and the API server's validation", "1.26")?;
    kubelet_suite::check_go_format(&folder())?;
    let programs = ["--bin=directx-device-plugin", "--bin=directx-feature-discovery"];
    run(cargo()
        .args(["build", "--quiet", "--package=plugin", "--package=feature_discovery"])
        .args(programs))?;
    let helm = helm()?;
    let mut test = Command::new("go");
    test.current_dir(folder())
        .env("DIRECTX_DEVICE_PLUGIN", workspace::native_program("directx-device-plugin"))
        .env("DIRECTX_FEATURE_DISCOVERY", workspace::native_program("directx-feature-discovery"))
        .env("HELM", helm)
        .args(["test", "-count=1", TIME_LIMIT, "./..."]);
    run(&mut test)
}

/// helm, installed in the user's cache if it is not there.
pub(crate) fn helm() -> Result<PathBuf> {
    let cache = Cache::open()?;
    let folder = cache.entry("helm", &[HELM_VERSION], |folder| {
        eprintln!("building helm {HELM_VERSION} (once per machine; some minutes)");
        let mut install = Command::new("go");
        install
            .args(["install", "-trimpath", "-ldflags=-s -w"])
            .arg(format!("helm.sh/helm/v4/cmd/helm@{HELM_VERSION}"))
            .env("CGO_ENABLED", "0")
            .env("GOBIN", folder);
        run_logged(&mut install, &cache.log("helm")?)
    })?;
    Ok(folder.join(format!("helm{EXE_SUFFIX}")))
}

fn folder() -> PathBuf {
    workspace::root().join("testing/manifest_suite")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const IMAGE: &str = "ghcr.io/directx-device-plugin/directx-device-plugin";

    /// The version of all crates, which the released image has as its tag.
    const VERSION: &str = env!("CARGO_PKG_VERSION");

    fn read(path: &str) -> String {
        fs::read_to_string(workspace::root().join(path)).unwrap()
    }

    #[test]
    fn the_manifests_use_the_image_of_this_version() {
        let mut outdated = Vec::new();
        let mut count = 0;
        for entry in fs::read_dir(workspace::root().join("deploy")).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            for (index, line) in text.lines().enumerate() {
                let Some((_, image)) = line.split_once("image: ") else { continue };
                count += 1;
                if image != format!("{IMAGE}:{VERSION}") {
                    outdated.push(format!("{}:{}: {image}", path.display(), index + 1));
                }
            }
        }
        assert!(count > 0, "the manifests name no image");
        assert!(outdated.is_empty(), "expected {IMAGE}:{VERSION}:\n{}", outdated.join("\n"));
    }

    #[test]
    fn the_chart_has_the_version_of_this_program() {
        let chart = read("deploy/charts/directx-device-plugin/Chart.yaml");
        assert!(chart.lines().any(|line| line == format!("version: {VERSION}")), "{chart}");
        let app_version = format!("appVersion: \"{VERSION}\"");
        assert!(chart.lines().any(|line| line == app_version), "{chart}");
        let values = read("deploy/charts/directx-device-plugin/values.yaml");
        assert!(values.contains(&format!("  repository: {IMAGE}\n")), "{values}");
    }

    #[test]
    fn the_suite_validates_with_the_newest_kubelet_of_the_kubelet_suite() {
        let version = |suite: &str| {
            let text = read(&format!("testing/{suite}/go.mod"));
            let line = text.lines().find(|line| line.contains("k8s.io/kubernetes v"));
            line.expect("the module file requires Kubernetes").trim().to_owned()
        };
        assert_eq!(version("manifest_suite"), version("kubelet_suite"));
    }
}
