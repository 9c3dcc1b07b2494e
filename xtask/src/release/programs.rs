//! The content of the archives with programs.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::{copy, notices, stdout};
use crate::image::{self, PLUGIN, Shipped, Source, VISIBLE};
use crate::process::run;
use crate::workspace::{self, STATIC_TARGET};

/// The packages of the archive for Linux. Those for Windows contain the packages of the images.
const LINUX_PACKAGES: [&str; 4] = ["plugin", "feature_discovery", "tools", "directx_visible"];

/// The packages of each archive, and their targets.
pub(super) const SHIPPED: [(&[&str], &str); 3] = [
    (PLUGIN.packages, workspace::WINDOWS_TARGET),
    (VISIBLE.packages, workspace::WINDOWS_TARGET),
    (&LINUX_PACKAGES, STATIC_TARGET),
];

/// What MinGW links into the Windows programs, and the files with the licenses.
const RUNTIMES: [(&str, &str); 2] = [
    ("MinGW-w64 runtime", "/usr/share/doc/mingw-w64-common/copyright"),
    ("GCC runtime libraries", "/usr/share/doc/gcc-mingw-w64-base/copyright"),
];

/// What Rust links into static programs, and its license.
const MUSL: [(&str, &str); 1] =
    [("musl", concat!(env!("CARGO_MANIFEST_DIR"), "/src/release/musl-license.txt"))];

/// The shells, and the ends of the names by which each finds its completion scripts.
const SHELLS: [(&str, &str, &str); 4] =
    [("bash", "", ".bash"), ("fish", "", ".fish"), ("powershell", "_", ".ps1"), ("zsh", "_", "")];

/// Writes what the archives contain in addition to the programs.
pub(super) fn documents(windows: &Path, visible: &Path, linux: &Path) -> Result<()> {
    let archives = [(windows, &RUNTIMES[..]), (visible, &RUNTIMES), (linux, &MUSL)];
    for ((packages, target), (to, runtimes)) in SHIPPED.into_iter().zip(archives) {
        // The inventories have the paths in the documentation's commands.
        let plugin: &[&str] = &["README.md", "CHANGELOG.md", "fixtures/inventories"];
        let names = if packages == VISIBLE.packages { &[] } else { plugin };
        for name in names.iter().chain(&["LICENSE"]) {
            copy(&workspace::root().join(name), &to.join(name))?;
        }
        let texts = notices::text(packages, target, runtimes)?;
        fs::write(to.join("THIRD-PARTY-NOTICES.txt"), texts)?;
        let texts = notices::rust_standard_library()?;
        fs::write(to.join("THIRD-PARTY-NOTICES-RUST.html"), texts)?;
    }
    Ok(())
}

/// Adds Windows programs from the folder `built`, and says whether all of them are signed.
pub(super) fn add(shipped: &Shipped, built: &Path, to: &Path) -> Result<bool> {
    let mut is_all_signed = true;
    for name in shipped.files {
        let program = built.join(image::built_name(name));
        is_all_signed &= is_signed(&fs::read(&program)?);
        copy(&program, &to.join(name))?;
    }
    Ok(is_all_signed)
}

/// Whether a program has a certificate table (the size of it in `IMAGE_OPTIONAL_HEADER`, winnt.h).
fn is_signed(program: &[u8]) -> bool {
    let header = number(program, 0x3c) + 24;
    // `IMAGE_NT_OPTIONAL_HDR64_MAGIC`: wider addresses are in front of the tables.
    let tables = if number(program, header) & 0xffff == 0x20b { 112 } else { 96 };
    number(program, header + tables + 4 * 8 + 4) > 0
}

/// The number at an offset, or 0 behind the end.
fn number(program: &[u8], at: usize) -> usize {
    let bytes = program.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
    u32::from_le_bytes(bytes.unwrap_or_default()) as usize
}

/// Adds what the archive for Windows has for developers, and builds the programs for Linux.
pub(super) fn stage(windows: &Path, linux: &Path, profile: &str, source: &Source) -> Result<()> {
    import_libraries(windows)?;

    let built = image::compile(STATIC_TARGET, &LINUX_PACKAGES, profile, Some(source))?;
    // Its `command` reads the configurations of images.
    copy(&built.join(VISIBLE.name), &linux.join("bin").join(VISIBLE.name))?;
    for name in PLUGIN.files.iter().filter_map(|name| name.strip_suffix(".exe")) {
        // Containers of Windows use `gpu-probe`. The names of clients are for what was written for
        // earlier device plugins on Windows.
        if name == "gpu-probe" || name.ends_with("-cpp") || name.ends_with("-go") {
            continue;
        }
        let argument = if name == PLUGIN.name { "completions" } else { "--completions" };
        let program = linux.join("bin").join(name);
        copy(&built.join(name), &program)?;
        for (shell, start, end) in SHELLS {
            let script = stdout(Command::new(&program).args([argument, shell]))?;
            let folder = linux.join("completions").join(shell);
            fs::create_dir_all(&folder)?;
            fs::write(folder.join(format!("{start}{name}{end}")), script)?;
        }
    }
    // The other shells do not run on Windows.
    for shell in ["completions/bash", "completions/powershell"] {
        copy(&linux.join(shell), &windows.join(shell))?;
    }
    Ok(())
}

/// Adds the headers of the discovery library and its import libraries.
fn import_libraries(windows: &Path) -> Result<()> {
    copy(&workspace::root().join("include"), &windows.join("include"))?;
    let lib = windows.join("lib");
    fs::create_dir(&lib)?;
    // GNU's linkers and Microsoft's look for different names. Both read this format. By default,
    // the names of the members contain the ID of the process.
    let [gnu, microsoft] = ["libdirectx-device-discovery.dll.a", "directx-device-discovery.lib"];
    let mut dlltool = Command::new("x86_64-w64-mingw32-dlltool");
    dlltool.current_dir(&lib).args(["--deterministic-libraries", "--temp-prefix", "imports"]);
    run(dlltool.args(["-d", "../include/DeviceDiscovery.def", "-l", gnu]))?;
    copy(&lib.join(gnu), &lib.join(microsoft))
}
