//! The steps of `cargo xtask test`, in the order they start: the cheapest first.

use std::process::Command;

use anyhow::Result;

use crate::process::run;
use crate::workspace::{WINDOWS_32_TARGET, WINDOWS_TARGET, cargo, ignored_tests};
use crate::{attack, documentation, kubernetes_suites, nightly, prerequisites, windows_suites};

/// A check that runs a few commands.
pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) when: When,
    pub(crate) systems: Systems,
    pub(crate) run: fn() -> Result<()>,
}

/// Which runs include a step.
#[derive(Clone, Copy)]
pub(crate) enum When {
    /// Every run: the step needs only Rust.
    Quick,
    /// Every run but the quick one.
    Always,
    /// Only the nightly run, because the step takes long or builds its tools.
    Nightly,
}

/// The systems that a step runs on, and why it is skipped on others.
#[derive(Clone, Copy)]
pub(crate) enum Systems {
    All,
    Unix(&'static str),
    Linux(&'static str),
}

impl Systems {
    /// Why a step is skipped on the system `os` (see [`std::env::consts::OS`]).
    pub(crate) fn missing(self, os: &str) -> Option<&'static str> {
        match self {
            Systems::Unix(reason) if os == "windows" => Some(reason),
            Systems::Linux(reason) if os != "linux" => Some(reason),
            _ => None,
        }
    }
}

const LINUX_TOOLS: Systems = Systems::Linux("its tools are those of Debian");

pub(crate) const STEPS: &[Step] = &[
    Step {
        name: "fmt",
        about: "formatting",
        when: When::Quick,
        systems: Systems::All,
        run: formatting,
    },
    Step {
        name: "clippy",
        about: "lints for this machine",
        when: When::Quick,
        systems: Systems::All,
        run: lints,
    },
    Step {
        name: "unit",
        about: "all tests that need only Rust",
        when: When::Quick,
        systems: Systems::All,
        run: unit_tests,
    },
    Step {
        name: "rustdoc",
        about: "Rust documentation",
        when: When::Always,
        systems: Systems::All,
        run: rustdoc,
    },
    Step {
        name: "docs",
        about: "links in Markdown files, and the documented commands",
        when: When::Always,
        systems: Systems::Linux("the documented commands are written for a Linux shell"),
        run: documentation::check,
    },
    Step {
        name: "kubernetes",
        about: "the kubelet's device manager, a cluster, the manifests, Prometheus' parsers",
        when: When::Always,
        systems: Systems::All,
        run: kubernetes_suites::check,
    },
    Step {
        name: "attack",
        about: "the daemon under attack, in a short form",
        when: When::Always,
        systems: Systems::Linux("the attacks use FIFOs, signals and `/proc`"),
        run: attack::check,
    },
    Step {
        name: "clients",
        about: "C++ and Go clients of the discovery library",
        when: When::Always,
        systems: Systems::All,
        run: windows_suites::clients,
    },
    Step {
        name: "windows",
        about: "lints for Windows",
        when: When::Always,
        systems: Systems::Unix("the step `clippy` has them there"),
        run: windows_lints,
    },
    Step {
        name: "wine",
        about: "the Windows programs under Wine",
        when: When::Always,
        systems: Systems::Linux("on Windows it would change the real machine"),
        run: windows_suites::wine,
    },
    Step {
        name: "gpu",
        about: "gpu-probe with software devices, on Linux and under Wine",
        when: When::Always,
        systems: LINUX_TOOLS,
        run: windows_suites::gpu,
    },
    Step {
        name: "image",
        about: "container images, with a registry, containerd and skopeo",
        when: When::Always,
        systems: LINUX_TOOLS,
        run: images,
    },
    Step {
        name: "release",
        about: "a dry run of the release, and the archives that it writes",
        when: When::Always,
        systems: LINUX_TOOLS,
        run: release_files,
    },
    Step {
        name: "deny",
        about: "licenses, sources and advisories of dependencies",
        when: When::Nightly,
        systems: Systems::All,
        run: nightly::deny,
    },
    Step {
        name: "fuzz",
        about: "parsers of untrusted input, with libFuzzer",
        when: When::Nightly,
        systems: Systems::Unix("libFuzzer needs a Unix C++ compiler"),
        run: nightly::fuzz,
    },
    Step {
        name: "kubelet-windows",
        about: "the kubelet's device manager, built for Windows, under Wine",
        when: When::Nightly,
        systems: LINUX_TOOLS,
        run: windows_suites::device_manager,
    },
];

/// `cargo xtask setup`: installs what the steps need.
pub(crate) fn set_up() -> Result<()> {
    prerequisites::for_lints()?;
    prerequisites::for_windows_builds()?;
    if cfg!(target_os = "linux") {
        prerequisites::for_static_builds()?;
        prerequisites::install(prerequisites::PYTHON_PACKAGES)?;
        prerequisites::install(prerequisites::IMAGE_TESTS)?;
        prerequisites::install(prerequisites::GPU_TESTS)?;
        windows_suites::set_up_wine()?;
    }
    prerequisites::require_go()
}

const DENY_WARNINGS: [&str; 3] = ["--", "--deny", "warnings"];

fn formatting() -> Result<()> {
    prerequisites::for_lints()?;
    run(cargo().args(["fmt", "--all", "--check"]))
}

fn clippy() -> Command {
    let mut clippy = cargo();
    clippy.args(["clippy", "--quiet", "--workspace", "--all-targets"]);
    clippy
}

fn lints() -> Result<()> {
    prerequisites::for_lints()?;
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
    prerequisites::for_lints()?;
    prerequisites::for_windows_builds()?;
    run(clippy().args(["--target", WINDOWS_TARGET]).args(DENY_WARNINGS))?;
    // The filters have an entry point of their own, which no other program may link.
    for target in [WINDOWS_TARGET, WINDOWS_32_TARGET] {
        let mut clippy = cargo();
        clippy.args(["clippy", "--quiet", "--package", "visibility_filter"]);
        run(clippy.args(["--features", "dll", "--target", target]).args(DENY_WARNINGS))?;
    }
    Ok(())
}

fn images() -> Result<()> {
    prerequisites::install(prerequisites::IMAGE_TESTS)?;
    run(&mut ignored_tests(&["--test", "images"]))
}

fn release_files() -> Result<()> {
    prerequisites::install(prerequisites::IMAGE_TESTS)?;
    run(&mut ignored_tests(&["--test", "release"]))
}
