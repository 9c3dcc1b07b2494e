//! A snapshot into the text of an inventory.

use devices::{
    Adapter, AdapterKind, Attachment, Containerd, CopyToVmValue, DiscoveredFrom, DriverStore,
    HardwareId, HcsFailure, HostFacts, HostSnapshot, Luid, NodeSoftware, NvidiaGpu, Nvml,
    Placement, PnpDevice, Program, ProgramVersion, StoreFiles, SystemRoot, Wow64,
};
use documents::{Entries, Flag, FlowSeq, NonEmpty, Parsed, Spanned, Text, TextOrList, Whole};

use crate::format::{
    AdapterFile, ContainerdFile, DriverStoreFile, HardwareIdFile, HcsErrorFile, HostFile,
    InventoryFile, KubeletFile, NodeFile, NvidiaGpuFile, NvmlFile, PnpFile, Version1,
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

/// Writes an inventory that reads back to the same host facts, software of the node and
/// adapters. The snapshot's
/// warnings, for which the format has no key, become comments at the top.
pub fn to_yaml(snapshot: &HostSnapshot) -> Result<String, WriteError> {
    let comments = snapshot
        .warnings
        .iter()
        .map(|warning| format!("# adapter {}: {:?}\n", warning.luid, warning.text));
    let file = InventoryFile {
        schema: Version1.into(),
        host: Some(host(&snapshot.host)).filter(|host| *host != HostFile::default()),
        node: Some(&snapshot.node).filter(|node| **node != NodeSoftware::default()).map(node),
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
        container: (host.discovered_from == DiscoveredFrom::Container).then_some(Flag(true)),
        system_root: Some(&host.system_root)
            .filter(|root| **root != SystemRoot::default())
            .map(|root| root.clone().into()),
    }
}

fn node(node: &NodeSoftware) -> NodeFile {
    NodeFile {
        hcs_error: node.hcs_failure.as_ref().map(|failure| unplaced(hcs_error(failure))),
        containerd: node.containerd.as_ref().map(|found| unplaced(containerd(found))),
        kubelet: node.kubelet.as_ref().map(|found| unplaced(kubelet(found))),
        nvml: node.nvml.as_ref().map(|found| unplaced(nvml(found))),
    }
}

fn hcs_error(failure: &HcsFailure) -> HcsErrorFile {
    HcsErrorFile { kind: failure.kind.into(), message: Text(failure.message.clone()) }
}

fn containerd(containerd: &Containerd) -> ContainerdFile {
    let KubeletFile { path, version, version_error, not_found_in } = kubelet(&containerd.program);
    let plugins = containerd.disabled_plugins.as_deref();
    let disabled_plugins = plugins.map(|plugins| FlowSeq(texts(plugins)));
    ContainerdFile { path, version, version_error, disabled_plugins, not_found_in }
}

fn kubelet(program: &Program) -> KubeletFile {
    let (path, version, not_found_in) = match program {
        Program::NotFound(places) => (None, None, Some(texts(places))),
        Program::Found { path, version } => (Some(NonEmpty(path.clone())), Some(version), None),
    };
    let (version, version_error) = either(version);
    KubeletFile {
        path,
        version: version.map(|version: ProgramVersion| Parsed::from(version)),
        version_error: version_error.map(Text),
        not_found_in,
    }
}

fn nvml(nvml: &Nvml) -> NvmlFile {
    let (gpus, gpus_error) = either(Some(&nvml.gpus));
    NvmlFile {
        library: nvml.library.clone().map(NonEmpty),
        gpus: gpus.map(|gpus| gpus.into_iter().map(gpu).collect()),
        gpus_error: gpus_error.map(Text),
    }
}

fn gpu(gpu: NvidiaGpu) -> NvidiaGpuFile {
    NvidiaGpuFile {
        index: Whole(gpu.index),
        name: Text(gpu.name),
        driver_version: Text(gpu.driver_version),
        driver_model: Text(gpu.driver_model),
    }
}

fn texts(texts: &[String]) -> Vec<Text> {
    texts.iter().cloned().map(Text).collect()
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
    Spanned::unplaced(value)
}
