//! Builds the libraries that `directx-visible` puts into programs.
//!
//! They have no runtime: cargo makes each from the crate's library, with the crate's own
//! entry point and a profile that does not unwind.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

use crate::machine::Machine;
use crate::process::run;
use crate::workspace::{self, cargo};
use crate::{build_flags, imports, prerequisites, version_info, version_resource};

/// A filter: for the processes of one architecture, at one or both levels.
pub(crate) struct Filter {
    /// The name under which it is shipped.
    pub(crate) file: &'static str,
    /// The target that it is built for.
    target: &'static str,
    /// The symbol of its entry point.
    entry: &'static str,
    /// The feature of the crate.
    feature: &'static str,
    /// The most bytes that it may have: every process of a container maps it.
    largest: usize,
}

/// Every filter: the usual one, and that of `directx-visible --com`. Images, releases and
/// tests contain these.
pub(crate) static FILTERS: [Filter; 3] = [
    Filter {
        file: "directx-visible-filter.dll",
        target: workspace::WINDOWS_TARGET,
        entry: "DllMain",
        feature: "dll",
        largest: 20 * 1024,
    },
    Filter {
        file: "directx-visible-filter32.dll",
        target: workspace::WINDOWS_32_TARGET,
        entry: "_DllMain@12",
        feature: "dll",
        largest: 20 * 1024,
    },
    Filter {
        file: "directx-visible-com.dll",
        target: workspace::WINDOWS_TARGET,
        entry: "DllMain",
        feature: "com",
        largest: 32 * 1024,
    },
];

/// The profile in `Cargo.toml`.
const PROFILE: &str = "filter";

/// Functions that the compiler calls, and that rustc imports from `ntdll` under names without
/// the `_` of 32-bit code.
const MEMORY_FUNCTIONS: [&str; 4] = ["memcpy", "memmove", "memset", "memcmp"];

/// What the version resource calls a filter.
const DESCRIPTION: &str = "Hides the devices of other containers from a program";

impl Filter {
    /// The processor of the target.
    pub(crate) fn machine(&self) -> Machine {
        if self.target.starts_with("i686-") { Machine::X86 } else { Machine::X86_64 }
    }

    /// Builds it and returns its path, which has the shipped name.
    fn build(&self) -> Result<PathBuf> {
        let folder = workspace::target_dir().join(self.target).join(PROFILE);
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        let version = env!("CARGO_PKG_VERSION");
        let resource =
            version_resource::compile(&folder, self.file, DESCRIPTION, version, self.machine())?;
        let library = folder.join("visibility_filter.dll");
        match self.machine() {
            Machine::X86_64 => self.compile(&resource)?,
            Machine::X86 => self.compile_and_link(&folder, &resource, &library)?,
        }
        let content =
            fs::read(&library).with_context(|| format!("cannot read {}", library.display()))?;
        self.check(&content)?;
        let shipped = folder.join(self.file);
        fs::write(&shipped, content)
            .with_context(|| format!("cannot write {}", shipped.display()))?;
        Ok(shipped)
    }

    /// A cargo that compiles the crate.
    fn cargo(&self, kind: &str) -> Command {
        let mut build = cargo();
        build.args(["rustc", "--quiet", "--locked", "--package", "visibility_filter", "--lib"]);
        build.args(["--features", self.feature, "--crate-type", kind, "--profile", PROFILE]);
        let flags = build_flags::windows().join("\u{1f}");
        build.env_remove("RUSTFLAGS").env("CARGO_ENCODED_RUSTFLAGS", flags);
        build.args(["--target", self.target]);
        build
    }

    /// Has rustc make the library, without the start-up code of the C runtime.
    fn compile(&self, resource: &Path) -> Result<()> {
        let mut build = self.cargo("cdylib");
        build.args(["--", "-Clink-arg=-nostartfiles"]);
        build.arg(format!("-Clink-arg=-Wl,--entry={}", self.entry));
        run(build.arg(format!("-Clink-arg={}", resource.display())))
    }

    /// Links the library with the compiler's linker. For 32-bit code, rustc would link libgcc's
    /// unwinder too, and with it the C runtime.
    fn compile_and_link(&self, folder: &Path, resource: &Path, library: &Path) -> Result<()> {
        run(&mut self.cargo("staticlib"))?;
        let exports = folder.join("visibility_filter.def");
        let text = format!("LIBRARY \"{}\"\nEXPORTS\nDllMain = DllMain@12 @1\n", self.file);
        fs::write(&exports, text).with_context(|| format!("cannot write {}", exports.display()))?;
        let mut link = Command::new("i686-w64-mingw32-gcc");
        link.args(["-shared", "-nostdlib", "-o"]).arg(library).args([&exports, resource]);
        link.arg(format!("-Wl,--entry={},--undefined={}", self.entry, self.entry));
        link.args(MEMORY_FUNCTIONS.map(|name| format!("-Wl,--defsym=_{name}={name}")));
        link.args(["-Wl,--dynamicbase,--nxcompat,--disable-auto-image-base"]);
        link.args(["-Wl,--gc-sections,--strip-all,--no-insert-timestamp"]);
        run(link.arg(folder.join("libvisibility_filter.a")))
    }

    /// It is small, no other library is loaded because of it, and it says what it is.
    fn check(&self, library: &[u8]) -> Result<()> {
        let (file, largest) = (self.file, self.largest);
        if library.len() > largest {
            bail!("{file} has {} bytes, more than {largest}", library.len());
        }
        let imported = imports::imported(library)?;
        if imported != ["ntdll.dll"] {
            bail!("{file} imports {}, and may import only ntdll.dll", imported.join(", "));
        }
        version_info::check_file(library, file, DESCRIPTION)
    }
}

/// `cargo xtask visibility-filter`.
pub(crate) fn command(arguments: &[OsString]) -> Result<ExitCode> {
    if !arguments.is_empty() {
        bail!("unexpected arguments\nhint: `visibility-filter` accepts none");
    }
    for library in build()? {
        println!("{}", workspace::shown(&library));
    }
    Ok(ExitCode::SUCCESS)
}

/// Builds every filter and returns their paths, in the order of [`FILTERS`].
pub(crate) fn build() -> Result<Vec<PathBuf>> {
    prerequisites::for_windows_builds()?;
    prerequisites::for_32_bit_builds()?;
    FILTERS.iter().map(Filter::build).collect()
}

/// Builds every filter into `folder`.
pub(crate) fn build_into(folder: &Path) -> Result<()> {
    for library in build()? {
        let target = folder.join(library.file_name().unwrap_or_default());
        fs::copy(&library, &target)
            .with_context(|| format!("cannot write {}", target.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_library_and_other_content_are_refused() {
        let error = FILTERS[0].check(&vec![0; 20_481]).unwrap_err().to_string();
        assert_eq!(error, "directx-visible-filter.dll has 20481 bytes, more than 20480");
        assert!(FILTERS[0].check(b"no library").is_err());
    }

    #[test]
    fn the_target_determines_the_machine() {
        let filter = |target| Filter { file: "", target, entry: "", feature: "dll", largest: 0 };
        let machine = |target| filter(target).machine();
        assert_eq!(machine(workspace::WINDOWS_TARGET), Machine::X86_64);
        assert_eq!(machine(workspace::WINDOWS_32_TARGET), Machine::X86);
    }
}
