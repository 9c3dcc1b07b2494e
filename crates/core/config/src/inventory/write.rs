//! Writes a snapshot as the text of an inventory.

use serde_saphyr::{FlowSeq, Location, Spanned};

use devices::{
    Adapter, Containerd, CopyToVmValue, DriverStore, HardwareId, HostFacts, HostSnapshot, Luid,
    NodeSoftware, NvidiaGpu, Nvml, Platform, PnpDevice, Program, StoreFiles, SystemRoot, Wow64,
};

use crate::inventory::format::{
    AdapterFile, DriverStoreFile, HardwareIdFile, HcsErrorFile, HostFile, InventoryFile, NodeFile,
    NvidiaGpuFile, NvmlFile, PnpFile, ProgramFile, Version1,
};
use crate::values::{Choice, Entries, NonEmpty, Parsed, TextOr};

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

/// Writes an inventory that reads back to the same host facts, software of the node and
/// adapters. The snapshot's warnings, for which the format has no key, become comments at the top.
pub fn to_yaml(snapshot: &HostSnapshot) -> Result<String, WriteError> {
    let comments = snapshot
        .warnings
        .iter()
        .map(|warning| format!("# adapter {}: {:?}\n", warning.luid, warning.text));
    let file = InventoryFile {
        schema: Parsed(Version1),
        recorded_by: Some(env!("CARGO_PKG_VERSION").to_owned()),
        host: Some(host(&snapshot.host)).filter(|host| *host != HostFile::default()),
        node: Some(&snapshot.node).filter(|node| **node != NodeSoftware::default()).map(node),
        adapters: snapshot.adapters.iter().map(adapter).collect::<Result<_, _>>()?,
        complete: Some(true),
    };
    let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
    Ok(comments.collect::<String>() + &serde_saphyr::to_string_with_options(&file, options)?)
}

fn host(host: &HostFacts) -> HostFile {
    let schemas: Vec<_> = host.hcs_schemas.iter().map(|schema| Parsed(*schema)).collect();
    HostFile {
        platform: (host.platform != Platform::default()).then_some(Parsed(Choice(host.platform))),
        product: host.product.clone(),
        display_version: host.display_version.clone(),
        build: host.build.map(Parsed),
        hcs_schemas: (!schemas.is_empty()).then_some(FlowSeq(schemas)),
        wow64: (host.wow64 == Wow64::Absent).then_some(false),
        container: (host.inside_container).then_some(true),
        system_root: Some(&host.system_root)
            .filter(|root| **root != SystemRoot::default())
            .map(|root| Parsed(root.clone())),
    }
}

fn node(node: &NodeSoftware) -> NodeFile {
    NodeFile {
        hcs_error: node.hcs_failure.as_ref().map(|failure| HcsErrorFile {
            kind: Parsed(Choice(failure.kind)),
            message: failure.message.clone(),
        }),
        containerd: node.containerd.as_ref().map(|found| unplaced(containerd(found))),
        kubelet: node.kubelet.as_ref().map(|found| unplaced(program(found))),
        nvml: node.nvml.as_ref().map(|found| unplaced(nvml(found))),
    }
}

fn containerd(containerd: &Containerd) -> ProgramFile {
    let disabled_plugins = containerd.disabled_plugins.clone().map(FlowSeq);
    ProgramFile { disabled_plugins, ..program(&containerd.program) }
}

fn program(program: &Program) -> ProgramFile {
    let (path, version, not_found_in) = match program {
        Program::NotFound(places) => (None, None, Some(places.clone())),
        Program::Found { path, version } => (Some(non_empty(path)), Some(version), None),
    };
    let (version, version_error) = either(version);
    let version = version.map(Parsed);
    ProgramFile { path, version, version_error, disabled_plugins: None, not_found_in }
}

fn nvml(nvml: &Nvml) -> NvmlFile {
    let (gpus, gpus_error) = either(Some(&nvml.gpus));
    NvmlFile {
        library: nvml.library.as_deref().map(non_empty),
        gpus: gpus.map(|gpus| gpus.into_iter().map(gpu).collect()),
        gpus_error,
    }
}

fn gpu(gpu: NvidiaGpu) -> NvidiaGpuFile {
    let NvidiaGpu { index, name, driver_version, driver_model } = gpu;
    NvidiaGpuFile { index, name, driver_version, driver_model }
}

/// The values of the key for a result and of the key for its error.
fn either<T: Clone>(result: Option<&Result<T, String>>) -> (Option<T>, Option<String>) {
    match result.cloned() {
        None => (None, None),
        Some(Ok(value)) => (Some(value), None),
        Some(Err(error)) => (None, Some(error)),
    }
}

fn adapter(adapter: &Adapter) -> Result<AdapterFile, WriteError> {
    Ok(AdapterFile {
        luid: unplaced(adapter.luid.0),
        attributes: FlowSeq(adapter.attributes.iter().map(|a| Parsed(Choice(a))).collect()),
        hardware: adapter.hardware,
        integrated: adapter.integrated,
        detachable: adapter.detachable,
        hardware_id: hardware_id(adapter.hardware_id),
        driver_description: adapter.driver_description.clone(),
        driver_version: adapter.driver_version.map(Parsed),
        dedicated_memory_mib: adapter.dedicated_memory_mib,
        pnp: adapter.pnp.as_ref().map(pnp),
        driver_store: match &adapter.driver_store {
            Some(store) => Some(driver_store(store, adapter.luid)?),
            None => None,
        },
    })
}

fn hardware_id(id: HardwareId) -> HardwareIdFile {
    let HardwareId { vendor, device, subsystem, revision } = id;
    HardwareIdFile { vendor, device, subsystem, revision }
}

fn pnp(device: &PnpDevice) -> PnpFile {
    PnpFile {
        id: unplaced(non_empty(device.id.as_str())),
        description: device.description.clone(),
        manufacturer: device.manufacturer.clone(),
        driver_key: device.driver_key.as_ref().map(|key| non_empty(key.as_str())),
        driver_date: device.driver_date.map(Parsed),
        location_paths: FlowSeq(
            device.location_paths.iter().map(|p| non_empty(p.as_str())).collect(),
        ),
        numa_node: device.numa_node,
        problem_code: device.problem_code,
    }
}

fn driver_store(store: &DriverStore, luid: Luid) -> Result<DriverStoreFile, WriteError> {
    let keys = store.copy_to_vm.iter().map(|(key, values)| {
        let values = values.iter().map(|(name, value)| (name.clone(), copy_to_vm(value)));
        (key.clone(), Entries(values.collect()))
    });
    Ok(DriverStoreFile {
        path: non_empty(&store.path),
        files: match &store.files {
            StoreFiles::EveryNamed => None,
            StoreFiles::OnDisk => return Err(WriteError::FilesNotListed(luid)),
            StoreFiles::Listed(files) => Some(files.iter().cloned().collect()),
        },
        copy_to_vm: Entries(keys.collect()),
    })
}

fn copy_to_vm(value: &CopyToVmValue) -> TextOr<FlowSeq<Vec<String>>> {
    match value {
        CopyToVmValue::Single(text) => TextOr::Text(text.clone()),
        CopyToVmValue::Multi(texts) => TextOr::Several(FlowSeq(texts.clone())),
    }
}

/// A value that comes from no file.
fn unplaced<T>(value: T) -> Spanned<T> {
    Spanned::new(value, Location::UNKNOWN, Location::UNKNOWN)
}

fn non_empty(text: &str) -> NonEmpty {
    NonEmpty(text.to_owned())
}
