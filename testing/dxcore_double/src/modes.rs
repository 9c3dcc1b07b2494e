//! How the simulated host differs from an up-to-date host without faults.

use std::collections::BTreeSet;

use devices::Luid;

/// How the host treats the attributes that older hosts do not know.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum NewerAttributes {
    /// The host knows them.
    #[default]
    Listed,
    /// Lists of them are empty.
    Empty,
    /// Requests for lists of them are rejected.
    Rejected,
}

/// The active modes.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Modes {
    pub(crate) newer_attributes: NewerAttributes,
    /// Adapters that are listed but are no longer valid.
    pub(crate) removed: BTreeSet<Luid>,
    /// Adapters whose properties cannot be read.
    pub(crate) failing: BTreeSet<Luid>,
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
            Some("refused") => NewerAttributes::Rejected,
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
            failing: luids("DXCORE_DOUBLE_FAILING")?,
            updating: luids("DXCORE_DOUBLE_UPDATING")?,
        })
    }
}
