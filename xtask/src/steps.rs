//! The steps of `cargo xtask test`, in the order they start: the cheapest first.

use std::env::consts::OS;
use std::process::Command;

use anyhow::Result;

use crate::needs::{
    CARGO_DENY, CARGO_FUZZ, CONTAINER_RUNTIME, CPP, CRATES, GO, GPUS, IMAGE_TOOLS, LINK_CHECKER,
    LINTS, NINJA, Need, SCRIPT_CHECKERS, STATIC_BUILDS, WINDOWS_BUILDS, WINDOWS_PROGRAMS, WINE,
    WINE_32,
};
use crate::process::run;
use crate::workspace::{
    self, STATIC_TARGET, WINDOWS_32_TARGET, WINDOWS_TARGET, cargo, ignored_tests,
};
use crate::{attack, documentation, image, kubernetes_suites, nightly, windows_suites};

/// A check that runs a few commands.
pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) when: When,
    pub(crate) systems: Systems,
    /// What is set up before the first step, in addition to [`CRATES`].
    pub(crate) needs: &'static [Need],
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
        needs: &[LINTS],
        run: formatting,
    },
    Step {
        name: "clippy",
        about: "lints for this machine",
        when: When::Quick,
        systems: Systems::All,
        needs: &[LINTS],
        run: lints,
    },
    Step {
        name: "unit",
        about: "all tests that need only Rust",
        when: When::Quick,
        systems: Systems::All,
        needs: &[],
        run: unit_tests,
    },
    Step {
        name: "rustdoc",
        about: "Rust documentation",
        when: When::Always,
        systems: Systems::All,
        needs: &[],
        run: rustdoc,
    },
    Step {
        name: "docs",
        about: "links in Markdown files, documented commands, workflows and scripts",
        when: When::Always,
        systems: Systems::Linux("the documented commands are written for a Linux shell"),
        needs: &[LINK_CHECKER, SCRIPT_CHECKERS],
        run: documentation::check,
    },
    Step {
        name: "kubernetes",
        about: "the kubelet's device manager, a cluster, the manifests, Prometheus' parsers",
        when: When::Always,
        systems: Systems::All,
        needs: &[GO],
        run: kubernetes_suites::check,
    },
    Step {
        name: "attack",
        about: "the daemon under attack, in a short form",
        when: When::Always,
        systems: Systems::Linux("the attacks use FIFOs, signals and `/proc`"),
        needs: &[],
        run: attack::check,
    },
    Step {
        name: "dxg",
        about: "the static Linux program with a double of /dev/dxg at its system calls",
        when: When::Always,
        systems: Systems::Linux("the program is that of Linux nodes"),
        needs: &[STATIC_BUILDS],
        run: dxg,
    },
    Step {
        name: "clients",
        about: "C++ and Go clients of the discovery library",
        when: When::Always,
        systems: Systems::All,
        needs: &[GO, CPP],
        run: windows_suites::clients,
    },
    Step {
        name: "windows",
        about: "lints for Windows",
        when: When::Always,
        systems: Systems::Unix("the step `clippy` has them there"),
        needs: &[LINTS, WINDOWS_BUILDS],
        run: windows_lints,
    },
    Step {
        name: "wine",
        about: "the Windows programs under Wine",
        when: When::Always,
        systems: Systems::Linux("on Windows it would change the real machine"),
        needs: &[GO, NINJA, WINDOWS_BUILDS, WINE],
        run: windows_suites::wine,
    },
    Step {
        name: "wine-32",
        about: "32-bit Windows programs under Wine",
        when: When::Always,
        systems: LINUX_TOOLS,
        needs: &[WINDOWS_BUILDS, WINE, WINE_32],
        run: windows_suites::wine_32,
    },
    Step {
        name: "wine-programs",
        about: "unmodified Windows programs with `directx-visible` under Wine",
        when: When::Always,
        systems: LINUX_TOOLS,
        needs: &[WINDOWS_BUILDS, WINE, WINDOWS_PROGRAMS],
        run: windows_suites::programs,
    },
    Step {
        name: "gpu",
        about: "gpu-probe with software devices, on Linux and under Wine",
        when: When::Always,
        systems: LINUX_TOOLS,
        needs: &[GPUS, WINDOWS_BUILDS, WINE],
        run: windows_suites::gpu,
    },
    Step {
        name: "image",
        about: "container images, with a registry, containerd and skopeo",
        when: When::Always,
        systems: LINUX_TOOLS,
        needs: &[IMAGE_TOOLS, WINDOWS_BUILDS, STATIC_BUILDS],
        run: images,
    },
    Step {
        name: "release",
        about: "the commands of the workflows, with a local registry, and the files of a release",
        when: When::Always,
        systems: LINUX_TOOLS,
        needs: &[GO, IMAGE_TOOLS, WINDOWS_BUILDS, STATIC_BUILDS],
        run: release_files,
    },
    Step {
        name: "linux-node",
        about: "a Linux node with kubelet, containerd and runc, and a device as /dev/dxg",
        when: When::Always,
        systems: LINUX_TOOLS,
        needs: &[GO, CONTAINER_RUNTIME, STATIC_BUILDS],
        run: kubernetes_suites::linux_node,
    },
    Step {
        name: "deny",
        about: "licenses, sources and advisories of dependencies",
        when: When::Nightly,
        systems: Systems::All,
        needs: &[CARGO_DENY],
        run: nightly::deny,
    },
    Step {
        name: "fuzz",
        about: "parsers of untrusted input, with libFuzzer",
        when: When::Nightly,
        systems: Systems::Unix("libFuzzer needs a Unix C++ compiler"),
        needs: &[CARGO_FUZZ, CPP],
        run: nightly::fuzz,
    },
    Step {
        name: "kubelet-windows",
        about: "the kubelet's device manager, built for Windows, under Wine",
        when: When::Nightly,
        systems: LINUX_TOOLS,
        needs: &[GO, WINDOWS_BUILDS, WINE],
        run: windows_suites::device_manager,
    },
];

/// Sets up what `steps` need, prints the causes of failures, and returns the needs that failed.
pub(crate) fn set_up(steps: &[&'static Step]) -> Vec<&'static Need> {
    let here = steps.iter().filter(|step| step.systems.missing(OS).is_none());
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
    // The filters have an entry point of their own, which no other program may link.
    for target in [WINDOWS_TARGET, WINDOWS_32_TARGET] {
        let mut clippy = cargo();
        clippy.args(["clippy", "--quiet", "--package", "visibility_filter"]);
        run(clippy.args(["--features", "dll", "--target", target]).args(DENY_WARNINGS))?;
    }
    Ok(())
}

fn dxg() -> Result<()> {
    image::compile(STATIC_TARGET, image::LINUX.packages, "dev", None)?;
    run(&mut ignored_tests(&["--test", "dxg"]))
}

fn images() -> Result<()> {
    run(&mut ignored_tests(&["--test", "images"]))
}

fn release_files() -> Result<()> {
    // The cluster needs the programs.
    workspace::build()?;
    run(&mut ignored_tests(&["--test", "release", "--test", "workflows"]))
}
