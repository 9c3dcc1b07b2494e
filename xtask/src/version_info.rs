//! Checks the version resource of every Windows program and of the discovery library.
//!
//! The resource is read back from the built files, independently of the crate that writes it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use object::LittleEndian as LE;
use object::pe::{ImageNtHeaders32, ImageNtHeaders64, RT_VERSION};
use object::read::FileKind;
use object::read::pe::{ImageNtHeaders, PeFile, ResourceDirectoryEntryData};

use crate::workspace;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The built file, the name that it is shipped as, and its description.
const FILES: [(&str, &str, &str); 11] = [
    (
        "directx-device-plugin.exe",
        "directx-device-plugin.exe",
        "DirectX device plugin for Kubernetes",
    ),
    (
        "device-plugin-wddm.exe",
        "device-plugin-wddm.exe",
        "DirectX device plugin for Kubernetes (WDDM devices)",
    ),
    (
        "device-plugin-mcdm.exe",
        "device-plugin-mcdm.exe",
        "DirectX device plugin for Kubernetes (MCDM devices)",
    ),
    (
        "directx-feature-discovery.exe",
        "directx-feature-discovery.exe",
        "Node labels for DirectX devices",
    ),
    (
        "gen-device-mounts.exe",
        "gen-device-mounts.exe",
        "DirectX device and mount flags for containers",
    ),
    (
        "query-hcs-capabilities.exe",
        "query-hcs-capabilities.exe",
        "Host Compute Service capabilities",
    ),
    ("test-device-discovery.exe", "test-device-discovery.exe", "DirectX device discovery test"),
    ("gpu-probe.exe", "gpu-probe.exe", "GPU API test for containers"),
    (
        "directx-visible.exe",
        "directx-visible.exe",
        "Runs a program that sees only the devices of its container",
    ),
    (
        "directx-programs.exe",
        "directx-programs.exe",
        "DirectX device plugin for Kubernetes and its tools",
    ),
    (
        "directx_device_discovery.dll",
        "directx-device-discovery.dll",
        "DirectX device discovery library",
    ),
];

/// Checks the files of the debug build for Windows.
pub(crate) fn perform() -> Result<()> {
    for (built, shipped, description) in FILES {
        let path = workspace::windows_build(built);
        let file =
            std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        check_file(&file, shipped, description)
            .with_context(|| format!("wrong version resource in {}", path.display()))?;
    }
    Ok(())
}

/// The shipped names and the paths of the files of the debug build for Windows.
pub(crate) fn built_files() -> Vec<(String, PathBuf)> {
    let file = |(built, shipped, _): &(&str, &str, &str)| {
        ((*shipped).to_owned(), workspace::windows_build(built))
    };
    FILES.iter().map(file).collect()
}

/// Fails unless the PE file `file` has the version resource of the file that is shipped as
/// `shipped`.
pub(crate) fn check_file(file: &[u8], shipped: &str, description: &str) -> Result<()> {
    read(file)?.compare(shipped, description)
}

/// Fails unless the version resource of the PE file `file` has the version of this workspace.
pub(crate) fn check_version(file: &[u8]) -> Result<()> {
    let info = read(file)?;
    for key in ["FileVersion", "ProductVersion"] {
        let found = info.strings.get(key).map(String::as_str);
        ensure!(found == Some(VERSION), "{key} is {found:?}, expected `{VERSION}`");
    }
    Ok(())
}

/// The content of a version resource.
#[derive(Debug, Default, PartialEq, Eq)]
struct VersionInfo {
    /// `FILEVERSION` and `PRODUCTVERSION`, each four parts of 16 bits.
    fixed: [[u16; 4]; 2],
    /// `VFT_APP` (1) or `VFT_DLL` (2).
    file_type: u32,
    /// The language of the strings.
    languages: Vec<String>,
    strings: BTreeMap<String, String>,
}

