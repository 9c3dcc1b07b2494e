//! An inventory file into a snapshot.

mod node;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use devices::{
    Adapter, AdapterKind, Attachment, CopyToVmKey, CopyToVmValue, DiscoveredFrom, DriverKey,
    DriverStore, HardwareId, HostDisk, HostFacts, HostSnapshot, LocationPath, Luid, Placement,
    PnpDevice, PnpId, StoreFiles, Wow64,
};
use documents::{Entries, NonEmpty, Place, ReadError, Spanned, Text, TextOrList};

use crate::InventoryError;
use crate::format::{
    AdapterFile, DriverStoreFile, HardwareIdFile, HostFile, InventoryFile, PnpFile,
};

/// Reads the inventory in the file `path`.
pub fn read(path: &Path) -> Result<HostSnapshot, InventoryError> {
    parse_file(path, &read_file(path)?)
}

/// The bytes of the file `path`.
pub fn read_file(path: &Path) -> Result<Vec<u8>, InventoryError> {
    documents::read_bytes(path)
        .map_err(|source| InventoryError::File { path: path.to_owned(), source })
}

/// Reads an inventory from the bytes of the file `path`.
pub fn parse_file(path: &Path, bytes: &[u8]) -> Result<HostSnapshot, InventoryError> {
    Ok(parse_bytes(&path.display().to_string(), bytes)?)
}

/// Reads an inventory, YAML or JSON; errors call it `name`.
pub fn parse(name: &str, text: &str) -> Result<HostSnapshot, InventoryError> {
    Ok(parse_bytes(name, text.as_bytes())?)
}

fn parse_bytes(name: &str, bytes: &[u8]) -> Result<HostSnapshot, ReadError> {
    let file: InventoryFile = documents::parse(name, bytes)?;
    unique(name, &file.adapters)?;
    let host = file.host.map(host).unwrap_or_default();
    Ok(HostSnapshot {
        node: node::software(name, file.node.unwrap_or_default(), &host)?,
        host,
        adapters: file.adapters.into_iter().map(adapter).collect(),
        ..HostSnapshot::default()
    })
}

/// Checks that no two adapters have one LUID, nor one instance id, which Windows compares
/// without case.
fn unique(name: &str, adapters: &[AdapterFile]) -> Result<(), ReadError> {
    let mut luids = HashMap::new();
    let mut ids = HashMap::new();
    for (n, adapter) in adapters.iter().enumerate() {
        let (luid, place) = (&adapter.luid, |key| format!("adapters[{n}].{key}"));
        let text = format!("LUID {}", luid.value.0);
        once(name, &mut luids, luid.value.0, luid, place("luid"), &text)?;
        if let Some(id) = adapter.pnp.as_ref().map(|pnp| &pnp.id) {
            let text = format!("PnP instance id {:?}", id.value.0);
            let folded: String = id.value.0.chars().flat_map(char::to_uppercase).collect();
            once(name, &mut ids, folded, id, place("pnp.id"), &text)?;
        }
    }
    Ok(())
}

fn once<K: Eq + std::hash::Hash, T>(
    file: &str,
    seen: &mut HashMap<K, u32>,
    key: K,
    value: &Spanned<T>,
    path: String,
    what: &str,
) -> Result<(), ReadError> {
    let place = Place::of(file, value, path);
    match seen.insert(key, place.line()) {
        Some(line) => Err(place
            .error(format!("duplicate {what}"))
            .with_hint(format!("the adapter at line {line} already has it"))),
        None => Ok(()),
    }
}

fn host(file: HostFile) -> HostFacts {
    let schemas = file.hcs_schemas.map(|list| list.0).unwrap_or_default();
    let has_wow64 = file.wow64.is_none_or(|flag| flag.0);
    let is_container = file.container.is_some_and(|flag| flag.0);
    HostFacts {
        product: file.product.map(|text| text.0),
        display_version: file.display_version.map(|text| text.0),
        build: file.build.map(|build| build.0),
        hcs_schemas: schemas.into_iter().map(|schema| schema.0).collect(),
        wow64: if has_wow64 { Wow64::Present } else { Wow64::Absent },
        discovered_from: if is_container {
            DiscoveredFrom::Container
        } else {
            DiscoveredFrom::Host
        },
        system_root: file.system_root.map(|root| root.0).unwrap_or_default(),
        disk: HostDisk::Elsewhere,
    }
}

fn adapter(file: AdapterFile) -> Adapter {
    Adapter {
        luid: Luid(file.luid.value.0),
        attributes: file.attributes.0.into_iter().map(|attribute| attribute.0).collect(),
        kind: if file.hardware.0 { AdapterKind::Hardware } else { AdapterKind::Software },
        placement: if file.integrated.0 { Placement::Integrated } else { Placement::Discrete },
        attachment: if file.detachable.0 { Attachment::Detachable } else { Attachment::Fixed },
        hardware_id: hardware_id(&file.hardware_id),
        driver_description: file.driver_description.0,
        driver_version: file.driver_version.map(|version| version.0),
        dedicated_memory_mib: file.dedicated_memory_mib.map(|memory| memory.0),
        pnp: file.pnp.map(pnp),
        driver_store: file.driver_store.map(driver_store),
    }
}

fn hardware_id(file: &HardwareIdFile) -> HardwareId {
    HardwareId {
        vendor: file.vendor.0,
        device: file.device.0,
        subsystem: file.subsystem.0,
        revision: file.revision.0,
    }
}

fn pnp(file: PnpFile) -> PnpDevice {
    let paths = file.location_paths.0.into_iter();
    PnpDevice {
        id: PnpId::new(file.id.value.0),
        description: file.description.0,
        manufacturer: file.manufacturer.0,
        driver_key: file.driver_key.map(|NonEmpty(key)| DriverKey::new(key)),
        driver_date: file.driver_date.map(|date| date.0),
        location_paths: paths.map(|NonEmpty(path)| LocationPath::new(path)).collect(),
        numa_node: file.numa_node.map(|node| node.0),
        problem_code: file.problem_code.0,
    }
}

fn driver_store(file: DriverStoreFile) -> DriverStore {
    DriverStore {
        path: file.path.0,
        files: match file.files {
            Some(files) => StoreFiles::Listed(files.into_iter().map(|Text(name)| name).collect()),
            None => StoreFiles::EveryNamed,
        },
        copy_to_vm: copy_to_vm(file.copy_to_vm),
    }
}

fn copy_to_vm(
    file: Entries<CopyToVmKey, Entries<String, TextOrList>>,
) -> BTreeMap<CopyToVmKey, BTreeMap<String, CopyToVmValue>> {
    let value = |value| match value {
        TextOrList::One(text) => CopyToVmValue::Single(text),
        TextOrList::List(texts) => CopyToVmValue::Multi(texts),
    };
    let values = |Entries(values)| Vec::into_iter(values).map(|(n, v)| (n, value(v))).collect();
    file.0.into_iter().map(|(key, entries)| (key, values(entries))).collect()
}
