//! Runs the Go tests in which the kubelet's own device manager drives our program.
//!
//! `testing/kubelet_suite` contains the tests and says what they need. They are built
//! with the newest kubelet and with older ones, and run against a debug build. Go keeps
//! modules and builds in the user's cache itself, so a fresh clone reuses them.
//!
//! Elsewhere than on Windows they are also checked and built for it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::prerequisites;
use crate::process::{self, run};
use crate::skipped_part::SkippedPart;
use crate::workspace::{self, cargo};

/// The environment variable that names the program under test.
pub(crate) const PROGRAM_VARIABLE: &str = "DIRECTX_DEVICE_PLUGIN";

/// A kubelet that the tests are built with.
struct Kubelet {
    name: &'static str,
    /// The module file that requires this version.
    module_file: &'static str,
    /// Further arguments of Go's commands.
    build_tags: &'static [&'static str],
    /// Why the tests do not run on Windows.
    not_on_windows: Option<&'static str>,
}

const NEWEST: Kubelet = Kubelet {
    name: "the newest kubelet",
    module_file: "go.mod",
    build_tags: &[],
    not_on_windows: None,
};

/// As all kubelets from 1.26 to 1.36, it keeps one connection for each resource: the end of any
/// plugin ends the registration of the one that registered last.
const V1_34: Kubelet = Kubelet {
    name: "kubelet 1.34",
    module_file: "v1_34.mod",
    build_tags: &["-tags=v1_34"],
    not_on_windows: None,
};

const OLDEST: Kubelet = Kubelet {
    name: "the oldest kubelet",
    module_file: "oldest.mod",
    build_tags: &["-tags=oldest"],
    not_on_windows: Some("kubelets before 1.21 have no device manager on Windows"),
};

const KUBELETS: [Kubelet; 3] = [NEWEST, V1_34, OLDEST];

/// Bounds a run, so that nothing hangs. A run takes some minutes if Go has to compile the
/// kubelet first, and about a minute otherwise.
const TIME_LIMIT: &str = "-timeout=15m";

/// Runs the tests with every kubelet that this machine can have, also after one has failed.
pub(crate) fn check() -> Result<Vec<SkippedPart>> {
    prerequisites::require_go("the kubelet's device manager", "1.26")?;
    check_go_format(&folder())?;
    if !cfg!(windows) {
        windows_build()?;
    }
    run(cargo().args(["build", "--quiet", "--package=plugin", "--bin=directx-device-plugin"]))?;
    let (run_here, skipped) = on_this_machine(cfg!(windows));
    let results = run_here.iter().map(|kubelet| run(&mut go_test(kubelet)));
    results.collect::<Vec<_>>().into_iter().collect::<Result<()>>()?;
    Ok(skipped)
}

/// The kubelets that run on Windows or elsewhere, and the others.
fn on_this_machine(windows: bool) -> (Vec<Kubelet>, Vec<SkippedPart>) {
    let (mut run_here, mut skipped) = (Vec::new(), Vec::new());
    for kubelet in KUBELETS {
        match kubelet.not_on_windows.filter(|_| windows) {
            Some(reason) => skipped.push(SkippedPart::new(kubelet.name, reason)),
            None => run_here.push(kubelet),
        }
    }
    (run_here, skipped)
}

fn go_test(kubelet: &Kubelet) -> Command {
    let mut go = go(kubelet, &["test", "-count=1", TIME_LIMIT]);
    go.arg("./...").env(PROGRAM_VARIABLE, workspace::native_program("directx-device-plugin"));
    go
}

/// Checks the tests for Windows with every kubelet, and builds the test program.
fn windows_build() -> Result<()> {
    for kubelet in KUBELETS {
        run(for_windows(&mut go(&kubelet, &["vet"])).arg("./..."))?;
    }
    windows_program().map(drop)
}

/// Builds the tests with the newest kubelet as a program for Windows.
pub(crate) fn windows_program() -> Result<PathBuf> {
    let output = workspace::target_dir().join("kubelet-suite");
    fs::create_dir_all(&output).with_context(|| format!("cannot create {}", output.display()))?;
    let program = output.join("kubelet-suite.exe");
    run(for_windows(&mut go(&NEWEST, &["test", "-c"])).arg("-o").arg(&program).arg("."))?;
    Ok(program)
}

fn go(kubelet: &Kubelet, words: &[&str]) -> Command {
    let mut go = Command::new("go");
    go.current_dir(folder()).args(words);
    go.arg(format!("-modfile={}", kubelet.module_file)).args(kubelet.build_tags);
    go
}

fn for_windows(go: &mut Command) -> &mut Command {
    go.env("GOOS", "windows").env("GOARCH", "amd64").env("CGO_ENABLED", "0")
}

/// Fails if a Go file in `folder` is not formatted.
pub(crate) fn check_go_format(folder: &Path) -> Result<()> {
    match process::stdout(Command::new("gofmt").arg("-l").arg(folder)) {
        None => bail!("`gofmt -l {}` failed", folder.display()),
        Some(files) if files.is_empty() => Ok(()),
        Some(files) => bail!("unformatted files: {}\nhint: run `gofmt -w`", files.trim_end()),
    }
}

/// The folder of the tests, which they must run in.
pub(crate) fn folder() -> PathBuf {
    workspace::root().join("testing/kubelet_suite")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_kubelets_have_different_versions() {
        let versions = KUBELETS.map(|kubelet| {
            let text = fs::read_to_string(folder().join(kubelet.module_file)).unwrap();
            let line = text.lines().find(|line| line.contains("k8s.io/kubernetes v"));
            line.expect("the module file requires a kubelet").to_owned()
        });
        assert_eq!(BTreeSet::from(versions).len(), KUBELETS.len());
    }

    #[test]
    fn windows_has_no_device_manager_of_the_oldest_kubelet() {
        let (run_here, skipped) = on_this_machine(true);
        let names: Vec<_> = run_here.iter().map(|kubelet| kubelet.name).collect();
        assert_eq!(names, [NEWEST.name, V1_34.name]);
        assert_eq!((skipped.len(), &*skipped[0].part), (1, OLDEST.name));
        let (run_here, skipped) = on_this_machine(false);
        assert_eq!((run_here.len(), skipped), (KUBELETS.len(), Vec::new()));
    }
}
