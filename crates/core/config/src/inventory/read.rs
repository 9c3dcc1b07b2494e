//! Reads an inventory file into a snapshot.

use std::path::Path;

use devices::HostSnapshot;

use crate::inventory::InventoryError;
use crate::inventory::format::InventoryFile;
use crate::settings::KEYS;
use crate::text::text;
use crate::{ReadError, document};

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
