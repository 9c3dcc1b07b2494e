//! Runs our programs in a Kubernetes cluster on this machine.
//!
//! `testing/cluster_suite` contains the tests, and in `control_plane` the cluster as one program:
//! etcd, the API server, the scheduler, the controller manager and the kubelet. Compiling it takes
//! some minutes, so it is built once per machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::cache::Cache;
use crate::process::{run, run_logged, stdout};
use crate::workspace::{self, cargo};
use crate::{kubelet_suite, prerequisites};

/// The name of the cluster's program, of its folder in the cache, and of its log there.
const ENTRY: &str = "control-plane";

/// Bounds a run, so that nothing hangs. It takes about half a minute.
const TIME_LIMIT: &str = "-timeout=10m";

/// The tests wait for components most of the time.
const PARALLEL: &str = "-parallel=8";

/// Where Kubernetes' programs have their version, which the module system does not set.
const VERSION_PACKAGE: &str = "k8s.io/component-base/version";

/// Runs the Go tests. Each one is printed with its duration.
pub(crate) fn check() -> Result<()> {
    prerequisites::require_go("the Kubernetes cluster", "1.26")?;
    kubelet_suite::check_go_format(&folder())?;
    run(cargo().args(["build", "--quiet", "--package=plugin", "--bin=directx-device-plugin"]))?;
    run(cargo().args(["build", "--quiet", "--package=feature_discovery"]))?;
    run(cargo().args(["build", "--quiet", "--package=fleet"]))?;
    run(test(&control_plane()?, workspace::native_program).args([TIME_LIMIT, PARALLEL, "."]))
}

/// The command that runs the Go tests with the programs at these paths.
pub(crate) fn test(control_plane: &Path, program: impl Fn(&str) -> PathBuf) -> Command {
    let mut test = Command::new("go");
    test.current_dir(folder())
        .env("CONTROL_PLANE", control_plane)
        .env(kubelet_suite::PROGRAM_VARIABLE, program("directx-device-plugin"))
        .env("DIRECTX_FEATURE_DISCOVERY", program("directx-feature-discovery"))
        .env("FLEET", program("fleet"))
        .args(["test", "-count=1", "-v"]);
    if !prerequisites::is_root() {
        // The programs mount folders, which needs a user that is root in its namespace.
        test.arg("-exec=unshare --user --map-root-user --");
    }
    test
}

/// The program that contains the cluster, built if it is not in the user's cache.
pub(crate) fn control_plane() -> Result<PathBuf> {
    let cache = Cache::open()?;
    let go = stdout(Command::new("go").arg("version")).unwrap_or_default();
    let sources = sources()?;
    let made_from: Vec<&str> = sources.iter().map(String::as_str).chain([go.as_str()]).collect();
    let entry = cache.entry(ENTRY, &made_from, |entry| {
        eprintln!("building the Kubernetes cluster (once per machine; some minutes)");
        let mut build = Command::new("go");
        build
            .current_dir(folder())
            .arg("build")
            .arg(format!("-ldflags=-s -w {}", version_flags(&kubernetes_version(&sources)?)))
            .arg("-o")
            .arg(entry.join(ENTRY))
            .arg("./control_plane");
        run_logged(&mut build, &cache.log(ENTRY)?)
    })?;
    Ok(entry.join(ENTRY))
}

/// The content of the files that the program is built from; the module file is the first.
fn sources() -> Result<Vec<String>> {
    let folder = folder();
    let program = folder.join("control_plane");
    let listed =
        fs::read_dir(&program).with_context(|| format!("cannot read {}", program.display()))?;
    let mut paths = listed.map(|file| Ok(file?.path())).collect::<Result<Vec<_>>>()?;
    paths.sort();
    let modules = [folder.join("go.mod"), folder.join("go.sum")];
    let read = |path: &PathBuf| {
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
    };
    modules.iter().chain(&paths).map(read).collect()
}

/// The version of Kubernetes that the module file requires, such as `v1.37.1`.
fn kubernetes_version(sources: &[String]) -> Result<String> {
    let version = |line: &str| Some(line.trim().strip_prefix("k8s.io/kubernetes ")?.to_owned());
    let module_file = sources.first().context("no module file")?;
    module_file.lines().find_map(version).context("the module file does not require Kubernetes")
}

/// The linker's flags that set the version of the components.
fn version_flags(version: &str) -> String {
    let mut numbers = version.trim_start_matches('v').split('.');
    let mut next = || numbers.next().unwrap_or_default().to_owned();
    let values = [("gitVersion", version.to_owned()), ("gitMajor", next()), ("gitMinor", next())];
    values.map(|(name, value)| format!("-X {VERSION_PACKAGE}.{name}={value}")).join(" ")
}

fn folder() -> PathBuf {
    workspace::root().join(Path::new("testing/cluster_suite"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cluster_has_the_version_of_the_newest_kubelet() {
        let version = kubernetes_version(&sources().unwrap()).unwrap();
        let kubelet = fs::read_to_string(kubelet_suite::folder().join("go.mod")).unwrap();
        assert_eq!(version, kubernetes_version(&[kubelet]).unwrap());
    }

    #[test]
    fn the_version_is_set_as_kubernetes_names_it() {
        let expected = "-X k8s.io/component-base/version.gitVersion=v1.37.1 \
                        -X k8s.io/component-base/version.gitMajor=1 \
                        -X k8s.io/component-base/version.gitMinor=37";
        assert_eq!(version_flags("v1.37.1"), expected);
    }
}
