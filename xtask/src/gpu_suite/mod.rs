//! `gpu-probe` with real libraries: Mesa's software Vulkan and OpenGL, and pocl, the tools that made
//! its kernels, and the headers of encoders; then the Windows program with the same GPUs, and
//! `directx-visible --com` with DXVK.

mod under_wine;
mod visible_com;

use anyhow::Result;

use crate::prerequisites;
use crate::process::run;
use crate::wine::Wine;
use crate::workspace::cargo;

/// Runs the tests that need the libraries; the others belong to the step `unit`.
pub(crate) fn check() -> Result<()> {
    prerequisites::for_gpu_tests()?;
    run(cargo().args(["test", "--quiet", "--package", "gpu_probe", "--", "--ignored"]))?;
    under_wine::check()?;
    let wine = Wine::with_graphics("two-gpus")?;
    let _lock = wine.lock()?;
    let _server = wine.start_server()?;
    visible_com::check(&wine)
}
