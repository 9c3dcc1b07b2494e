//! `gpu-probe` with real libraries: Mesa's software Vulkan and OpenGL, and pocl, the tools that made
//! its kernels, and the headers of encoders; then the Windows program with two such GPUs, with and
//! without the visibility filter, and `directx-visible --com` with DXVK.

mod report;
mod under_wine;
mod visible;
mod visible_com;

use anyhow::Result;

use crate::prerequisites;
use crate::process::run;
use crate::wine::Wine;
use crate::workspace::{self, cargo};

/// Runs the tests that need the libraries; the others belong to the step `unit`.
pub(crate) fn check() -> Result<()> {
    prerequisites::for_gpu_tests()?;
    run(cargo().args(["test", "--quiet", "--package", "gpu_probe", "--", "--ignored"]))?;
    prerequisites::for_windows_builds()?;
    let build = ["build", "--quiet", "--package", "gpu_probe", "--package", "directx_visible"];
    run(cargo().args(build).args(["--target", workspace::WINDOWS_TARGET]))?;
    let wine = Wine::with_graphics("two-gpus")?;
    let _lock = wine.lock()?;
    let _server = wine.start_server()?;
    under_wine::check(&wine)?;
    visible::check(&wine)?;
    visible_com::check(&wine)
}
