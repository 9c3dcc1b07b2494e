//! Reads an inventory file into a snapshot.

use std::collections::HashMap;
use std::hash::Hash;
use std::path::Path;

use serde_saphyr::{FlowSeq, Spanned};

use devices::{
    Adapter, Containerd, CopyToVmValue, DriverKey, DriverStore, HardwareId, HcsFailure, HostFacts,
    HostSnapshot, LocationPath, Luid, NodeSoftware, NvidiaGpu, Nvml, PnpDevice, PnpId, Program,
    StoreFiles, Wow64,
};

use crate::inventory::InventoryError;
use crate::inventory::format::{
    AdapterFile, DriverStoreFile, HardwareIdFile, HostFile, InventoryFile, NodeFile, NvidiaGpuFile,
    NvmlFile, PnpFile, ProgramFile,
};
use crate::settings::KEYS;
use crate::text::text;
use crate::values::{NonEmpty, TextOr};
use crate::{Place, ReadError, document};

/// Reads the inventory in the file `path`.
pub fn read(path: &Path) -> Result<HostSnapshot, InventoryError> {
    let bytes = crate::read_bytes(path)
        .map_err(|source| InventoryError::File { path: path.to_owned(), source })?;
    Ok(parse(&path.display().to_string(), bytes)?)
}

/// Reads an inventory, YAML or JSON; errors call it `name`.
pub fn parse(name: &str, bytes: impl AsRef<[u8]>) -> Result<HostSnapshot, ReadError> {
    let bytes = bytes.as_ref();
    let file: InventoryFile =
        document::parse(name, bytes).map_err(|error| advised(error, name, bytes))?;
    if file.recorded_by.is_some() && file.complete != Some(true) {
        let what = "the inventory is cut off: its last line `complete: true` is missing";
        return Err(ReadError::of_file(name, what)
            .with_hint("record the host again, or copy the whole file"));
    }
    unique(name, &file.adapters)?;
    let host = file.host.map(host).unwrap_or_default();
    Ok(HostSnapshot {
        node: software(name, file.node.unwrap_or_default())?,
        host,
        adapters: file.adapters.into_iter().map(adapter).collect(),
        ..HostSnapshot::default()
    })
}

/// Adds what is probably wrong with the whole file.
fn advised(error: ReadError, name: &str, bytes: &[u8]) -> ReadError {
    let unknown = error.what.strip_prefix("unknown key `").and_then(|key| key.strip_suffix('`'));
    if error.path.is_empty()
        && unknown.is_some_and(|key| KEYS.iter().any(|known| known.eq_ignore_ascii_case(key)))
    {
        let what = format!("{}: this is a configuration, not an inventory", error.what);
        return ReadError { what, ..error }.with_hint("name it with --config");
    }
    let is_cut_off = text(name, bytes)
        .is_ok_and(|text| text.contains("recordedBy") && !text.contains("complete: true"));
    if is_cut_off && error.hint.is_none() {
        return error.with_hint(
            "the inventory may be cut off, because its last line `complete: true` is missing: record \
             the host again, or copy the whole file",
        );
    }
    error
}

/// Checks that no two adapters have one LUID, nor one instance id, which Windows compares
/// without case.
fn unique(name: &str, adapters: &[AdapterFile]) -> Result<(), ReadError> {
    let mut luids = HashMap::new();
    let mut ids = HashMap::new();
    for (n, adapter) in adapters.iter().enumerate() {
        let luid = &adapter.luid;
        let place = Place::of(name, luid, format!("adapters[{n}].luid"));
        once(&mut luids, luid.value, &place, || format!("LUID {}", luid.value))?;
        if let Some(id) = adapter.pnp.as_ref().map(|pnp| &pnp.id) {
            let NonEmpty(text) = &id.value;
            let place = Place::of(name, id, format!("adapters[{n}].pnp.id"));
            let folded: String = text.chars().flat_map(char::to_uppercase).collect();
            once(&mut ids, folded, &place, || format!("PnP instance id {text:?}"))?;
        }
    }
    Ok(())
}

fn once<K: Eq + Hash>(
    seen: &mut HashMap<K, u32>,
    key: K,
    place: &Place,
    what: impl Fn() -> String,
) -> Result<(), ReadError> {
    match seen.insert(key, place.line()) {
        Some(line) => Err(place
            .error(format!("duplicate {}", what()))
            .with_hint(format!("the adapter at line {line} already has it"))),
        None => Ok(()),
    }
}

fn host(file: HostFile) -> HostFacts {
    let schemas = file.hcs_schemas.map(|list| list.0).unwrap_or_default();
    let has_wow64 = file.wow64.unwrap_or(true);
    HostFacts {
        platform: file.platform.map(|platform| platform.0.0).unwrap_or_default(),
        product: file.product,
        display_version: file.display_version,
        build: file.build.map(|build| build.0),
        hcs_schemas: schemas.into_iter().map(|schema| schema.0).collect(),
        wow64: if has_wow64 { Wow64::Present } else { Wow64::Absent },
        inside_container: file.container.unwrap_or(false),
        system_root: file.system_root.map(|root| root.0).unwrap_or_default(),
        is_this_machine: false,
        launcher_folder: None,
    }
}

