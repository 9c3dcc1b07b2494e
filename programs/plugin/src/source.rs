//! Where adapters come from on this machine: a recorded inventory, or the host.

use std::collections::BTreeSet;
use std::path::Path;

use devices::{AdapterSource, AdapterWarning, HostSnapshot, StoreFiles, WarningEffect};

use cli::Failure;

use crate::gpu_uuids::ReadUuids;

/// The source that the flags name: an inventory where one is given, else this host.
pub(crate) fn open(inventory: Option<&Path>) -> Result<Box<dyn AdapterSource>, Failure> {
    match inventory {
        Some(path) => {
            // Read once before anything is started: a file that is missing or
            // malformed now is wrong usage, not a change to live through.
            inventory::read(path).map_err(|error| {
                let hint = error.hint().map(str::to_owned);
                Failure::usage(error).hint_if_any(hint)
            })?;
            Ok(Box::new(inventory::RecordedSource::new(path)))
        }
        None => host(),
    }
}

#[cfg(windows)]
fn host() -> Result<Box<dyn AdapterSource>, Failure> {
    let source = win32::HostSource::new().map_err(Failure::runtime)?;
    Ok(Box::new(source))
}

#[cfg(not(windows))]
fn host() -> Result<Box<dyn AdapterSource>, Failure> {
    let os = std::env::consts::OS;
    let why =
        anyhow::anyhow!("this host runs {os}, and DirectX adapters are found on Windows alone");
    Err(Failure::usage(why)
        .hint("give a recorded host with `--inventory FILE`; `record` writes one on Windows"))
}

/// Who can be asked for the UUIDs of NVIDIA devices: a live Windows host's NVML.
pub(crate) fn uuid_reader(inventory: Option<&Path>) -> Option<ReadUuids> {
    #[cfg(windows)]
    if inventory.is_none() {
        return Some(win32::nvml::gpu_uuids);
    }
    let _ = inventory;
    None
}

/// Lists the driver store folders of a live host, which only its disk knew until now.
pub(crate) fn list_store_files(snapshot: &mut HostSnapshot) {
    for adapter in &mut snapshot.adapters {
        let Some(store) = &mut adapter.driver_store else { continue };
        if store.files != StoreFiles::OnDisk {
            continue;
        }
        store.files = StoreFiles::Listed(match win32::files::list(Path::new(&store.path)) {
            Ok(files) => files,
            Err(error) => {
                snapshot.warnings.push(AdapterWarning {
                    luid: adapter.luid,
                    text: format!("the driver store folder {} cannot be read: {error}", store.path),
                    effect: WarningEffect::Incomplete,
                });
                BTreeSet::new()
            }
        });
    }
}
