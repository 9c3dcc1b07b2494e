//! Runs the Go tests of `testing/kubernetes`: the kubelet's own device manager in three versions, a
//! Kubernetes cluster, the API server's validation, helm, Prometheus' parsers, and the program that
//! tests a Windows node.
//!
//! Each package says what it tests. Go keeps what it compiles in the user's cache.

use std::env::{self, consts::OS};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::image::{self, LINUX, NO_REGISTRY, Source};
use crate::prerequisites;
use crate::process::{download, run, stdout};
use crate::workspace;

const DEVICE_MANAGER: &str = "./devicemanager";

/// The packages whose tests run on this system.
fn packages() -> &'static [&'static str] {
    match OS {
        "linux" => &["./..."],
        "windows" => &[DEVICE_MANAGER, "./metrics"],
        _ => &["./metrics"],
    }
}

/// The versions of Kubernetes whose device manager is tested in addition to the newest.
fn older() -> &'static [&'static str] {
    match OS {
        "linux" | "windows" => &["-modfile=v1_34.mod", "-modfile=v1_26.mod"],
        _ => &[],
    }
}

/// Downloads the modules of the tests, which are large.
pub(crate) fn download_modules() -> Result<()> {
    if stdout(Command::new("go").arg("version")).is_none() {
        bail!("Go is not installed\nhint: install Go 1.26 or newer from https://go.dev/dl");
    }
    download(go("list").args(["-deps", "-test"]).args(packages()))?;
    for module_file in older() {
        download(go("list").args(["-deps", "-test", module_file, "-tags=older", DEVICE_MANAGER]))?;
    }
    if cfg!(target_os = "linux") {
        // The step `wine` builds it.
        let mut go = go("list");
        go.current_dir(wine_bed().join("containerd")).env("GOOS", "windows");
        download(go.args(["-deps", "."]))?;
    }
    Ok(())
}

/// Runs all tests that run on this system.
pub(crate) fn check() -> Result<()> {
    workspace::build()?;
    let unformatted = stdout(Command::new("gofmt").arg("-l").args([folder(), wine_bed()]));
    ensure!(unformatted.as_deref() == Some(""), "`gofmt -l` reports {unformatted:?}");
    // Tests of two packages build it at the same time, which would compile it twice.
    if cfg!(target_os = "linux") {
        run(go("build").arg("./control_plane"))?;
        run(go("vet").arg("./windows_node").env("GOOS", "windows"))?;
    }
    let mut tests = test();
    if cfg!(target_os = "linux") {
        tests
            .env("PATH", path_with_helm()?)
            .env("OLDEST_HELM", prerequisites::helm()?.join("oldest/helm"));
    }
    run(tests.args(packages()))?;
    for module_file in older() {
        run(test().args([module_file, "-tags=older", DEVICE_MANAGER]))?;
    }
    Ok(())
}

/// Runs the plugin, also from its image for Linux, on a Linux node with a container runtime.
pub(crate) fn linux_node() -> Result<()> {
    workspace::build()?;
    let archive = workspace::target_dir().join("linux-node.tar");
    let source = Source::read(None, false)?;
    let name = format!("{NO_REGISTRY}/{}:{}", LINUX.name, workspace::VERSION);
    image::build(&LINUX, None, "dev", &source, &name)?.write_archive(&archive)?;
    let runtime = prerequisites::container_runtime()?;
    let variables = [("CONTAINER_RUNTIME", runtime), ("PLUGIN_IMAGE", archive)];
    // The test prints why it is skipped.
    run(test().args(["-v", "./linux_node"]).envs(variables))
}

/// `PATH` with helm in front.
pub(crate) fn path_with_helm() -> Result<OsString> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = [prerequisites::helm()?].into_iter().chain(env::split_paths(&path));
    env::join_paths(folders).context("cannot set PATH")
}

/// `go test`, without `go vet`, which would analyze all packages of Kubernetes first.
fn test() -> Command {
    let mut test = go("test");
    test.args(["-count=1", "-vet=off", "-timeout=30m"]);
    test
}

fn go(word: &str) -> Command {
    let mut go = Command::new("go");
    go.current_dir(folder()).arg(word);
    go
}

fn folder() -> PathBuf {
    workspace::root().join("testing/kubernetes")
}

fn wine_bed() -> PathBuf {
    workspace::root().join("testing/wine_bed")
}
