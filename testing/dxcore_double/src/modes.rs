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

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Modes, String> {
        Modes::read(|name| variables.iter().find(|v| v.0 == name).map(|v| v.1.to_owned()))
    }

    #[test]
    fn without_variables_the_host_is_up_to_date_and_healthy() {
        assert_eq!(read(&[]), Ok(Modes::default()));
    }

    #[test]
    fn every_mode_is_read_from_its_variable() {
        let modes = read(&[
            ("DXCORE_DOUBLE_NEWER_ATTRIBUTES", "refused"),
            ("DXCORE_DOUBLE_GONE", "7,-8"),
            ("DXCORE_DOUBLE_FAILING", "9"),
            ("DXCORE_DOUBLE_UPDATING", "10"),
        ]);
        let expected = Modes {
            newer_attributes: NewerAttributes::Rejected,
            removed: [Luid(7), Luid(-8)].into(),
            failing: [Luid(9)].into(),
            updating: [Luid(10)].into(),
        };
        assert_eq!(modes, Ok(expected));
    }

    #[test]
    fn an_invalid_value_is_an_error_that_names_it() {
        let error = read(&[("DXCORE_DOUBLE_NEWER_ATTRIBUTES", "ignore")]).unwrap_err();
        assert!(error.contains("`ignore`"), "{error}");
        let error = read(&[("DXCORE_DOUBLE_GONE", "7, 8")]).unwrap_err();
        assert!(error.contains("` 8`"), "{error}");
    }
}
