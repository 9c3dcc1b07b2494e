//! Runs the Go tests of `testing/kubernetes`: each step runs some of its packages, which say what
//! they test. Go keeps what it compiles in the user's cache.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::image::{self, LINUX, Source};
use crate::manifests;
use crate::prerequisites;
use crate::process::{download, run, stdout};
use crate::workspace;

const DEVICE_MANAGER: &str = "./devicemanager";

/// The arguments of Go for the device manager of an older kubelet.
const KUBELET_1_34: [&str; 2] = ["-modfile=v1_34.mod", "-tags=older"];
const KUBELET_1_26: [&str; 2] = ["-modfile=v1_26.mod", "-tags=older"];

/// Downloads the modules of all tests but those of the oldest kubelet. They are large.
pub(crate) fn download_modules() -> Result<()> {
    if stdout(Command::new("go").arg("version")).is_none() {
        bail!("Go is not installed\nhint: install Go 1.26 or newer from https://go.dev/dl");
    }
    let packages: &[&str] = match env::consts::OS {
        "linux" => &["./..."],
        "windows" => &[DEVICE_MANAGER, "./metrics"],
        _ => &["./metrics"],
    };
    download(go("list").args(["-deps", "-test"]).args(packages))?;
    if cfg!(any(target_os = "linux", windows)) {
        download_older(KUBELET_1_34)?;
    }
    if cfg!(target_os = "linux") {
        // The step `wine` builds it.
        let mut go = go("list");
        go.current_dir(wine_bed().join("containerd")).env("GOOS", "windows");
        download(go.args(["-deps", "."]))?;
    }
    Ok(())
}

pub(crate) fn download_oldest_kubelet() -> Result<()> {
    download_older(KUBELET_1_26)
}

fn download_older(kubelet: [&str; 2]) -> Result<()> {
    download(go("list").args(["-deps", "-test"]).args(kubelet).arg(DEVICE_MANAGER))
}

/// The manifests and the Helm chart.
pub(crate) fn manifests() -> Result<()> {
    manifests::check()?;
    build_programs()?;
    let mut tests = test();
    tests
        .env("PATH", path_with_helm()?)
        .env("OLDEST_HELM", prerequisites::helm()?.join("oldest/helm"));
    run(tests.arg("./manifests"))
}

/// The device manager of the newest kubelet, and of the newest one that has the same connection
/// for several plugins.
pub(crate) fn kubelet() -> Result<()> {
    build_programs()?;
    run(test().arg(DEVICE_MANAGER))?;
    run(test().args(KUBELET_1_34).arg(DEVICE_MANAGER))
}

/// The device manager of the oldest kubelet.
pub(crate) fn oldest_kubelet() -> Result<()> {
    build_programs()?;
    run(test().args(KUBELET_1_26).arg(DEVICE_MANAGER))
}

/// A cluster, and the program that tests a Windows node, with a kubelet.
pub(crate) fn cluster() -> Result<()> {
    build_programs()?;
    // Tests of both packages build it; two builds at the same time would compile it twice.
    let discarded = workspace::target_dir().join("control-plane");
    run(go("build").arg("-o").arg(discarded).arg("./control_plane"))?;
    run(go("vet").arg("./windows_node").env("GOOS", "windows"))?;
    let path = path_with_helm()?;
    run(test().args(["./cluster", "./windows_node"]).env("PATH", path))
}

/// The metrics, rules and dashboards.
pub(crate) fn metrics() -> Result<()> {
    build_programs()?;
    run(test().arg("./metrics"))
}

/// Builds the programs that the tests run. Go files that are not formatted are an error.
fn build_programs() -> Result<()> {
    let unformatted = stdout(Command::new("gofmt").arg("-l").args([folder(), wine_bed()]));
    ensure!(unformatted.as_deref() == Some(""), "`gofmt -l` reports {unformatted:?}");
    workspace::build()
}

/// `PATH` with helm in front.
pub(crate) fn path_with_helm() -> Result<OsString> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = [prerequisites::helm()?].into_iter().chain(env::split_paths(&path));
    env::join_paths(folders).context("cannot set PATH")
}

/// Runs the plugin, also from its image for Linux, on a Linux node with a container runtime.
pub(crate) fn linux_node() -> Result<()> {
    workspace::build()?;
    let archive = workspace::target_dir().join("linux-node.tar");
    let source = Source::read(None, false)?;
    let names = LINUX.names(&LINUX.unpublished(), workspace::VERSION);
    image::build(&LINUX, None, "dev", &source, names, None)?.write_archive(&archive)?;
    let runtime = prerequisites::container_runtime()?;
    let variables = [("CONTAINER_RUNTIME", runtime), ("PLUGIN_IMAGE", archive)];
    let mut tests = test();
    tests.envs(variables).env("PATH", path_with_helm()?);
    // The test prints why it is skipped.
    run(tests.args(["-v", "./linux_node"]))
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
