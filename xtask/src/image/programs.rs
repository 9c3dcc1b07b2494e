//! The Windows programs that images contain.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::prerequisites;
use crate::process::run;
use crate::workspace::{self, cargo};

/// A file that the images contain.
struct Shipped {
    /// Its name in the image.
    name: &'static str,
    /// The files that may become it; the first one that exists does.
    built: &'static [&'static str],
}

/// One program that acts as each of the others, depending on its name.
const ALL: &str = "directx-programs.exe";

/// Every file, also under the names that earlier device plugins used.
const SHIPPED: [Shipped; 11] = [
    Shipped { name: "directx-device-plugin.exe", built: &[ALL, "directx-device-plugin.exe"] },
    Shipped { name: "device-plugin-wddm.exe", built: &[ALL, "device-plugin-wddm.exe"] },
    Shipped { name: "device-plugin-mcdm.exe", built: &[ALL, "device-plugin-mcdm.exe"] },
    Shipped {
        name: "directx-feature-discovery.exe",
        built: &[ALL, "directx-feature-discovery.exe"],
    },
    Shipped { name: "gen-device-mounts.exe", built: &[ALL, "gen-device-mounts.exe"] },
    // A file of its own: it is copied into the images of users, and is a seventh of the size.
    Shipped { name: "gpu-probe.exe", built: &["gpu-probe.exe"] },
    Shipped { name: "query-hcs-capabilities.exe", built: &[ALL, "query-hcs-capabilities.exe"] },
    Shipped { name: "test-device-discovery.exe", built: &[ALL, "test-device-discovery.exe"] },
    // The real clients if somebody has built them; otherwise the program in Rust, which
    // prints the same.
    Shipped {
        name: "test-device-discovery-cpp.exe",
        built: &["test-device-discovery-cpp.exe", ALL, "test-device-discovery.exe"],
    },
    Shipped {
        name: "test-device-discovery-go.exe",
        built: &["test-device-discovery-go.exe", ALL, "test-device-discovery.exe"],
    },
    Shipped {
        name: "directx-device-discovery.dll",
        built: &["directx-device-discovery.dll", "directx_device_discovery.dll"],
    },
];

/// The packages that contain the programs.
pub(super) const PACKAGES: [&str; 3] = ["multicall", "discovery_dll", "gpu_probe"];

/// The names of all files in the plugin's image.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    SHIPPED.iter().map(|file| file.name)
}

/// Builds the programs and returns their folder.
pub(super) fn build() -> Result<PathBuf> {
    prerequisites::for_windows_builds()?;
    let packages = PACKAGES.iter().flat_map(|package| ["--package", package]);
    let mut build = cargo();
    build.args(["build", "--quiet", "--release", "--locked"]).args(packages);
    build.args(["--target", workspace::WINDOWS_TARGET]);
    build.env_remove("RUSTFLAGS").env("CARGO_ENCODED_RUSTFLAGS", compiler_flags().join("\u{1f}"));
    run(&mut build)?;
    Ok(workspace::target_dir().join(workspace::WINDOWS_TARGET).join("release"))
}

/// Flags that keep the time of the build and the paths of this machine out of the
/// programs, so that every machine builds the same bytes.
fn compiler_flags() -> Vec<String> {
    // Without it, GNU ld writes the time into the header of each program.
    [path_flags(), vec!["-Clink-arg=-Wl,--no-insert-timestamp".to_owned()]].concat()
}

/// Flags that keep the paths of this machine out of programs.
pub(crate) fn path_flags() -> Vec<String> {
    let cargo_home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo_home = cargo_home.or_else(|| Some(std::env::home_dir()?.join(".cargo")));
    // If several prefixes match a path, rustc uses the last one.
    let prefixes = [
        cargo_home.map(|path| (path, "/cargo")),
        Some((workspace::root(), "/workspace")),
        Some((workspace::target_dir(), "/target")),
    ];
    let flag =
        |(path, name): (PathBuf, &str)| format!("--remap-path-prefix={}={name}", path.display());
    prefixes.into_iter().flatten().map(flag).collect()
}

