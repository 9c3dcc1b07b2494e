//! The runtime files that a driver wants copied into containers and virtual machines.
//!
//! Returns the files in the order in which they take destinations, and every registry value that
//! cannot be used, with the reason. The rules are from Microsoft's page "Container non-DX
//! customizations".

use std::collections::BTreeSet;

use host::fold_case;
use host::{CopyToVmKey, CopyToVmKind, CopyToVmValue, DriverStore, PathError, StorePath};

use crate::{Destination, DestinationError};

/// One file: its place in the driver store and its name in the container.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RuntimeFile {
    /// The file in the driver store folder.
    pub source: StorePath,
    /// Its name in System32 or `SysWOW64`.
    pub destination: Destination,
}

/// The runtime files of one device.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RuntimeFiles {
    pub system32: Vec<RuntimeFile>,
    /// The files for `SysWOW64`.
    pub wow64: Vec<RuntimeFile>,
    /// Registry values that name no usable file. The other values are used.
    pub rejected: Vec<RejectedValue>,
}

/// A registry value that names no usable file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RejectedValue {
    pub key: CopyToVmKey,
    pub value: String,
    pub why: CopyToVmValueError,
}

/// Why a registry value names no usable file.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CopyToVmValueError {
    /// `REG_MULTI_SZ` contains a source and an optional destination.
    #[error("expected one or two strings, found {0}")]
    Count(usize),
    /// A path that is not allowed.
    #[error(transparent)]
    Path(#[from] PathError),
    /// A destination that is not a bare file name, or that Windows owns.
    #[error(transparent)]
    Destination(#[from] DestinationError),
    /// An earlier value has the same destination.
    #[error("destination `{0}` is already used by an earlier value")]
    DestinationTaken(Destination),
}

impl RuntimeFiles {
    /// Reads the registry's entries in order: Overwrite before `WhenNewer`, the driver key
    /// before its subkeys, values by name. The first file with a destination (compared
    /// case-insensitively) wins.
    #[must_use]
    pub fn of(store: &DriverStore) -> RuntimeFiles {
        let mut files = RuntimeFiles::default();
        let mut destinations = [BTreeSet::new(), BTreeSet::new()];
        for (key, values) in &store.copy_to_vm {
            let mut values: Vec<_> = values.iter().collect();
            values.sort_by_cached_key(|(name, _)| (fold_case(name), (*name).clone()));
            for (name, value) in values {
                files.add(key, name, value, &mut destinations);
            }
        }
        files
    }

    fn add(
        &mut self,
        key: &CopyToVmKey,
        name: &str,
        value: &CopyToVmValue,
        destinations: &mut [BTreeSet<String>; 2],
    ) {
        let (list, taken) = match key.kind {
            CopyToVmKind::Overwrite | CopyToVmKind::WhenNewer => {
                (&mut self.system32, &mut destinations[0])
            }
            CopyToVmKind::OverwriteWow64 | CopyToVmKind::WhenNewerWow64 => {
                (&mut self.wow64, &mut destinations[1])
            }
        };
        let file = read_value(value).and_then(|file| {
            if taken.insert(file.destination.folded()) {
                Ok(file)
            } else {
                Err(CopyToVmValueError::DestinationTaken(file.destination))
            }
        });
        match file {
            Ok(file) => list.push(file),
            Err(why) => {
                self.rejected.push(RejectedValue { key: key.clone(), value: name.to_owned(), why });
            }
        }
    }
}

/// The file that a value names. The destination is optional and may be empty.
fn read_value(value: &CopyToVmValue) -> Result<RuntimeFile, CopyToVmValueError> {
    let (source, destination) = match value {
        CopyToVmValue::Single(source) => (source, None),
        CopyToVmValue::Multi(strings) => match strings.as_slice() {
            [source] => (source, None),
            [source, destination] => (source, Some(destination).filter(|d| !d.is_empty())),
            other => return Err(CopyToVmValueError::Count(other.len())),
        },
    };
    let source = source.parse::<StorePath>()?;
    let destination = match destination {
        Some(name) => name.parse::<Destination>()?,
        None => source.file_name().try_into()?,
    };
    Ok(RuntimeFile { source, destination })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use host::StoreFiles;

    use super::*;

    fn store(entries: &[(&str, &str, CopyToVmValue)]) -> DriverStore {
        let mut store = DriverStore {
            path: r"C:\Windows\System32\DriverStore\FileRepository\x.inf".into(),
            files: StoreFiles::EveryNamed,
            copy_to_vm: BTreeMap::new(),
        };
        for (key, name, value) in entries {
            let key = key.parse().unwrap();
            store.copy_to_vm.entry(key).or_default().insert((*name).to_owned(), value.clone());
        }
        store
    }

    fn multi(strings: &[&str]) -> CopyToVmValue {
        CopyToVmValue::Multi(strings.iter().map(|s| (*s).to_owned()).collect())
    }

    fn pairs(files: &[RuntimeFile]) -> Vec<String> {
        files.iter().map(|f| format!("{} => {}", f.source, f.destination)).collect()
    }

    /// One `REG_SZ` value, or one value over 1 KiB, used to drop every other file of its key.
    #[test]
    fn an_unusable_value_does_not_affect_the_others() {
        let long = format!(r"{}\x.dll", vec!["a".repeat(200); 8].join("\\"));
        let files = RuntimeFiles::of(&store(&[
            ("CopyToVmOverwrite", "1", multi(&["good1.dll"])),
            ("CopyToVmOverwrite", "2", multi(&[])),
            ("CopyToVmOverwrite", "3", multi(&["a.dll", "b.dll", "c.dll"])),
            ("CopyToVmOverwrite", "4", CopyToVmValue::Single("single.dll".into())),
            ("CopyToVmOverwrite", "5", multi(&[r"..\..\evil.dll", "evil.dll"])),
            ("CopyToVmOverwrite", "6", multi(&["ok.dll", r"drivers\evil.sys"])),
            ("CopyToVmOverwrite", "7", multi(&[&long])),
            ("CopyToVmOverwrite", "8", multi(&["good2.dll", ""])),
            ("CopyToVmOverwrite", "9", multi(&["nv.dll", "KERNEL32.dll"])),
            ("CopyToVmOverwrite", "91", CopyToVmValue::Single("drivers".into())),
        ]));
        let expected = ["good1.dll => good1.dll", "single.dll => single.dll"];
        assert_eq!(pairs(&files.system32)[..2], expected);
        assert_eq!(files.system32[2].source.as_str(), long);
        assert_eq!(pairs(&files.system32)[3], "good2.dll => good2.dll");
        let rejected: Vec<_> = files.rejected.iter().map(|r| r.value.as_str()).collect();
        assert_eq!(rejected, ["2", "3", "5", "6", "9", "91"]);
        let why = files.rejected[4].why.to_string();
        assert_eq!(why, "the destination `KERNEL32.dll` is a file of Windows itself");
    }

    #[test]
    fn overwrite_precedes_when_newer_and_destinations_ignore_case() {
        let files = RuntimeFiles::of(&store(&[
            ("CopyToVmWhenNewer", "1", multi(&["newer.dll", "OPENCL.DLL"])),
            ("CopyToVmOverwrite", "9", multi(&[r"B026261\amd_opencl64.dll", "OpenCL.dll"])),
            (r"amdkmdag\CopyToVmOverwrite", "1", multi(&["sub.dll"])),
            ("CopyToVmOverwriteWow64", "1", multi(&["amd_opencl32.dll", "OpenCL.dll"])),
        ]));
        assert_eq!(
            pairs(&files.system32),
            [r"B026261\amd_opencl64.dll => OpenCL.dll", "sub.dll => sub.dll"]
        );
        assert_eq!(pairs(&files.wow64), ["amd_opencl32.dll => OpenCL.dll"]);
        assert_eq!(
            files.rejected[0].why.to_string(),
            "destination `OPENCL.DLL` is already used by an earlier value"
        );
    }

    #[test]
    fn values_are_sorted_by_name_ignoring_case() {
        let files = RuntimeFiles::of(&store(&[
            ("CopyToVmOverwrite", "b", multi(&["2.dll"])),
            ("CopyToVmOverwrite", "A", multi(&["1.dll"])),
            ("CopyToVmOverwrite", "C", multi(&["3.dll"])),
        ]));
        assert_eq!(pairs(&files.system32), ["1.dll => 1.dll", "2.dll => 2.dll", "3.dll => 3.dll"]);
    }

    /// A virtual machine with a paravirtualized GPU has the driver of its host there.
    #[test]
    fn a_host_driver_store_alone_does_not_hide_the_files() {
        let mut guest = store(&[("CopyToVmOverwrite", "1", multi(&["a.dll"]))]);
        guest.path = r"C:\Windows\System32\HostDriverStore\FileRepository\x.inf".into();
        assert_eq!(pairs(&RuntimeFiles::of(&guest).system32), ["a.dll => a.dll"]);
    }
}
