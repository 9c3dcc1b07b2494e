//! Builds the library that `directx-visible` puts into programs.
//!
//! It has no runtime: cargo makes it from the crate's library, with the crate's own entry
//! point and a profile that does not unwind.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use crate::process::run;
use crate::workspace::{self, cargo};
use crate::{imports, prerequisites};

/// The name under which the library is shipped.
pub(crate) const FILE: &str = "directx-visible-filter.dll";

/// The profile in `Cargo.toml`.
const PROFILE: &str = "filter";

/// The most bytes that it may have: every process of a container maps it.
const LARGEST: usize = 20 * 1024;

/// `cargo xtask visibility-filter`.
pub(crate) fn command(arguments: &[OsString]) -> Result<ExitCode> {
    if !arguments.is_empty() {
        bail!("unexpected arguments\nhint: `visibility-filter` accepts none");
    }
    println!("{}", workspace::shown(&build()?));
    Ok(ExitCode::SUCCESS)
}

/// Builds it for Windows and returns its path.
pub(crate) fn build() -> Result<PathBuf> {
    prerequisites::for_windows_builds()?;
    let mut build = cargo();
    build.args(["rustc", "--quiet", "--locked", "--package", "visibility_filter", "--lib"]);
    build.args(["--features", "dll", "--crate-type", "cdylib", "--profile", PROFILE]);
    build.args(["--target", workspace::WINDOWS_TARGET, "--"]);
    // Without the start-up code of the C runtime, and without the time of the build.
    build.args(["-Clink-arg=-nostartfiles", "-Clink-arg=-Wl,--entry=DllMain"]);
    build.arg("-Clink-arg=-Wl,--no-insert-timestamp");
    run(&mut build)?;
    let library = built();
    let content =
        fs::read(&library).with_context(|| format!("cannot read {}", library.display()))?;
    check(&content)?;
    let shipped = library.with_file_name(FILE);
    fs::write(&shipped, content).with_context(|| format!("cannot write {}", shipped.display()))?;
    Ok(shipped)
}

/// It is small, and no other library is loaded because of it.
fn check(library: &[u8]) -> Result<()> {
    if library.len() > LARGEST {
        bail!("{FILE} has {} bytes, more than {LARGEST}", library.len());
    }
    let imported = imports::imported(library)?;
    if imported != ["ntdll.dll"] {
        bail!("{FILE} imports {}, and may import only ntdll.dll", imported.join(", "));
    }
    Ok(())
}

/// Where cargo writes it.
fn built() -> PathBuf {
    let folder = workspace::target_dir().join(workspace::WINDOWS_TARGET).join(PROFILE);
    folder.join("visibility_filter.dll")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_library_and_other_content_are_refused() {
        let error = check(&vec![0; LARGEST + 1]).unwrap_err().to_string();
        assert_eq!(error, "directx-visible-filter.dll has 20481 bytes, more than 20480");
        assert!(check(b"no library").is_err());
    }
}