/// Reads the files `names` from `folder`, by their names in the image.
pub(super) fn read(folder: &Path, names: &[&str]) -> Result<BTreeMap<String, Vec<u8>>> {
    let files = SHIPPED.iter().filter(|file| names.contains(&file.name));
    files.map(|file| Ok((file.name.to_owned(), read_file(folder, file)?))).collect()
}

fn read_file(folder: &Path, file: &Shipped) -> Result<Vec<u8>> {
    let mut paths = file.built.iter().map(|name| folder.join(name));
    let existing = paths.clone().find(|path| path.exists());
    let path = existing.or_else(|| paths.next_back()).expect("a file has a source");
    let bytes = fs::read(&path).with_context(|| {
        format!(
            "cannot read {}\nhint: --programs names a folder with a release build",
            path.display()
        )
    })?;
    if !is_windows_program(&bytes) {
        bail!("{} is not a Windows program for x86-64", path.display());
    }
    Ok(bytes)
}

/// Whether `bytes` start as a PE file for the machine `IMAGE_FILE_MACHINE_AMD64` (winnt.h).
fn is_windows_program(bytes: &[u8]) -> bool {
    const START: [u8; 6] = [b'P', b'E', 0, 0, 0x64, 0x86];
    let offset = bytes.get(OFFSET..OFFSET + 4).and_then(|field| field.try_into().ok());
    let header = offset.and_then(|field| bytes.get(u32::from_le_bytes(field) as usize..));
    bytes.starts_with(b"MZ") && header.is_some_and(|header| header.starts_with(&START))
}

/// Where a program has the offset of its PE header.
const OFFSET: usize = 0x3c;

#[cfg(test)]
mod tests {
    use super::*;

    /// A file that starts as a Windows program for x86-64 does, and ends with `content`.
    fn minimal_program(content: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; OFFSET];
        bytes[..2].copy_from_slice(b"MZ");
        bytes.extend([0x40, 0, 0, 0, b'P', b'E', 0, 0, 0x64, 0x86]);
        bytes.extend(content);
        bytes
    }

    #[test]
    fn the_first_source_that_exists_is_used() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str| {
            fs::write(folder.path().join(name), minimal_program(name.as_bytes())).unwrap();
        };
        let ends_with = |name: &str, source: &str| {
            let found = read(folder.path(), &[name]).unwrap();
            assert!(found[name].ends_with(source.as_bytes()), "{name} is not {source}");
        };
        write("test-device-discovery.exe");
        write("directx_device_discovery.dll");
        ends_with("test-device-discovery-go.exe", "test-device-discovery.exe");
        ends_with("directx-device-discovery.dll", "directx_device_discovery.dll");
        write(ALL);
        ends_with("test-device-discovery.exe", ALL);
        ends_with("test-device-discovery-go.exe", ALL);
        write("test-device-discovery-go.exe");
        ends_with("test-device-discovery-go.exe", "test-device-discovery-go.exe");
    }

    #[test]
    fn missing_and_foreign_files_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let names = ["gen-device-mounts.exe"];
        let path = folder.path().join(names[0]);
        let error = read(folder.path(), &names).unwrap_err().to_string();
        let start = format!("cannot read {}\nhint: ", path.display());
        assert!(error.starts_with(&start), "{error}");
        // The machine is that of 32-bit programs.
        let mut other_machine = minimal_program(b"");
        other_machine[0x44..0x46].copy_from_slice(&[0x4c, 0x01]);
        let cut = minimal_program(b"")[..0x42].to_vec();
        for bytes in [b"#!/bin/sh\n".to_vec(), b"MZ".to_vec(), cut, other_machine] {
            fs::write(&path, bytes).unwrap();
            let error = read(folder.path(), &names).unwrap_err().to_string();
            let expected = format!("{} is not a Windows program for x86-64", path.display());
            assert_eq!(error, expected);
        }
    }
}
