//! The Windows programs that images and releases contain.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::machine::Machine;
use crate::process::run;
use crate::visibility_filter::{self, FILTERS};
use crate::workspace::{self, cargo};
use crate::{build_flags, prerequisites};

/// A file that the images contain.
struct Shipped {
    /// Its name in the image.
    name: &'static str,
    /// The files that may become it; the first one that exists does.
    built: &'static [&'static str],
}

/// One program that acts as each of the others, depending on its name.
const ALL: &str = "directx-programs.exe";

/// Every file but the visibility filters, also under the names that earlier device plugins
/// used.
const SHIPPED: [Shipped; 12] = [
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
    // A file of its own: it is mounted into containers.
    Shipped { name: "directx-visible.exe", built: &["directx-visible.exe"] },
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
pub(crate) const PACKAGES: [&str; 4] =
    ["multicall", "discovery_dll", "gpu_probe", "directx_visible"];

/// The names of all files in the plugin's image.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let filters = FILTERS.iter().map(|filter| filter.file);
    SHIPPED.iter().map(|file| file.name).chain(filters)
}

/// Builds the programs and returns their folder.
pub(super) fn build() -> Result<PathBuf> {
    prerequisites::for_windows_builds()?;
    let packages = PACKAGES.iter().flat_map(|package| ["--package", package]);
    let mut build = cargo();
    build.args(["build", "--quiet", "--release", "--locked"]).args(packages);
    build.args(["--target", workspace::WINDOWS_TARGET]);
    build
        .env_remove("RUSTFLAGS")
        .env("CARGO_ENCODED_RUSTFLAGS", build_flags::windows().join("\u{1f}"));
    run(&mut build)?;
    let folder = workspace::target_dir().join(workspace::WINDOWS_TARGET).join("release");
    visibility_filter::build_into(&folder)?;
    Ok(folder)
}

/// Reads the files `names` from `folder`, by their names in the image.
pub(super) fn read(folder: &Path, names: &[&str]) -> Result<BTreeMap<String, Vec<u8>>> {
    let files = SHIPPED.iter().map(|file| (file.name, file.built, Machine::X86_64));
    let filters = FILTERS.iter().map(|filter| {
        let built = std::slice::from_ref(&filter.file);
        (filter.file, built, filter.machine())
    });
    let wanted = files.chain(filters).filter(|(name, ..)| names.contains(name));
    wanted
        .map(|(name, built, machine)| Ok((name.to_owned(), read_file(folder, built, machine)?)))
        .collect()
}

/// Reads the first file of `built` that exists.
fn read_file(folder: &Path, built: &[&str], machine: Machine) -> Result<Vec<u8>> {
    let mut paths = built.iter().map(|name| folder.join(name));
    let existing = paths.clone().find(|path| path.exists());
    let path = existing.or_else(|| paths.next_back()).expect("a file has a source");
    let bytes = fs::read(&path).with_context(|| {
        format!(
            "cannot read {}\nhint: --programs names a folder with a release build",
            path.display()
        )
    })?;
    if !is_windows_program(&bytes, machine) {
        bail!("{} is not a Windows program for {machine}", path.display());
    }
    Ok(bytes)
}

/// Whether `bytes` start as a PE file for `machine`.
fn is_windows_program(bytes: &[u8], machine: Machine) -> bool {
    let [low, high] = machine.number().to_le_bytes();
    let offset = bytes.get(OFFSET..OFFSET + 4).and_then(|field| field.try_into().ok());
    let header = offset.and_then(|field| bytes.get(u32::from_le_bytes(field) as usize..));
    let start = [b'P', b'E', 0, 0, low, high];
    bytes.starts_with(b"MZ") && header.is_some_and(|header| header.starts_with(&start))
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

    #[test]
    fn the_launcher_and_every_filter_are_shipped() {
        let launcher = ("directx-visible.exe", Machine::X86_64);
        let filters = FILTERS.iter().map(|filter| (filter.file, filter.machine()));
        for (name, machine) in filters.chain([launcher]) {
            assert!(names().any(|shipped| shipped == name), "{name}");
            let folder = tempfile::tempdir().unwrap();
            let mut bytes = minimal_program(b"");
            bytes[0x44..0x46].copy_from_slice(&machine.number().to_le_bytes());
            fs::write(folder.path().join(name), bytes).unwrap();
            assert!(read(folder.path(), &[name]).unwrap().contains_key(name), "{name}");
        }
    }
}
