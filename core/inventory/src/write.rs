//! A snapshot into the text of an inventory, laid out for people to read.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use devices::{
    Adapter, AdapterKind, Attachment, Attribute, CopyToVmKey, CopyToVmValue, DriverStore,
    HardwareId, HostFacts, HostSnapshot, Luid, Placement, PnpDevice, StoreFiles,
};

use crate::SCHEMA;
use crate::scalar::{key, scalar};

/// Why a snapshot cannot be written.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WriteError {
    /// The files of a live host are known to its disk alone
    /// ([`StoreFiles::OnDisk`]): whoever records it lists them first.
    #[error("the driver store files of adapter {0} are not listed")]
    FilesNotListed(Luid),
}

/// Writes an inventory that reads back to the same host facts and adapters.
///
/// What the format cannot hold is told in comments: the snapshot's warnings, and
/// registry values that are `REG_MULTI_SZ` of no or more than two strings, which
/// name no file anyway.
pub fn to_yaml(snapshot: &HostSnapshot) -> Result<String, WriteError> {
    let mut out = String::new();
    for warning in &snapshot.warnings {
        let about = format!("{:?}", warning.text);
        append(&mut out, format_args!("# adapter {}: {about}\n", warning.luid));
    }
    append(&mut out, format_args!("schema: {SCHEMA}\n"));
    host(&mut out, &snapshot.host);
    if snapshot.adapters.is_empty() {
        out.push_str("adapters: []\n");
    } else {
        out.push_str("adapters:\n");
    }
    for one in &snapshot.adapters {
        adapter(&mut out, one)?;
    }
    Ok(out)
}

fn host(out: &mut String, host: &HostFacts) {
    let mut facts = Vec::new();
    facts.extend(host.product.as_ref().map(|text| format!("product: {}", scalar(text))));
    let version = host.display_version.as_ref();
    facts.extend(version.map(|text| format!("displayVersion: {}", scalar(text))));
    facts.extend(host.build.map(|build| format!("build: {build}")));
    if !host.hcs_schemas.is_empty() {
        facts.push(format!(
            "hcsSchemas: {}",
            flow(host.hcs_schemas.iter().map(ToString::to_string))
        ));
    }
    if !facts.is_empty() {
        out.push_str("host:\n");
    }
    for fact in facts {
        append(out, format_args!("  {fact}\n"));
    }
}

fn adapter(out: &mut String, adapter: &Adapter) -> Result<(), WriteError> {
    let attributes = adapter.attributes.iter().map(|a: Attribute| a.name().to_owned());
    append(out, format_args!("- luid: {}\n", adapter.luid));
    append(out, format_args!("  attributes: {}\n", flow(attributes)));
    append(out, format_args!("  hardware: {}\n", adapter.kind == AdapterKind::Hardware));
    append(out, format_args!("  integrated: {}\n", adapter.placement == Placement::Integrated));
    append(out, format_args!("  detachable: {}\n", adapter.attachment == Attachment::Detachable));
    append(out, format_args!("  hardwareId: {}\n", hardware_id(adapter.hardware_id)));
    append(out, format_args!("  driverDescription: {}\n", scalar(&adapter.driver_description)));
    if let Some(version) = adapter.driver_version {
        append(out, format_args!("  driverVersion: {version}\n"));
    }
    if let Some(memory) = adapter.dedicated_memory_mib {
        append(out, format_args!("  dedicatedMemoryMiB: {memory}\n"));
    }
    if let Some(device) = &adapter.pnp {
        pnp(out, device);
    }
    match &adapter.driver_store {
        Some(store) => driver_store(out, store, adapter.luid),
        None => Ok(()),
    }
}

fn hardware_id(id: HardwareId) -> String {
    let hex = |number: u32, digits: usize| match number {
        0 => "0".to_owned(),
        _ => format!("0x{number:0digits$X}"),
    };
    format!(
        "{{vendor: {}, device: {}, subsystem: {}, revision: {}}}",
        hex(id.vendor, 4),
        hex(id.device, 4),
        hex(id.subsystem, 8),
        hex(id.revision, 2)
    )
}

fn pnp(out: &mut String, device: &PnpDevice) {
    append(out, format_args!("  pnp:\n    id: {}\n", scalar(device.id.as_str())));
    append(out, format_args!("    description: {}\n", scalar(&device.description)));
    append(out, format_args!("    manufacturer: {}\n", scalar(&device.manufacturer)));
    if let Some(key) = &device.driver_key {
        append(out, format_args!("    driverKey: {}\n", scalar(key.as_str())));
    }
    let paths = flow(device.location_paths.iter().map(|path| path.as_str().to_owned()));
    append(out, format_args!("    locationPaths: {paths}\n"));
    if let Some(node) = device.numa_node {
        append(out, format_args!("    numaNode: {node}\n"));
    }
    append(out, format_args!("    problemCode: {}\n", device.problem_code));
}

fn driver_store(out: &mut String, store: &DriverStore, luid: Luid) -> Result<(), WriteError> {
    append(out, format_args!("  driverStore:\n    path: {}\n", scalar(&store.path)));
    match &store.files {
        StoreFiles::EveryNamed => {}
        StoreFiles::OnDisk => return Err(WriteError::FilesNotListed(luid)),
        StoreFiles::Listed(files) if files.is_empty() => out.push_str("    files: []\n"),
        StoreFiles::Listed(files) => {
            out.push_str("    files:\n");
            for file in files {
                append(out, format_args!("    - {}\n", scalar(file)));
            }
        }
    }
    if store.copy_to_vm.is_empty() {
        out.push_str("    copyToVm: {}\n");
    } else {
        out.push_str("    copyToVm:\n");
    }
    for (key, values) in &store.copy_to_vm {
        copy_to_vm(out, key, values);
    }
    Ok(())
}

fn copy_to_vm(out: &mut String, name: &CopyToVmKey, values: &BTreeMap<String, CopyToVmValue>) {
    append(out, format_args!("      {}", key(&name.to_string(), "      ")));
    let kept = values.values().any(|value| writable(value).is_some());
    out.push_str(if kept { "\n" } else { " {}\n" });
    for (name, value) in values {
        match writable(value) {
            Some(value) => {
                append(out, format_args!("        {} {value}\n", key(name, "        ")));
            }
            None => append(out, format_args!("        # left out: {name:?} {value:?}\n")),
        }
    }
}

/// The value as the format writes it, where it can.
fn writable(value: &CopyToVmValue) -> Option<String> {
    match value {
        CopyToVmValue::Single(text) => Some(scalar(text)),
        CopyToVmValue::Multi(texts) if (1..=2).contains(&texts.len()) => {
            Some(flow(texts.iter().cloned()))
        }
        CopyToVmValue::Multi(_) => None,
    }
}

/// A list on one line.
fn flow(texts: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = texts.map(|text| scalar(&text)).collect();
    format!("[{}]", items.join(", "))
}

fn append(out: &mut String, text: fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a string takes all text");
}
