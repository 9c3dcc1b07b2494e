//! Links a Windows version resource into the programs of a package.
//!
//! A build script passes its programs or its library. Windows Explorer shows the resource
//! on the Details tab of the file, and PowerShell as `(Get-Item FILE).VersionInfo`. The
//! versions are those of the package. For other targets than Windows nothing happens.

use std::{env, io};

use winresource::{VersionInfo, WindowsResource};

/// The language of the texts: US English (`LANG_ENGLISH`, `SUBLANG_ENGLISH_US`; winnt.h).
const LANGUAGE: u16 = 0x0409;

/// The file type of a library (`VFT_DLL`, verrsrc.h); `winresource` sets that of a program.
const DLL: u64 = 2;

/// Links a resource into each of `programs`: the name of a binary target of the package, and what
/// Windows shows as the name of the program, for example in Task Manager.
///
/// # Errors
/// The resource compiler is missing or fails.
pub fn link_to_programs(programs: &[(&str, &str)]) -> io::Result<()> {
    programs.iter().try_for_each(|(name, description)| {
        link(&format!("{name}.exe"), description, |resource| resource.compile_for(name))
    })
}

/// Links a resource into the `cdylib` of the package. `file` is the name that the library
/// is shipped as.
///
/// # Errors
/// The resource compiler is missing or fails.
pub fn link_to_library(file: &str, description: &str) -> io::Result<()> {
    link(file, description, |resource| {
        resource.set_version_info(VersionInfo::FILETYPE, DLL).compile()
    })
}

fn link(
    file: &str,
    description: &str,
    compile: impl FnOnce(&mut WindowsResource) -> io::Result<()>,
) -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    // A build script is compiled for the build machine, so `cfg!(windows)` is not the target.
    if env::var_os("CARGO_CFG_WINDOWS").is_none() {
        return Ok(());
    }
    let mut resource = WindowsResource::new();
    resource
        .set_language(LANGUAGE)
        .set("ProductName", "DirectX device plugin for Kubernetes")
        .set("LegalCopyright", "MIT license")
        .set("FileDescription", description)
        .set("InternalName", file.rsplit_once('.').map_or(file, |(name, _)| name))
        .set("OriginalFilename", file);
    compile(&mut resource).map_err(|error| {
        io::Error::other(format!(
            "cannot compile the version resource of {file}: {error}; install `windres` of MinGW \
             (Debian package binutils-mingw-w64-x86-64), or `rc.exe` of the Windows SDK"
        ))
    })
}