impl VersionInfo {
    fn compare(&self, shipped: &str, description: &str) -> Result<()> {
        let (name, extension) = shipped.split_once('.').context("a file name without extension")?;
        let number = |n: usize| VERSION.split(['.', '-']).nth(n)?.parse().ok();
        let parts = [0, 1, 2].map(|n| number(n).unwrap_or(0));
        let fixed = [parts[0], parts[1], parts[2], 0];
        let strings = [
            ("FileDescription", description),
            ("FileVersion", VERSION),
            ("InternalName", name),
            ("LegalCopyright", "MIT licence"),
            ("OriginalFilename", shipped),
            ("ProductName", "DirectX device plugin for Kubernetes"),
            ("ProductVersion", VERSION),
        ];
        let expected = VersionInfo {
            fixed: [fixed; 2],
            file_type: if extension == "dll" { 2 } else { 1 },
            // US English, UTF-16.
            languages: vec!["040904b0".to_owned()],
            strings: strings.map(|(key, text)| (key.to_owned(), text.to_owned())).into(),
        };
        ensure!(*self == expected, "expected {expected:#?}\nfound {self:#?}");
        Ok(())
    }
}

/// Reads the version resource of a PE file.
fn read(file: &[u8]) -> Result<VersionInfo> {
    match FileKind::parse(file)? {
        FileKind::Pe32 => read_as::<ImageNtHeaders32>(file),
        _ => read_as::<ImageNtHeaders64>(file),
    }
}

fn read_as<Headers: ImageNtHeaders>(file: &[u8]) -> Result<VersionInfo> {
    let pe = PeFile::<Headers>::parse(file)?;
    let directory = pe
        .data_directories()
        .resource_directory(file, &pe.section_table())?
        .context("the file has no resources")?;
    let mut at = directory.root()?;
    let types = at.entries.iter();
    let mut entry = types
        .copied()
        .find(|entry| entry.name_or_id().id() == Some(RT_VERSION))
        .context("the file has no version resource")?;
    // Type, name and language; the language leads to the data.
    let data = loop {
        match entry.data(directory)? {
            ResourceDirectoryEntryData::Table(table) => {
                at = table;
                entry = *at.entries.first().context("an empty resource directory")?;
            }
            ResourceDirectoryEntryData::Data(data) => break data,
        }
    };
    let bytes = pe
        .section_table()
        .pe_data_at(file, data.offset_to_data.get(LE))
        .and_then(|bytes| bytes.get(..data.size.get(LE) as usize))
        .context("the version resource lies outside of the file")?;
    version_info(bytes)
}

/// Reads `VS_VERSIONINFO` (verrsrc.h).
fn version_info(bytes: &[u8]) -> Result<VersionInfo> {
    let (root, _) = Node::read(bytes)?;
    ensure!(root.key == "VS_VERSION_INFO", "unexpected resource `{}`", root.key);
    let fixed = root.value;
    let dword = |n: usize| {
        let bytes = fixed.get(n * 4..n * 4 + 4).and_then(|bytes| bytes.try_into().ok());
        bytes.map(u32::from_le_bytes).context("VS_FIXEDFILEINFO is too short")
    };
    ensure!(dword(0)? == 0xFEEF_04BD, "VS_FIXEDFILEINFO has no signature");
    let version = |high: u32, low: u32| {
        [high >> 16, high & 0xFFFF, low >> 16, low & 0xFFFF]
            .map(|part| u16::try_from(part).expect("16 bits are left"))
    };
    let mut info = VersionInfo {
        fixed: [version(dword(2)?, dword(3)?), version(dword(4)?, dword(5)?)],
        file_type: dword(9)?,
        ..VersionInfo::default()
    };
    for block in root.children()? {
        if block.key != "StringFileInfo" {
            continue;
        }
        for table in block.children()? {
            for string in table.children()? {
                let text = utf16(string.value);
                info.strings.insert(string.key, text.trim_end_matches('\0').to_owned());
            }
            info.languages.push(table.key);
        }
    }
    Ok(info)
}

/// A structure of a version resource: they all begin with a length, the length of the
/// value, a type and a name, and contain others.
struct Node<'a> {
    key: String,
    value: &'a [u8],
    rest: &'a [u8],
}

