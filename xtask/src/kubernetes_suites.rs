//! Runs the Go tests of `testing/kubernetes`: the kubelet's own device manager in three versions, a
//! Kubernetes cluster, the API server's validation, helm, and Prometheus' parsers.
//!
//! Each package says what it tests. Go keeps what it compiles in the user's cache.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::prerequisites;
use crate::process::{run, stdout};
use crate::workspace::{self, cargo};

/// The environment variable that names the program under test.
pub(crate) const PROGRAM_VARIABLE: &str = "DIRECTX_DEVICE_PLUGIN";

const DEVICE_MANAGER: &str = "./devicemanager";

/// Runs all tests that run on this system.
pub(crate) fn check() -> Result<()> {
    prerequisites::require_go("Kubernetes and helm", "1.26")?;
    run(cargo().args(["build", "--quiet", "-p=plugin", "-p=feature_discovery", "-p=fleet"]))?;
    let unformatted = stdout(Command::new("gofmt").arg("-l").arg(folder()));
    ensure!(unformatted.as_deref() == Some(""), "`gofmt -l` reports {unformatted:?}");
    let packages: &[&str] = if cfg!(target_os = "linux") {
        &["./..."]
    } else if cfg!(windows) {
        &[DEVICE_MANAGER, "./metrics"]
    } else {
        &["./manifests", "./metrics"]
    };
    run(go("vet").args(packages))?;
    run(test().args(packages))?;
    if cfg!(any(target_os = "linux", windows)) {
        for module_file in ["v1_34.mod", "v1_26.mod"] {
            let arguments = [&format!("-modfile={module_file}"), "-tags=older", DEVICE_MANAGER];
            run(test().args(arguments))?;
        }
    }
    Ok(())
}

/// `go test`; `check` runs `go vet` once.
pub(crate) fn test() -> Command {
    let mut test = go("test");
    test.args(["-count=1", "-vet=off", "-timeout=30m"]);
    test
}

/// The path of helm, in the version of the module file. Go builds it if it is not in its cache.
pub(crate) fn helm() -> Result<PathBuf> {
    let path = stdout(go("tool").args(["-n", "helm"])).context("`go tool -n helm` failed")?;
    Ok(path.trim().into())
}

/// Builds the tests with the newest kubelet as a program for Windows.
pub(crate) fn windows_program() -> Result<PathBuf> {
    let program = workspace::target_dir().join("go/kubelet-suite.exe");
    let mut test = go("test");
    test.args(["-c", "-vet=off", "-o"]).arg(&program).arg(DEVICE_MANAGER);
    run(test.env("GOOS", "windows").env("GOARCH", "amd64").env("CGO_ENABLED", "0"))?;
    Ok(program)
}

/// The folder that the program of [`windows_program`] must run in.
pub(crate) fn device_manager_folder() -> PathBuf {
    folder().join(DEVICE_MANAGER)
}

fn go(word: &str) -> Command {
    let mut go = Command::new("go");
    go.current_dir(folder()).arg(word);
    go
}

fn folder() -> PathBuf {
    workspace::root().join("testing/kubernetes")
}
