//! A snapshot into the text of an inventory.

use devices::{
    Adapter, AdapterKind, Attachment, CopyToVmValue, DriverStore, HardwareId, HostFacts,
    HostSnapshot, Luid, Placement, PnpDevice, StoreFiles, Wow64,
};
use documents::{Entries, Flag, FlowSeq, NonEmpty, Spanned, Text, TextOrList, Whole};

use crate::format::{
    AdapterFile, DriverStoreFile, HardwareIdFile, HostFile, InventoryFile, PnpFile, Version1,
};

/// Why a snapshot cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// Only its disk knows the files of a live host ([`StoreFiles::OnDisk`]); list them first.
    #[error("the driver store files of adapter {0} are not listed")]
    FilesNotListed(Luid),
    /// The library cannot write it.
    #[error(transparent)]
    Yaml(#[from] documents::WriteError),
}

/// Writes an inventory that reads back to the same host facts and adapters. The snapshot's
/// warnings, for which the format has no key, become comments at the top.
pub fn to_yaml(snapshot: &HostSnapshot) -> Result<String, WriteError> {
    let comments = snapshot
        .warnings
        .iter()
        .map(|warning| format!("# adapter {}: {:?}\n", warning.luid, warning.text));
    let file = InventoryFile {
        schema: Version1.into(),
        host: Some(host(&snapshot.host)).filter(|host| *host != HostFile::default()),
        adapters: snapshot.adapters.iter().map(adapter).collect::<Result<_, _>>()?,
    };
    Ok(comments.collect::<String>() + &documents::to_yaml(&file)?)
}

fn host(host: &HostFacts) -> HostFile {
    let schemas: Vec<_> = host.hcs_schemas.iter().map(|schema| (*schema).into()).collect();
    HostFile {
        product: host.product.clone().map(Text),
        display_version: host.display_version.clone().map(Text),
        build: host.build.map(Into::into),
        hcs_schemas: (!schemas.is_empty()).then_some(FlowSeq(schemas)),
        wow64: (host.wow64 == Wow64::Absent).then_some(Flag(false)),
    }
}

fn adapter(adapter: &Adapter) -> Result<AdapterFile, WriteError> {
    Ok(AdapterFile {
        luid: unplaced(Whole(adapter.luid.0)),
        attributes: FlowSeq(adapter.attributes.iter().map(Into::into).collect()),
        hardware: Flag(adapter.kind == AdapterKind::Hardware),
        integrated: Flag(adapter.placement == Placement::Integrated),
        detachable: Flag(adapter.attachment == Attachment::Detachable),
        hardware_id: hardware_id(adapter.hardware_id),
        driver_description: Text(adapter.driver_description.clone()),
        driver_version: adapter.driver_version.map(Into::into),
        dedicated_memory_mib: adapter.dedicated_memory_mib.map(Whole),
        pnp: adapter.pnp.as_ref().map(pnp),
        driver_store: match &adapter.driver_store {
            Some(store) => Some(driver_store(store, adapter.luid)?),
            None => None,
        },
    })
}

fn hardware_id(id: HardwareId) -> HardwareIdFile {
    HardwareIdFile {
        vendor: Whole(id.vendor),
        device: Whole(id.device),
        subsystem: Whole(id.subsystem),
        revision: Whole(id.revision),
    }
}

fn pnp(device: &PnpDevice) -> PnpFile {
    let text = |text: &str| NonEmpty(text.to_owned());
    PnpFile {
        id: unplaced(text(device.id.as_str())),
        description: Text(device.description.clone()),
        manufacturer: Text(device.manufacturer.clone()),
        driver_key: device.driver_key.as_ref().map(|key| text(key.as_str())),
        driver_date: device.driver_date.map(Into::into),
        location_paths: FlowSeq(device.location_paths.iter().map(|p| text(p.as_str())).collect()),
        numa_node: device.numa_node.map(Whole),
        problem_code: Whole(device.problem_code),
    }
}

fn driver_store(store: &DriverStore, luid: Luid) -> Result<DriverStoreFile, WriteError> {
    let value = |value: &CopyToVmValue| match value {
        CopyToVmValue::Single(text) => TextOrList::One(text.clone()),
        CopyToVmValue::Multi(texts) => TextOrList::List(texts.clone()),
    };
    let keys = store.copy_to_vm.iter().map(|(key, values)| {
        (key.clone(), Entries(values.iter().map(|(name, v)| (name.clone(), value(v))).collect()))
    });
    Ok(DriverStoreFile {
        path: NonEmpty(store.path.clone()),
        files: match &store.files {
            StoreFiles::EveryNamed => None,
            StoreFiles::OnDisk => return Err(WriteError::FilesNotListed(luid)),
            StoreFiles::Listed(files) => Some(files.iter().cloned().map(Text).collect()),
        },
        copy_to_vm: Entries(keys.collect()),
    })
}

/// A value that comes from no file.
fn unplaced<T>(value: T) -> Spanned<T> {
    Spanned::new(value, documents::UNPLACED, documents::UNPLACED)
}
