//! The steps of `cargo xtask test`, and the machines that each one runs on.

use anyhow::Result;

use crate::process::run;
use crate::skipped_part::SkippedPart;
use crate::workspace::{self, cargo};
use crate::{
    attack, clients, cluster_suite, documentation, gpu_suite, image_suite, imports, kubelet_suite,
    manifests, metrics_suite, nightly, prerequisites, release, version_info, wine_suite,
};

/// One check.
pub(super) struct Step {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) kind: Kind,
    pub(super) needs: Needs,
    pub(super) run: Run,
}

/// The function of a step; an error if the check fails.
#[derive(Clone, Copy)]
pub(super) enum Run {
    Whole(fn() -> Result<()>),
    /// Returns the parts that could not run on this machine.
    Parts(fn() -> Result<Vec<SkippedPart>>),
}

/// The machines that a step runs on, and why it is skipped on others.
#[derive(Clone, Copy)]
pub(super) enum Needs {
    Anything,
    Unix(&'static str),
    Linux(&'static str),
    LinuxOnX86(&'static str),
    LinuxOrWindows(&'static str),
}

impl Needs {
    /// Why a step is skipped on a machine, which [`std::env::consts`] describes with `os` and
    /// `arch`.
    pub(super) fn missing(self, os: &str, arch: &str) -> Option<&'static str> {
        let (is_met, reason) = match self {
            Needs::Anything => return None,
            Needs::Unix(reason) => (os != "windows", reason),
            Needs::Linux(reason) => (os == "linux", reason),
            Needs::LinuxOnX86(reason) => (os == "linux" && arch == "x86_64", reason),
            Needs::LinuxOrWindows(reason) => (["linux", "windows"].contains(&os), reason),
        };
        (!is_met).then_some(reason)
    }
}

/// Whether `--quick` runs a step.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Needs only Rust, and at most a few minutes on a fresh clone.
    Quick,
    /// Needs other tools or more time.
    Full,
}

/// The checks in the order they run: the cheapest first.
pub(super) const STEPS: &[Step] = &[
    Step {
        name: "fmt",
        about: "formatting",
        kind: Kind::Quick,
        needs: Needs::Anything,
        run: Run::Whole(formatting),
    },
    Step {
        name: "clippy",
        about: "lints for this machine",
        kind: Kind::Quick,
        needs: Needs::Anything,
        run: Run::Whole(lints),
    },
    Step {
        name: "unit",
        about: "tests of every crate, with the kubelet double",
        kind: Kind::Quick,
        needs: Needs::Anything,
        run: Run::Whole(tests),
    },
    Step {
        name: "rustdoc",
        about: "Rust documentation",
        kind: Kind::Full,
        needs: Needs::Anything,
        run: Run::Whole(rustdoc),
    },
    Step {
        name: "docs",
        about: "commands in README.md and docs",
        kind: Kind::Full,
        needs: Needs::Linux("the documented commands are written for a Linux shell"),
        run: Run::Whole(documentation::commands),
    },
    Step {
        name: "links",
        about: "links in Markdown files",
        kind: Kind::Full,
        needs: Needs::Linux("pip is Debian's"),
        run: Run::Whole(documentation::links),
    },
    Step {
        name: "deny",
        about: "licenses and advisories of dependencies",
        kind: Kind::Full,
        needs: Needs::Anything,
        run: Run::Whole(nightly::deny),
    },
    Step {
        name: "fuzz",
        about: "parsers of untrusted input, with generated inputs",
        kind: Kind::Full,
        needs: Needs::Unix("the build of the fuzz targets needs a Unix C++ compiler for libFuzzer"),
        run: Run::Whole(nightly::fuzz),
    },
    Step {
        name: "kubelet",
        about: "the kubelet's own device manager",
        kind: Kind::Full,
        needs: Needs::LinuxOrWindows("kubelets run on Linux and Windows only"),
        run: Run::Parts(kubelet_suite::check),
    },
    Step {
        name: "cluster",
        about: "a Kubernetes cluster: API server, scheduler, controllers, kubelets",
        kind: Kind::Full,
        needs: Needs::Linux("the cluster uses mount namespaces"),
        run: Run::Whole(cluster_suite::check),
    },
    Step {
        name: "metrics",
        about: "the metrics, read by Prometheus' own parsers",
        kind: Kind::Full,
        needs: Needs::Anything,
        run: Run::Whole(metrics_suite::check),
    },
    Step {
        name: "attack",
        about: "the daemon under attack, in a short form",
        kind: Kind::Full,
        needs: Needs::Linux("the attacks use FIFOs, signals and `/proc`"),
        run: Run::Whole(attack::check),
    },
    Step {
        name: "gpu",
        about: "gpu-probe with software devices, on Linux and under Wine",
        kind: Kind::Full,
        needs: Needs::Linux("the software devices are those of Debian"),
        run: Run::Whole(gpu_suite::check),
    },
    Step {
        name: "manifests",
        about: "deployment manifests and the Helm chart",
        kind: Kind::Full,
        needs: Needs::Unix("the tests replace Windows paths by those of another system"),
        run: Run::Whole(manifests::check),
    },
    Step {
        name: "clippy-windows",
        about: "lints for Windows",
        kind: Kind::Full,
        needs: Needs::Anything,
        run: Run::Whole(windows_lints),
    },
    Step {
        name: "windows-build",
        about: "every crate, built for Windows",
        kind: Kind::Full,
        needs: Needs::Anything,
        run: Run::Whole(windows_build),
    },
    Step {
        name: "clients",
        about: "C++ and Go clients of the discovery library",
        kind: Kind::Full,
        needs: Needs::Anything,
        run: Run::Parts(clients::check),
    },
    Step {
        name: "image",
        about: "container images, with a registry, containerd and skopeo",
        kind: Kind::Full,
        needs: Needs::Linux("skopeo, containerd and the registry are those of Debian"),
        run: Run::Whole(image_suite::check),
    },
    Step {
        name: "release",
        about: "a dry run of the release, and the archives that it writes",
        kind: Kind::Full,
        needs: Needs::LinuxOnX86("releases are built on Linux for x86-64"),
        run: Run::Whole(release::check),
    },
    Step {
        name: "wine",
        about: "the Windows programs under Wine",
        kind: Kind::Full,
        needs: Needs::Linux(
            "Wine is set up on Linux only; on Windows the suite would change the real machine",
        ),
        run: Run::Parts(wine_suite::check),
    },
];

fn formatting() -> Result<()> {
    prerequisites::for_lints()?;
    run(cargo().args(["fmt", "--all", "--check"]))
}

fn clippy() -> std::process::Command {
    let mut clippy = cargo();
    clippy.args(["clippy", "--quiet", "--workspace", "--all-targets"]);
    clippy
}

const DENY_WARNINGS: [&str; 3] = ["--", "--deny", "warnings"];

fn lints() -> Result<()> {
    prerequisites::for_lints()?;
    run(clippy().args(DENY_WARNINGS))
}

fn windows_lints() -> Result<()> {
    prerequisites::for_lints()?;
    prerequisites::for_windows_builds()?;
    run(workspace::for_windows(&mut clippy()).args(DENY_WARNINGS))?;
    // The filters have an entry point of their own, which no other program may link.
    let filter = |feature| {
        let mut filter = cargo();
        filter.args(["clippy", "--quiet", "--package", "visibility_filter"]);
        filter.args(["--features", feature]);
        filter
    };
    for feature in ["dll", "com"] {
        run(workspace::for_windows(&mut filter(feature)).args(DENY_WARNINGS))?;
    }
    if cfg!(windows) {
        return Ok(());
    }
    prerequisites::for_32_bit_builds()?;
    let mut filter = filter("dll");
    run(filter.args(["--target", workspace::WINDOWS_32_TARGET]).args(DENY_WARNINGS))
}

fn rustdoc() -> Result<()> {
    let arguments = ["doc", "--quiet", "--workspace", "--no-deps", "--document-private-items"];
    run(cargo().args(arguments).env("RUSTDOCFLAGS", "--deny warnings"))
}

fn tests() -> Result<()> {
    run(cargo().args(["test", "--quiet", "--workspace", "--no-fail-fast"]))
}

fn windows_build() -> Result<()> {
    prerequisites::for_windows_builds()?;
    let mut build = cargo();
    build.args(["build", "--quiet", "--workspace"]);
    if cfg!(windows) {
        // Windows does not replace a program that runs, such as this one.
        build.args(["--exclude", "xtask"]);
    }
    run(workspace::for_windows(&mut build))?;
    version_info::perform()?;
    imports::check(&version_info::built_files())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skipped_on(os: &str, arch: &str) -> Vec<&'static str> {
        let is_skipped = |step: &&Step| step.needs.missing(os, arch).is_some();
        STEPS.iter().filter(is_skipped).map(|step| step.name).collect()
    }

    #[test]
    fn linux_on_x86_skips_nothing() {
        assert!(skipped_on("linux", "x86_64").is_empty());
        assert_eq!(skipped_on("linux", "aarch64"), ["release"]);
    }

    #[test]
    fn windows_skips_what_needs_another_system() {
        let skipped = [
            "docs",
            "links",
            "fuzz",
            "cluster",
            "attack",
            "gpu",
            "manifests",
            "image",
            "release",
            "wine",
        ];
        assert_eq!(skipped_on("windows", "x86_64"), skipped);
    }

    #[test]
    fn other_systems_also_skip_the_kubelet() {
        let skipped =
            ["docs", "links", "kubelet", "cluster", "attack", "gpu", "image", "release", "wine"];
        assert_eq!(skipped_on("macos", "aarch64"), skipped);
    }
}
