//! Links a Windows version resource into the programs of a package.
//!
//! A build script passes its programs or its library. Windows Explorer shows the resource
//! on the Details tab of the file, and PowerShell as `(Get-Item FILE).VersionInfo`. The
//! versions are those of the package. For other targets than Windows nothing happens.

use std::{env, fmt, io};

use winresource::{VersionInfo, WindowsResource};

const PRODUCT: &str = "DirectX device plugin for Kubernetes";
const COPYRIGHT: &str = "MIT licence";

/// The language of the texts: US English (`LANG_ENGLISH`, `SUBLANG_ENGLISH_US`; winnt.h).
const LANGUAGE: u16 = 0x0409;

/// The file type of a library (`VFT_DLL`, verrsrc.h); `winresource` sets that of a program.
const DLL: u64 = 2;

/// A program of the package that is built.
pub struct Program {
    /// The name of its binary target; the file is called so, with `.exe`.
    pub name: &'static str,
    /// What Windows shows as the name of the program, for example in Task Manager.
    pub description: &'static str,
}

/// The resource of a file could not be compiled.
pub struct CompileError {
    file: String,
    source: io::Error,
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot compile the version resource of {}", self.file)
    }
}

/// What cargo prints if the `main` function of a build script returns the error.
impl fmt::Debug for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hint = "install the resource compiler: `windres` of MinGW (Debian package \
                    binutils-mingw-w64-x86-64), or `rc.exe` of the Windows SDK";
        write!(f, "{self}: {}\nhint: {hint}", self.source)
    }
}

impl std::error::Error for CompileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// Links a resource into each of `programs`, which must be binary targets of the package.
///
/// # Errors
/// The resource compiler is missing or fails.
pub fn link_to_programs(programs: &[Program]) -> Result<(), CompileError> {
    run_once();
    for Program { name, description } in programs {
        let file = format!("{name}.exe");
        compile(&file, name, description, |resource| resource.compile_for(name))?;
    }
    Ok(())
}

/// Links a resource into the `cdylib` of the package. `file` is the name that the library
/// is shipped as.
///
/// # Errors
/// The resource compiler is missing or fails.
pub fn link_to_library(file: &str, description: &str) -> Result<(), CompileError> {
    run_once();
    let name = file.strip_suffix(".dll").unwrap_or(file);
    compile(file, name, description, |resource| {
        resource.set_version_info(VersionInfo::FILETYPE, DLL).compile()
    })
}

/// Tells cargo not to run the build script again when only other files change.
fn run_once() {
    println!("cargo::rerun-if-changed=build.rs");
}

fn compile(
    file: &str,
    name: &str,
    description: &str,
    link: impl FnOnce(&mut WindowsResource) -> io::Result<()>,
) -> Result<(), CompileError> {
    // A build script is compiled for the build machine, so `cfg!(windows)` is not the target.
    if env::var_os("CARGO_CFG_WINDOWS").is_none() {
        return Ok(());
    }
    let mut resource = WindowsResource::new();
    resource
        .set_language(LANGUAGE)
        .set("ProductName", PRODUCT)
        .set("LegalCopyright", COPYRIGHT)
        .set("FileDescription", description)
        .set("InternalName", name)
        .set("OriginalFilename", file);
    link(&mut resource).map_err(|source| CompileError { file: file.to_owned(), source })
}
