//! How the host that is played departs from an up-to-date and healthy one.

use std::collections::BTreeSet;

use devices::Luid;

/// What becomes of the attributes that older hosts do not know.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum NewerAttributes {
    /// The host knows them.
    #[default]
    Listed,
    /// Lists of them are empty.
    Ignored,
    /// Lists of them are refused.
    Refused,
}

/// The departures that are in force.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Modes {
    pub(crate) newer_attributes: NewerAttributes,
    /// Adapters that are listed and then no longer valid.
    pub(crate) gone: BTreeSet<Luid>,
    /// Adapters whose properties cannot be read.
    pub(crate) failing: BTreeSet<Luid>,
    /// Adapters whose driver is being replaced.
    pub(crate) updating: BTreeSet<Luid>,
}

impl Modes {
    /// Reads the modes with `variable`, which looks up an environment variable.
    pub(crate) fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Modes, String> {
        let newer = "DXCORE_DOUBLE_NEWER_ATTRIBUTES";
        let newer_attributes = match variable(newer).as_deref() {
            None | Some("listed") => NewerAttributes::Listed,
            Some("ignored") => NewerAttributes::Ignored,
            Some("refused") => NewerAttributes::Refused,
            Some(other) => return Err(format!("{newer} is `{other}`")),
        };
        let luids = |name: &str| {
            let text = variable(name).unwrap_or_default();
            let words = text.split(',').filter(|word| !word.is_empty());
            words
                .map(|word| word.parse().map(Luid).map_err(|_| format!("{name} has `{word}`")))
                .collect::<Result<BTreeSet<Luid>, String>>()
        };
        Ok(Modes {
            newer_attributes,
            gone: luids("DXCORE_DOUBLE_GONE")?,
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
    fn nothing_set_is_a_healthy_new_host() {
        assert_eq!(read(&[]), Ok(Modes::default()));
    }

    #[test]
    fn every_mode_can_be_set() {
        let modes = read(&[
            ("DXCORE_DOUBLE_NEWER_ATTRIBUTES", "refused"),
            ("DXCORE_DOUBLE_GONE", "7,-8"),
            ("DXCORE_DOUBLE_FAILING", "9"),
            ("DXCORE_DOUBLE_UPDATING", "10"),
        ]);
        let expected = Modes {
            newer_attributes: NewerAttributes::Refused,
            gone: [Luid(7), Luid(-8)].into(),
            failing: [Luid(9)].into(),
            updating: [Luid(10)].into(),
        };
        assert_eq!(modes, Ok(expected));
    }

    #[test]
    fn a_misspelt_mode_is_refused_by_name() {
        let error = read(&[("DXCORE_DOUBLE_NEWER_ATTRIBUTES", "ignore")]).unwrap_err();
        assert!(error.contains("`ignore`"), "{error}");
        let error = read(&[("DXCORE_DOUBLE_GONE", "7, 8")]).unwrap_err();
        assert!(error.contains("` 8`"), "{error}");
    }
}
