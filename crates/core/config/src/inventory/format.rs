//! The keys of an inventory file around those of the types in `devices`, which read and write
//! themselves. The documentation of [`crate::inventory`] says what each key means.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::str::FromStr;

use host::{Adapter, ConstantLoad, HostFacts, NodeSoftware, PnpDevice};
use serde::{Deserialize, Serialize};
use serde_saphyr::Spanned;

use crate::values::Parsed;
use crate::{Place, ReadError};

/// The `schema` of every inventory this crate reads and writes.
pub const SCHEMA: &str = "directx-inventory/v1";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct InventoryFile {
    pub(crate) schema: Parsed<Version1>,
    #[serde(rename = "recordedBy", skip_serializing_if = "Option::is_none")]
    pub(crate) recorded_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) host: Option<HostFacts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<NodeSoftware>,
    #[serde(rename = "devicesWithoutAdapter", skip_serializing_if = "Option::is_none")]
    pub(crate) devices_without_adapter: Option<Vec<Spanned<PnpDevice>>>,
    pub(crate) adapters: Vec<Spanned<Adapter>>,
    /// The last key of a recording. Without it, a part of a recording would be an inventory with
    /// fewer devices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) complete: Option<bool>,
}

impl InventoryFile {
    /// Checks what no single value shows: that a recording is complete, that no two adapters have
    /// one LUID, that no two devices have one instance ID, and that a device without an adapter has
    /// a problem.
    pub(crate) fn validate(&self, name: &str) -> Result<(), ReadError> {
        if self.recorded_by.is_some() && self.complete != Some(true) {
            let what = "the inventory is cut off: its last line `complete: true` is missing";
            return Err(ReadError::of_file(name, what)
                .with_hint("record the host again, or copy the whole file"));
        }
        let mut luids = HashMap::new();
        let mut ids = HashMap::new();
        for (n, device) in self.devices_without_adapter.iter().flatten().enumerate() {
            let place = |key| Place::of(name, device, format!("devicesWithoutAdapter[{n}].{key}"));
            let what = || instance_id(&device.value);
            once(&mut ids, &device.value.id, &place("id"), what)?;
            if device.value.problem_code == 0 {
                let what = "the device has no problem, so Windows would list an adapter for it";
                let hint = "write its problem code, such as `problemCode: 43`";
                return Err(place("problemCode").error(what.to_owned()).with_hint(hint));
            }
        }
        for (n, adapter) in self.adapters.iter().enumerate() {
            let luid = adapter.value.luid;
            let place = Place::of(name, adapter, format!("adapters[{n}].luid"));
            once(&mut luids, luid, &place, || format!("LUID {luid}"))?;
            if let Some(pnp) = &adapter.value.pnp {
                let place = Place::of(name, adapter, format!("adapters[{n}].pnp.id"));
                once(&mut ids, &pnp.id, &place, || instance_id(pnp))?;
            }
            check_load(&adapter.value, |key| {
                Place::of(name, adapter, format!("adapters[{n}].load.{key}"))
            })?;
        }
        Ok(())
    }
}

fn check_load(adapter: &Adapter, place: impl Fn(&str) -> Place) -> Result<(), ReadError> {
    let Some(ConstantLoad { utilization_percent, used_memory_mib }) = adapter.load else {
        return Ok(());
    };
    if utilization_percent > 100 {
        let what = format!("expected a whole number from 0 to 100, found {utilization_percent}");
        return Err(place("utilizationPercent").error(what));
    }
    match adapter.dedicated_memory_mib {
        Some(memory) if used_memory_mib <= memory => Ok(()),
        None if used_memory_mib == 0 => Ok(()),
        memory => {
            let memory = memory.map_or_else(|| "unknown".to_owned(), |memory| memory.to_string());
            let what = format!("{used_memory_mib} is more than dedicatedMemoryMiB ({memory})");
            let hint = "set dedicatedMemoryMiB to the memory of the adapter, or use less of it";
            Err(place("usedMemoryMiB").error(what).with_hint(hint))
        }
    }
}

fn instance_id(device: &PnpDevice) -> String {
    format!("PnP instance id {:?}", device.id.as_str())
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
            .with_hint(format!("the entry at line {line} already has it"))),
        None => Ok(()),
    }
}

/// The value of `schema`.
pub(crate) struct Version1;

impl FromStr for Version1 {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == SCHEMA {
            return Ok(Version1);
        }
        Err(format!("unknown schema {text:?}; this program reads `{SCHEMA}`"))
    }
}

impl fmt::Display for Version1 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(SCHEMA)
    }
}
