//! Links a Windows version resource into the programs or the library of a package. Build scripts
//! include this file.
//!
//! Windows Explorer shows the resource on the Details tab of the file, and PowerShell as
//! `(Get-Item FILE).VersionInfo`. The versions are those of the package; `DIRECTX_VERSION` replaces
//! that of the product, as in `devices`. For other targets than Windows nothing happens.

use std::{env, io};

use winresource::{VersionInfo, WindowsResource};

/// The language of the texts: US English (`LANG_ENGLISH`, `SUBLANG_ENGLISH_US`; winnt.h).
const LANGUAGE: u16 = 0x0409;

/// The file type of a library (`VFT_DLL`, verrsrc.h); `winresource` sets the type of a program.
const DLL: u64 = 2;

/// Links a resource into `file`, which is shipped with this name: a program of the package that
/// ends with `.exe`, or its library. `description` is what Windows shows as the name of the
/// program, for example in Task Manager.
pub(crate) fn link(file: &str, description: &str) -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=DIRECTX_VERSION");
    // A build script is compiled for the build machine, so `cfg!(windows)` is not the target.
    if env::var_os("CARGO_CFG_WINDOWS").is_none() {
        return Ok(());
    }
    let mut resource = WindowsResource::new();
    if let Ok(version) = env::var("DIRECTX_VERSION") {
        resource.set("ProductVersion", &version);
    }
    resource
        .set_language(LANGUAGE)
        .set("ProductName", "DirectX device plugin for Kubernetes")
        .set("LegalCopyright", "MIT license")
        .set("FileDescription", description)
        .set("InternalName", file.rsplit_once('.').map_or(file, |(name, _)| name))
        .set("OriginalFilename", file);
    let compiled = match file.strip_suffix(".exe") {
        Some(program) => resource.compile_for(program),
        None => resource.set_version_info(VersionInfo::FILETYPE, DLL).compile(),
    };
    compiled.map_err(|error| {
        io::Error::other(format!(
            "cannot compile the version resource of {file}: {error}; install `windres` of MinGW \
             (Debian package binutils-mingw-w64-x86-64), or `rc.exe` of the Windows SDK"
        ))
    })
}