impl<'a> Node<'a> {
    /// Reads the first structure in `bytes`, and returns the bytes after it.
    fn read(bytes: &'a [u8]) -> Result<(Self, &'a [u8])> {
        let [length, value_length, is_text] = [0, 2, 4].map(|at| {
            bytes.get(at..at + 2).map(|pair| usize::from(u16::from_le_bytes([pair[0], pair[1]])))
        });
        let length = length.context("a version resource is cut off")?;
        let whole = bytes.get(..length).filter(|_| length >= 6);
        let whole = whole.context("a structure is longer than the version resource")?;
        let key: Vec<u8> = whole[6..]
            .chunks_exact(2)
            .take_while(|pair| *pair != [0, 0])
            .flatten()
            .copied()
            .collect();
        // The lengths of texts are in characters of two bytes.
        let unit = if is_text == Some(1) { 2 } else { 1 };
        let start = aligned(6 + key.len() + 2).min(length);
        let end = (start + value_length.unwrap_or_default() * unit).min(length);
        let node = Node {
            key: utf16(&key),
            value: &whole[start..end],
            rest: &whole[aligned(end).min(length)..],
        };
        Ok((node, &bytes[aligned(length).min(bytes.len())..]))
    }

    fn children(&self) -> Result<Vec<Node<'a>>> {
        let mut children = Vec::new();
        let mut rest = self.rest;
        while !rest.is_empty() {
            let (child, after) = Node::read(rest)?;
            children.push(child);
            rest = after;
        }
        Ok(children)
    }
}

/// Structures and values begin at multiples of four bytes.
fn aligned(length: usize) -> usize {
    length.next_multiple_of(4)
}

fn utf16(bytes: &[u8]) -> String {
    let units = bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    String::from_utf16_lossy(&units.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A structure with its length, as windres writes it.
    fn node(
        key: &str,
        is_text: u16,
        value_length: usize,
        value: &[u8],
        children: &[Vec<u8>],
    ) -> Vec<u8> {
        let mut bytes = vec![0; 6];
        bytes.extend(key.encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
        for part in std::iter::once(value).chain(children.iter().map(Vec::as_slice)) {
            bytes.resize(aligned(bytes.len()), 0);
            bytes.extend(part);
        }
        let length = u16::try_from(bytes.len()).unwrap();
        let value_length = u16::try_from(value_length).unwrap();
        for (at, number) in [length, value_length, is_text].into_iter().enumerate() {
            bytes[at * 2..at * 2 + 2].copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    fn resource(strings: &[(&str, &str)]) -> Vec<u8> {
        let text = |(key, text): &(&str, &str)| {
            let units: Vec<u16> = text.encode_utf16().chain([0]).collect();
            let bytes: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
            node(key, 1, units.len(), &bytes, &[])
        };
        let strings: Vec<Vec<u8>> = strings.iter().map(text).collect();
        let table = node("040904b0", 1, 0, &[], &strings);
        let block = node("StringFileInfo", 1, 0, &[], &[table]);
        let numbers = [0xFEEF_04BD_u32, 0, 1 << 16 | 2, 3 << 16, 4 << 16, 5, 0, 0, 0, 1, 0, 0, 0];
        let fixed: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        node("VS_VERSION_INFO", 0, fixed.len(), &fixed, &[block])
    }

    #[test]
    fn a_version_resource_is_read_in_full() {
        let info = version_info(&resource(&[("Odd", "a"), ("ProductName", "Ü")])).unwrap();
        assert_eq!(info.fixed, [[1, 2, 3, 0], [4, 0, 0, 5]]);
        assert_eq!((info.file_type, info.languages), (1, vec!["040904b0".to_owned()]));
        let strings = [("Odd", "a"), ("ProductName", "Ü")];
        assert_eq!(info.strings, strings.map(|(k, v)| (k.to_owned(), v.to_owned())).into());
    }

    #[test]
    fn a_difference_is_an_error() {
        let info = version_info(&resource(&[("FileVersion", "0.0.0")])).unwrap();
        let error = info.compare("x.exe", "text").unwrap_err().to_string();
        assert!(error.contains("\"FileVersion\": \"0.0.0\""), "{error}");
    }

    #[test]
    fn an_incomplete_resource_is_an_error() {
        let whole = resource(&[("FileVersion", "0.0.0")]);
        for length in 0..whole.len() {
            assert!(version_info(&whole[..length]).is_err(), "{length}");
        }
        assert!(read(b"MZ").is_err());
        assert!(check_version(b"MZ").is_err());
    }
}
