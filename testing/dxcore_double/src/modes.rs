//! How the simulated host differs from an up-to-date host without faults.

use std::collections::BTreeSet;
use std::path::PathBuf;

use host::Luid;

use crate::property;

/// How the host treats the attributes that older hosts do not know.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum NewerAttributes {
    /// The host knows them.
    #[default]
    Listed,
    /// Lists of them are empty.
    Empty,
}

/// The active modes.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Modes {
    pub(crate) newer_attributes: NewerAttributes,
    /// Adapters that are listed but not valid any more.
    pub(crate) removed: BTreeSet<Luid>,
    /// Properties of adapters that cannot be read, by their numbers.
    pub(crate) failing: BTreeSet<(Luid, u32)>,
    /// A file with the names of attributes. While it exists, requests for lists of them fail.
    pub(crate) failing_lists: Option<PathBuf>,
    /// Adapters whose driver is being updated.
    pub(crate) updating: BTreeSet<Luid>,
}

impl Modes {
    /// Reads the modes with `variable`, which looks up an environment variable.
    pub(crate) fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Modes, String> {
        let newer = "DXCORE_DOUBLE_NEWER_ATTRIBUTES";
        let newer_attributes = match variable(newer).as_deref() {
            None | Some("listed") => NewerAttributes::Listed,
            Some("ignored") => NewerAttributes::Empty,
            Some(other) => return Err(format!("{newer}: unknown value `{other}`")),
        };
        let luids = |name: &str| {
            let text = variable(name).unwrap_or_default();
            let items = text.split(',').filter(|item| !item.is_empty());
            items
                .map(|item| {
                    item.parse().map(Luid).map_err(|_| format!("{name}: invalid LUID `{item}`"))
                })
                .collect::<Result<BTreeSet<Luid>, String>>()
        };
        Ok(Modes {
            newer_attributes,
            removed: luids("DXCORE_DOUBLE_GONE")?,
            failing: failing(&variable("DXCORE_DOUBLE_FAILING").unwrap_or_default())?,
            failing_lists: variable("DXCORE_DOUBLE_FAILING_LISTS").map(PathBuf::from),
            updating: luids("DXCORE_DOUBLE_UPDATING")?,
        })
    }
}

/// The properties in a text such as `7048070:DriverVersion,7098126:HardwareID`.
fn failing(text: &str) -> Result<BTreeSet<(Luid, u32)>, String> {
    let items = text.split(',').filter(|item| !item.is_empty());
    let parse = |item: &str| {
        let (luid, name) = item.split_once(':')?;
        Some((Luid(luid.parse().ok()?), property::number(name)?))
    };
    let parse = |item| {
        parse(item).ok_or_else(|| format!("DXCORE_DOUBLE_FAILING: invalid property `{item}`"))
    };
    items.map(parse).collect()
}
