//! The programs of a release: one file for all Rust programs, as in the image, and the
//! clients of the discovery library in other languages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::archive::{File, Files};
use crate::build_flags;
use crate::machine::Machine;
use crate::process::{self, run};
use crate::visibility_filter::FILTERS;
use crate::{prerequisites, version_resource, workspace};

/// The target of the archive for Linux.
pub(super) const LINUX_TARGET: &str = "x86_64-unknown-linux-gnu";

/// The packages whose programs the archive for Linux contains. The one for Windows contains
/// those of the image.
pub(super) const LINUX_PACKAGES: [&str; 2] = ["multicall", "gpu_probe"];

/// The file of the package `multicall`.
const ALL: &str = "directx-programs";

/// The names under which [`ALL`] is shipped, and how each prints its completions.
pub(super) const NAMES: [(&str, &str); 7] = [
    ("directx-device-plugin", "completions"),
    ("device-plugin-wddm", "--completions"),
    ("device-plugin-mcdm", "--completions"),
    ("directx-feature-discovery", "--completions"),
    ("gen-device-mounts", "--completions"),
    ("query-hcs-capabilities", "--completions"),
    ("test-device-discovery", "--completions"),
];

/// The programs that are files of their own, for containers of users. They have no
/// completions.
const PROBE: &str = "gpu-probe";
const LAUNCHER: &str = "directx-visible";

/// The shells and the ends of the names of their completion scripts. Each script lies
/// under the name by which its shell finds it.
const SHELLS: [(&str, &str, &str); 4] =
    [("bash", "", ".bash"), ("fish", "", ".fish"), ("powershell", "_", ".ps1"), ("zsh", "_", "")];

/// The discovery library, as it is shipped.
const LIBRARY: &str = "directx-device-discovery.dll";

/// The Rust programs and the library for Windows. The image has been built, so its
/// programs exist.
pub(super) fn windows() -> Result<Files> {
    let folder = workspace::target_dir().join(workspace::WINDOWS_TARGET).join("release");
    let program = read(&folder.join(format!("{ALL}.exe")))?;
    let mut files: Files = NAMES
        .iter()
        .map(|(name, _)| (format!("{name}.exe"), File::program(program.clone())))
        .collect();
    let own_files = [format!("{PROBE}.exe"), format!("{LAUNCHER}.exe")].into_iter();
    for name in own_files.chain(FILTERS.iter().map(|filter| filter.file.to_owned())) {
        let bytes = read(&folder.join(&name))?;
        files.insert(name, File::program(bytes));
    }
    let library = read(&folder.join("directx_device_discovery.dll"))?;
    files.insert(LIBRARY.to_owned(), File::program(library));
    Ok(files)
}

/// The Rust programs for Linux, by their names below `bin`.
pub(super) fn linux() -> Result<Files> {
    let mut build = workspace::cargo();
    build.args(["build", "--quiet", "--release", "--locked", "--target", LINUX_TARGET]);
    build.args(LINUX_PACKAGES.iter().flat_map(|package| ["--package", package]));
    build
        .env_remove("RUSTFLAGS")
        .env("CARGO_ENCODED_RUSTFLAGS", build_flags::paths().join("\u{1f}"));
    run(&mut build)?;
    let folder = workspace::target_dir().join(LINUX_TARGET).join("release");
    let program = read(&folder.join(ALL))?;
    let mut files: Files = NAMES
        .iter()
        .map(|(name, _)| (format!("bin/{name}"), File::program(program.clone())))
        .collect();
    files.insert(format!("bin/{PROBE}"), File::program(read(&folder.join(PROBE))?));
    Ok(files)
}

/// The completion scripts of all programs. `programs` are those of [`linux`].
pub(super) fn completions(programs: &Files) -> Result<Files> {
    let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
    let mut files = Files::new();
    for (name, argument) in NAMES {
        let path = folder.path().join(name);
        let program = &programs.get(&format!("bin/{name}")).context("a program is missing")?;
        write_program(&path, &program.bytes)?;
        for (shell, start, end) in SHELLS {
            let mut command = Command::new(&path);
            command.args([argument, shell]);
            let script = process::stdout(&mut command)
                .with_context(|| format!("{} failed", process::line(&command)))?;
            let file = format!("completions/{shell}/{start}{name}{end}");
            files.insert(file, File::data(script));
        }
    }
    Ok(files)
}

/// Writes a file that can be run.
fn write_program(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}

