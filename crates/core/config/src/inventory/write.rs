//! Writes a snapshot as the text of an inventory.

use host::{DriverStore, HostFacts, HostSnapshot, LauncherFiles, Luid, NodeSoftware, StoreFiles};
use serde_saphyr::{Location, Spanned};

use crate::inventory::format::{InventoryFile, Version1};
use crate::values::Parsed;

/// Why a snapshot cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The snapshot of a live host does not contain the files ([`StoreFiles::OnDisk`]); list them
    /// first.
    #[error("the driver store files of adapter {0} are not listed")]
    FilesNotListed(Luid),
    /// The library cannot write it.
    #[error("the inventory cannot be written as YAML")]
    Yaml(#[from] serde_saphyr::SerializeError),
}

/// Writes an inventory that reads back to the same host facts, software of the node, adapters and
/// devices without an adapter. The snapshot's warnings, for which the format has no key, become
/// comments at the top.
pub fn to_yaml(snapshot: &HostSnapshot) -> Result<String, WriteError> {
    for adapter in &snapshot.adapters {
        if let Some(DriverStore { files: StoreFiles::OnDisk, .. }) = adapter.driver_store {
            return Err(WriteError::FilesNotListed(adapter.luid));
        }
    }
    let comments = snapshot
        .warnings
        .iter()
        .map(|warning| format!("# adapter {}: {:?}\n", warning.luid, warning.text));
    // An inventory never says that it describes the machine of its reader.
    let host = HostFacts {
        is_this_machine: false,
        launcher: LauncherFiles::default(),
        ..snapshot.host.clone()
    };
    let file = InventoryFile {
        schema: Parsed(Version1),
        recorded_by: Some(devices::VERSION.to_owned()),
        host: Some(host).filter(|host| *host != HostFacts::default()),
        node: Some(snapshot.node.clone()).filter(|node| *node != NodeSoftware::default()),
        devices_without_adapter: Some(unplaced(&snapshot.devices_without_adapter))
            .filter(|devices| !devices.is_empty()),
        adapters: unplaced(&snapshot.adapters),
        complete: Some(true),
    };
    let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
    Ok(comments.collect::<String>() + &serde_saphyr::to_string_with_options(&file, options)?)
}

fn unplaced<T: Clone>(entries: &[T]) -> Vec<Spanned<T>> {
    let entries = entries.iter().cloned();
    entries.map(|entry| Spanned::new(entry, Location::UNKNOWN, Location::UNKNOWN)).collect()
}