fn adapter(file: AdapterFile) -> Adapter {
    Adapter {
        luid: Luid(file.luid.value),
        attributes: file.attributes.0.into_iter().map(|attribute| attribute.0.0).collect(),
        hardware: file.hardware,
        integrated: file.integrated,
        detachable: file.detachable,
        hardware_id: hardware_id(&file.hardware_id),
        driver_description: file.driver_description,
        driver_version: file.driver_version.map(|version| version.0),
        dedicated_memory_mib: file.dedicated_memory_mib,
        pnp: file.pnp.map(pnp),
        driver_store: file.driver_store.map(driver_store),
    }
}

fn hardware_id(file: &HardwareIdFile) -> HardwareId {
    let HardwareIdFile { vendor, device, subsystem, revision } = *file;
    HardwareId { vendor, device, subsystem, revision }
}

fn pnp(file: PnpFile) -> PnpDevice {
    let paths = file.location_paths.0.into_iter();
    PnpDevice {
        id: PnpId::new(file.id.value.0),
        description: file.description,
        manufacturer: file.manufacturer,
        driver_key: file.driver_key.map(|key| DriverKey::new(key.0)),
        driver_date: file.driver_date.map(|date| date.0),
        location_paths: paths.map(|path| LocationPath::new(path.0)).collect(),
        numa_node: file.numa_node,
        problem_code: file.problem_code,
    }
}

fn driver_store(file: DriverStoreFile) -> DriverStore {
    let keys = file.copy_to_vm.0.into_iter();
    DriverStore {
        path: file.path.0,
        files: match file.files {
            Some(files) => StoreFiles::Listed(files.into_iter().collect()),
            None => StoreFiles::EveryNamed,
        },
        copy_to_vm: keys
            .map(|(key, values)| {
                (key, values.0.into_iter().map(|(name, value)| (name, copy_to_vm(value))).collect())
            })
            .collect(),
    }
}

fn copy_to_vm(value: TextOr<FlowSeq<Vec<String>>>) -> CopyToVmValue {
    match value {
        TextOr::Text(text) => CopyToVmValue::Single(text),
        TextOr::Several(FlowSeq(texts)) => CopyToVmValue::Multi(texts),
    }
}

/// The software of a node in the section `node` of the inventory `name`. Some keys exclude each other,
/// so after serde this checks which of them a program has.
fn software(name: &str, file: NodeFile) -> Result<NodeSoftware, ReadError> {
    Ok(NodeSoftware {
        hcs_failure: file
            .hcs_error
            .map(|error| HcsFailure { kind: error.kind.0.0, message: error.message }),
        containerd: file.containerd.map(|file| containerd(name, file)).transpose()?,
        kubelet: file.kubelet.map(|file| kubelet(name, file)).transpose()?,
        nvml: file.nvml.map(|file| nvml(name, file)).transpose()?,
    })
}

fn containerd(name: &str, file: Spanned<ProgramFile>) -> Result<Containerd, ReadError> {
    let place = Place::of(name, &file, "node.containerd");
    let mut file = file.value;
    let disabled_plugins = file.disabled_plugins.take().map(|plugins| plugins.0);
    match program(file, &place)? {
        Program::NotFound(_) if disabled_plugins.is_some() => {
            Err(place.error("`disabledPlugins` requires `path`"))
        }
        program => Ok(Containerd { program, disabled_plugins }),
    }
}

fn kubelet(name: &str, file: Spanned<ProgramFile>) -> Result<Program, ReadError> {
    let place = Place::of(name, &file, "node.kubelet");
    match file.value.disabled_plugins {
        Some(_) => Err(place.error("unknown key `disabledPlugins`, which only containerd has")),
        None => program(file.value, &place),
    }
}

fn program(file: ProgramFile, place: &Place) -> Result<Program, ReadError> {
    let version = file.version.map(|version| version.0);
    let has_version = version.is_some() || file.version_error.is_some();
    match either(place, ("path", file.path), ("notFoundIn", file.not_found_in))? {
        Ok(path) => Ok(Program::Found {
            path: path.0,
            version: either(place, ("version", version), ("versionError", file.version_error))?,
        }),
        Err(_) if has_version => Err(place.error("the version of a program requires `path`")),
        Err(places) => Ok(Program::NotFound(places)),
    }
}

fn nvml(name: &str, file: Spanned<NvmlFile>) -> Result<Nvml, ReadError> {
    let place = Place::of(name, &file, "node.nvml");
    let NvmlFile { library, gpus, gpus_error } = file.value;
    let gpus = gpus.map(|gpus| gpus.into_iter().map(gpu).collect());
    Ok(Nvml {
        library: library.map(|path| path.0),
        gpus: either(&place, ("gpus", gpus), ("gpusError", gpus_error))?,
    })
}

fn gpu(file: NvidiaGpuFile) -> NvidiaGpu {
    let NvidiaGpuFile { index, name, driver_version, driver_model } = file;
    NvidiaGpu { index, name, driver_version, driver_model }
}

/// The value of the first key or of the second one. Exactly one of them must have a value.
fn either<T, E>(
    place: &Place,
    (key, value): (&str, Option<T>),
    (other_key, other): (&str, Option<E>),
) -> Result<Result<T, E>, ReadError> {
    match (value, other) {
        (Some(value), None) => Ok(Ok(value)),
        (None, Some(other)) => Ok(Err(other)),
        _ => Err(place.error(format!("expected either `{key}` or `{other_key}`"))),
    }
}