/// The clients of the discovery library for Windows, its header and its import libraries.
pub(super) fn clients(version: &str) -> Result<Files> {
    prerequisites::for_windows_builds()?;
    prerequisites::require_go("a client of the discovery library", "1.21")?;
    let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
    let folder = folder.path();
    let include = workspace::root().join("include");
    let mut files = Files::new();
    for name in ["DeviceDiscovery.h", "DeviceDiscovery.def"] {
        files.insert(format!("include/{name}"), File::data(read(&include.join(name))?));
    }
    let imports = import_library(folder, &include)?;
    let bytes = read(&imports)?;
    // GNU's linkers and Microsoft's look for different names. Both read this format.
    for name in ["libdirectx-device-discovery.dll.a", "directx-device-discovery.lib"] {
        files.insert(format!("lib/{name}"), File::data(bytes.clone()));
    }
    let cpp = cpp_client(folder, &include, &imports, version)?;
    files.insert("test-device-discovery-cpp.exe".to_owned(), File::program(read(&cpp)?));
    let go = go_client(folder, version)?;
    files.insert("test-device-discovery-go.exe".to_owned(), File::program(read(&go)?));
    Ok(files)
}

fn import_library(folder: &Path, include: &Path) -> Result<PathBuf> {
    let name = "libdirectx-device-discovery.dll.a";
    let mut dlltool = Command::new("x86_64-w64-mingw32-dlltool");
    // By default, the names of the members contain the id of the process.
    dlltool.current_dir(folder).args(["--deterministic-libraries", "--temp-prefix", "imports"]);
    dlltool.arg("-d").arg(include.join("DeviceDiscovery.def")).args(["-l", name]);
    run(&mut dlltool)?;
    Ok(folder.join(name))
}

fn cpp_client(folder: &Path, include: &Path, imports: &Path, version: &str) -> Result<PathBuf> {
    let file = "test-device-discovery-cpp.exe";
    let description = "DirectX device discovery test (C++)";
    let resource = version_resource::compile(folder, file, description, version, Machine::X86_64)?;
    let program = folder.join(file);
    let source = "programs/discovery_dll/clients/cpp/test-device-discovery.cpp";
    let mut compiler = Command::new("x86_64-w64-mingw32-g++");
    compiler.current_dir(folder).args(["-std=c++17", "-O2", "-s", "-static"]);
    // Otherwise the program contains the time of the build.
    compiler.arg("-Wl,--no-insert-timestamp").arg("-I").arg(include);
    compiler.arg("-o").arg(&program).arg(workspace::root().join(source));
    run(compiler.arg(&resource).arg(imports))?;
    Ok(program)
}

fn go_client(folder: &Path, version: &str) -> Result<PathBuf> {
    let name = "test-device-discovery-go";
    let file = format!("{name}.exe");
    let description = "DirectX device discovery test (Go)";
    let resource = version_resource::compile(folder, &file, description, version, Machine::X86_64)?;
    let module = folder.join("go");
    copy_folder(&workspace::root().join("bindings/go"), &module)?;
    // Go links every `.syso` file next to the sources into the program.
    let syso = module.join("cmd").join(name).join("resource_windows_amd64.syso");
    fs::copy(&resource, &syso).with_context(|| format!("cannot write {}", syso.display()))?;
    let program = folder.join(file);
    let mut go = Command::new("go");
    go.current_dir(&module).args(["build", "-trimpath", "-buildvcs=false"]);
    go.args(["-ldflags=-s -w -buildid=", "-o"]).arg(&program).arg(format!("./cmd/{name}"));
    go.env("GOOS", "windows").env("GOARCH", "amd64").env("CGO_ENABLED", "0");
    go.env("GOFLAGS", "").env("GOWORK", "off");
    run(&mut go)?;
    Ok(program)
}

/// Copies the files of `from` and of its folders.
pub(super) fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("cannot create {}", to.display()))?;
    let entries = fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))?;
    for entry in entries {
        let entry = entry?;
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy_folder(&path, &target)?;
        } else {
            fs::copy(&path, &target).with_context(|| format!("cannot copy {}", path.display()))?;
        }
    }
    Ok(())
}

pub(super) fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_archives_contain_every_program_of_the_image() {
        let clients = ["test-device-discovery-cpp.exe", "test-device-discovery-go.exe", LIBRARY];
        for name in crate::image::program_names() {
            let mut programs = NAMES.iter().map(|(program, _)| *program).chain([PROBE, LAUNCHER]);
            let is_program = programs.any(|program| format!("{program}.exe") == name);
            let is_filter = FILTERS.iter().any(|filter| filter.file == name);
            assert!(is_program || is_filter || clients.contains(&name), "{name}");
        }
    }
}
