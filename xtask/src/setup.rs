//! `cargo xtask setup`: installs everything that the tests need.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::prerequisites;
use crate::windows_suites;

pub(crate) fn command(arguments: &[OsString]) -> Result<ExitCode> {
    if let Some(argument) = arguments.first() {
        bail!("unexpected argument `{}`", argument.display());
    }
    prerequisites::for_lints()?;
    prerequisites::for_windows_builds()?;
    if !cfg!(windows) {
        prerequisites::for_32_bit_builds()?;
    }
    prerequisites::for_fuzz_builds()?;
    if cfg!(target_os = "linux") {
        windows_suites::set_up_wine()?;
    }
    println!("ready");
    Ok(ExitCode::SUCCESS)
}
