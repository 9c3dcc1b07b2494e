//! Builds the libraries that `directx-visible` puts into programs.
//!
//! rustc would link a runtime, so the linker gets only the crate and a version resource.
//! `testing/release_suite` checks sizes and imports.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::prerequisites;
use crate::process::run;
use crate::workspace::{VERSION, WINDOWS_32_TARGET, WINDOWS_TARGET, cargo_for, target_dir};

/// A filter, for the processes of one architecture.
pub(crate) struct Filter {
    /// The name under which it is shipped.
    pub(crate) file: &'static str,
    target: &'static str,
}

/// Every filter.
pub(crate) const FILTERS: [Filter; 2] = [
    Filter { file: "directx-visible-filter.dll", target: WINDOWS_TARGET },
    Filter { file: "directx-visible-filter32.dll", target: WINDOWS_32_TARGET },
];

/// Builds a filter and returns its path, which has the shipped name.
fn build_one(Filter { file, target }: &Filter) -> Result<PathBuf> {
    let (gcc, format, entry, export) = match *target {
        WINDOWS_TARGET => ("x86_64-w64-mingw32-gcc", "pe-x86-64", "DllMain", "DllMain"),
        _ => ("i686-w64-mingw32-gcc", "pe-i386", "_DllMain@12", "DllMain = DllMain@12"),
    };
    let mut compile = cargo_for(target);
    compile.args(["rustc", "--quiet", "--locked", "--package", "visibility_filter", "--lib"]);
    compile.args(["--crate-type", "staticlib", "--features", "dll"]);
    run(compile.args(["--profile", "filter", "--target", target]))?;
    let folder = target_dir().join(target).join("filter");
    let names = ["exports.def", "version.rc", "version.o", "libvisibility_filter.a", file];
    let [exports, script, resource, code, library] = names.map(|name| folder.join(name));
    fs::write(&exports, format!("LIBRARY \"{file}\"\nEXPORTS\n{export} @1\n"))?;
    let numbers = VERSION.split('-').next().unwrap_or_default().replace('.', ",");
    let text = include_str!("../../crates/containers/visibility_filter/version.rc")
        .replace("{name}", file.trim_end_matches(".dll"))
        .replace("{version}", VERSION)
        .replace("{numbers}", &numbers);
    fs::write(&script, text)?;
    let windres = &mut Command::new("x86_64-w64-mingw32-windres");
    run(windres.args(["--target", format]).args([&script, &resource]))?;
    let mut link = Command::new(gcc);
    link.args(["-shared", "-nostdlib", "-Wl,--dynamicbase,--nxcompat,--disable-auto-image-base"]);
    link.arg("-Wl,--gc-sections,--strip-all,--no-insert-timestamp");
    // rustc imports them from ntdll, also for 32-bit code, under names without `_`.
    if *target == WINDOWS_32_TARGET {
        let functions = ["memcpy", "memmove", "memset", "memcmp"];
        link.args(functions.map(|name| format!("-Wl,--defsym=_{name}={name}")));
    }
    link.arg(format!("-Wl,--entry={entry},--undefined={entry}")).arg("-o").arg(&library);
    run(link.args([exports, resource, code]))?;
    Ok(library)
}

/// Builds every filter, and returns the paths in the order of [`FILTERS`].
pub(crate) fn build() -> Result<Vec<PathBuf>> {
    prerequisites::for_windows_builds()?;
    FILTERS.iter().map(build_one).collect()
}
