//! `gpu-probe` with real libraries: Mesa's software Vulkan and OpenGL, and pocl, the tools that made
//! its kernels, and the headers of encoders; then the Windows program with the same GPUs.

mod under_wine;

use anyhow::Result;

use crate::prerequisites;
use crate::process::run;
use crate::workspace::cargo;

/// Runs the tests that need the libraries; the others belong to the step `unit`.
pub(crate) fn check() -> Result<()> {
    prerequisites::for_gpu_tests()?;
    run(cargo().args(["test", "--quiet", "--package", "gpu_probe", "--", "--ignored"]))?;
    under_wine::check()
}
