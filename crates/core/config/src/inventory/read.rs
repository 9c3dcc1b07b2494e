//! Reads an inventory file into a snapshot.

use std::path::Path;

use host::{Adapter, ConstantLoad, DriverStore, HardwareId, HostFacts, HostSnapshot, PnpDevice};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::advice::misplaced_key;
use crate::inventory::InventoryError;
use crate::inventory::format::{InventoryFile, SCHEMA};
use crate::keys::keys_of;
use crate::settings::SetValues;
use crate::text::text;
use crate::values::Entries;
use crate::{ReadError, document, kubernetes_object, numbers};

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
    file.validate(name)?;
    Ok(HostSnapshot {
        host: file.host.unwrap_or_default(),
        node: file.node.unwrap_or_default(),
        adapters: file.adapters.into_iter().map(|adapter| adapter.value).collect(),
        devices_without_adapter: file
            .devices_without_adapter
            .unwrap_or_default()
            .into_iter()
            .map(|device| device.value)
            .collect(),
        ..HostSnapshot::default()
    })
}

/// Adds what is probably wrong with the whole file.
fn advised(error: ReadError, name: &str, bytes: &[u8]) -> ReadError {
    if let Some(error) = kubernetes_object::recognize(&error, name, bytes, "inventory") {
        return error;
    }
    let is_of_configuration =
        |key| keys_of::<SetValues>().iter().any(|known| known.eq_ignore_ascii_case(key));
    if error.path.is_empty() && error.unknown_key().is_some_and(is_of_configuration) {
        let what = format!("{}: this is a configuration, not an inventory", error.what);
        return ReadError { what, ..error }.with_hint("name it with --config");
    }
    if error.path == "host.platform" {
        return error.with_hint(
            "only Windows hosts have devices; for Linux with /dev/dxg, docs/installation.md names other \
             device plugins",
        );
    }
    let error = all_missing_keys(&error, name, bytes).unwrap_or(error);
    let is_cut_off = text(name, bytes)
        .is_ok_and(|text| text.contains("recordedBy") && !text.contains("complete: true"));
    if is_cut_off && error.hint.is_none() {
        return error.with_hint(
            "the inventory may be cut off, because its last line `complete: true` is missing: record \
             the host again, or copy the whole file",
        );
    }
    with_example(error)
}

/// The keys that an adapter must have, each with a value.
const NEEDED: [(&str, &str); 4] = [
    ("luid", "luid: 1"),
    ("attributes", "attributes: [d3d11-graphics, d3d12-graphics, d3d12-core-compute]"),
    ("hardware", "hardware: true"),
    ("hardwareId", "hardwareId: {vendor: 0x10DE, device: 0x1EB8}"),
];

/// The adapters with only their keys.
#[derive(Deserialize)]
struct AdapterKeys {
    adapters: Vec<Entries<String, IgnoredAny>>,
}

/// The error about every key that an adapter lacks. serde reports only the first one.
fn all_missing_keys(error: &ReadError, name: &str, bytes: &[u8]) -> Option<ReadError> {
    let adapter = error.path.strip_prefix("adapters[")?.strip_suffix(']')?;
    if !error.what.starts_with("missing key ") {
        return None;
    }
    let file: AdapterKeys = document::parse(name, bytes).ok()?;
    let adapter = file.adapters.get(adapter.parse::<usize>().ok()?)?;
    let missing = NEEDED.iter().filter(|(key, _)| !adapter.0.contains_key(*key));
    let keys: Vec<String> = missing.map(|(key, _)| format!("`{key}`")).collect();
    let s = match keys.len() {
        0 => return None,
        1 => "",
        _ => "s",
    };
    Some(ReadError { what: format!("missing key{s} {}", keys.join(", ")), ..error.clone() })
}

/// The mappings of an inventory that describe a device.
fn sections() -> Vec<(String, &'static [&'static str])> {
    vec![
        ("at the top of the file".to_owned(), keys_of::<InventoryFile>()),
        ("in `host`".to_owned(), keys_of::<HostFacts>()),
        ("in an adapter".to_owned(), keys_of::<Adapter>()),
        ("in `hardwareId`".to_owned(), keys_of::<HardwareId>()),
        ("in `pnp`".to_owned(), keys_of::<PnpDevice>()),
        ("in `driverStore`".to_owned(), keys_of::<DriverStore>()),
        ("in `load`".to_owned(), keys_of::<ConstantLoad>()),
    ]
}

/// Adds where a key belongs, and what to write for missing keys and for numbers.
fn with_example(error: ReadError) -> ReadError {
    if let Some(hint) = misplaced_key(&error, &sections()) {
        return error.with_hint(hint);
    }
    if error.hint.is_some() {
        return error;
    }
    if let Some(hint) = numbers::hint(&error) {
        return error.with_hint(hint);
    }
    let Some(missing) = error.what.strip_prefix("missing key") else { return error };
    let examples: Vec<String> = NEEDED
        .iter()
        .map(|(key, example)| (*key, (*example).to_owned()))
        .chain([
            ("schema", format!("schema: {SCHEMA}")),
            ("vendor", "vendor: 0x10DE".to_owned()),
            ("device", "device: 0x1EB8".to_owned()),
            ("id", r"id: 'PCI\VEN_10DE&DEV_1EB8\1'".to_owned()),
        ])
        .filter(|(key, _)| missing.contains(&format!("`{key}`")))
        .map(|(_, example)| format!("`{example}`"))
        .collect();
    if examples.is_empty() {
        return error;
    }
    let hint = format!(
        "write for example {}; docs/reference/inventory.md has a whole file",
        examples.join(", ")
    );
    error.with_hint(hint)
}
