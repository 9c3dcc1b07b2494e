//! The content of the archives with programs.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::{copy, notices, stdout};
use crate::image::{PLUGIN, PROGRAM_PACKAGES};
use crate::process::run;
use crate::visibility_filter::FILTERS;
use crate::{build_flags, workspace};

/// The file with the licenses of the packages in the programs.
pub(super) const NOTICES: &str = "THIRD-PARTY-NOTICES.txt";

const LINUX_TARGET: &str = "x86_64-unknown-linux-gnu";

/// The packages of the archive for Linux. The one for Windows contains those of the image.
const LINUX_PACKAGES: [&str; 2] = ["multicall", "gpu_probe"];

/// The names under which the program of the package `multicall` is shipped. The last two, for
/// Windows only, are those of clients of the discovery library of earlier device plugins.
const NAMES: [&str; 9] = [
    PLUGIN,
    "device-plugin-wddm",
    "device-plugin-mcdm",
    "directx-feature-discovery",
    "gen-device-mounts",
    "query-hcs-capabilities",
    "test-device-discovery",
    "test-device-discovery-cpp",
    "test-device-discovery-go",
];

/// What MinGW links into the Windows programs, and the files with the licenses.
const RUNTIMES: [(&str, &str); 2] = [
    ("MinGW-w64 runtime", "/usr/share/doc/mingw-w64-common/copyright"),
    ("GCC runtime libraries", "/usr/share/doc/gcc-mingw-w64-base/copyright"),
];

/// The shells, and the ends of the names by which each finds its completion scripts.
const SHELLS: [(&str, &str, &str); 4] =
    [("bash", "", ".bash"), ("fish", "", ".fish"), ("powershell", "_", ".ps1"), ("zsh", "_", "")];

/// Writes what both archives contain in addition to the programs.
pub(super) fn documents(windows: &Path, linux: &Path) -> Result<()> {
    for (to, packages, target, runtimes) in [
        (windows, &PROGRAM_PACKAGES[..], workspace::WINDOWS_TARGET, &RUNTIMES[..]),
        (linux, &LINUX_PACKAGES, LINUX_TARGET, &[]),
    ] {
        // The inventories have the paths in the documentation's commands.
        for name in ["LICENSE", "README.md", "CHANGELOG.md", "fixtures/inventories"] {
            copy(&workspace::root().join(name), &to.join(name))?;
        }
        fs::write(to.join(NOTICES), notices::text(packages, target, runtimes)?)?;
        let standard_library = notices::rust_standard_library()?;
        fs::write(to.join("THIRD-PARTY-NOTICES-RUST.html"), standard_library)?;
    }
    Ok(())
}

/// Adds the programs for Windows, which have been built for the image, and builds those for Linux.
pub(super) fn stage(windows: &Path, linux: &Path, profile: &str) -> Result<()> {
    let built = workspace::target_dir().join(workspace::WINDOWS_TARGET).join(profile);
    copies(&built.join("directx-programs.exe"), windows, &NAMES, ".exe")?;
    let filters = FILTERS.iter().map(|filter| filter.file);
    for name in filters.chain(["gpu-probe.exe", "directx-visible.exe"]) {
        copy(&built.join(name), &windows.join(name))?;
    }
    let library = built.join("directx_device_discovery.dll");
    copy(&library, &windows.join("directx-device-discovery.dll"))?;
    import_libraries(windows)?;

    let mut compile = workspace::cargo();
    compile.args(["build", "--quiet", "--locked", "--profile", profile, "--target", LINUX_TARGET]);
    compile.args(LINUX_PACKAGES.iter().flat_map(|package| ["--package", package]));
    let flags = build_flags::paths().join("\u{1f}");
    run(compile.env_remove("RUSTFLAGS").env("CARGO_ENCODED_RUSTFLAGS", flags))?;
    let built = workspace::target_dir().join(LINUX_TARGET).join(profile);
    let bin = linux.join("bin");
    copies(&built.join("directx-programs"), &bin, &NAMES[..7], "")?;
    copy(&built.join("gpu-probe"), &bin.join("gpu-probe"))?;
    completions(&bin, &linux.join("completions"))?;
    // The other shells do not run on Windows.
    for shell in ["completions/bash", "completions/powershell"] {
        copy(&linux.join(shell), &windows.join(shell))?;
    }
    Ok(())
}

/// Copies a program, and links it under other names.
fn copies(program: &Path, folder: &Path, names: &[&str], extension: &str) -> Result<()> {
    let mut names = names.iter().map(|name| folder.join(format!("{name}{extension}")));
    let first = names.next().unwrap_or_default();
    copy(program, &first)?;
    Ok(names.try_for_each(|name| fs::hard_link(&first, name))?)
}

/// Writes the completion scripts of the programs in `bin`.
fn completions(bin: &Path, to: &Path) -> Result<()> {
    for (shell, start, end) in SHELLS {
        fs::create_dir_all(to.join(shell))?;
        for name in &NAMES[..7] {
            let argument = if *name == PLUGIN { "completions" } else { "--completions" };
            let script = stdout(Command::new(bin.join(name)).args([argument, shell]))?;
            fs::write(to.join(shell).join(format!("{start}{name}{end}")), script)?;
        }
    }
    Ok(())
}

/// Adds the header of the discovery library and its import libraries.
fn import_libraries(windows: &Path) -> Result<()> {
    let (include, lib) = (windows.join("include"), windows.join("lib"));
    copy(&workspace::root().join("include"), &include)?;
    fs::create_dir(&lib)?;
    // GNU's linkers and Microsoft's look for different names. Both read this format.
    let [gnu, microsoft] = ["libdirectx-device-discovery.dll.a", "directx-device-discovery.lib"];
    let mut dlltool = Command::new("x86_64-w64-mingw32-dlltool");
    // By default, the names of the members contain the ID of the process.
    dlltool.current_dir(&lib).args(["--deterministic-libraries", "--temp-prefix", "imports"]);
    run(dlltool.arg("-d").arg(include.join("DeviceDiscovery.def")).args(["-l", gnu]))?;
    copy(&lib.join(gnu), &lib.join(microsoft))
}
