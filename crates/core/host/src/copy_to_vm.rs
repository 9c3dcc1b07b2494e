//! The registry's `CopyToVm*` keys and values as read, before they are checked.

use std::fmt;
use std::str::FromStr;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use strum::{Display, EnumString, VariantArray};

use crate::ParseError;
use crate::text::file_values::{on_one_line, printed_value};

/// One of the four `CopyToVm*` key names, in the order in which their files take destinations.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Display, EnumString, VariantArray)]
#[strum(ascii_case_insensitive)]
pub enum CopyToVmKind {
    /// Files for System32.
    #[strum(serialize = "CopyToVmOverwrite")]
    Overwrite,
    /// Files for System32.
    #[strum(serialize = "CopyToVmWhenNewer")]
    WhenNewer,
    /// Files for `SysWOW64`.
    #[strum(serialize = "CopyToVmOverwriteWow64")]
    OverwriteWow64,
    /// Files for `SysWOW64`.
    #[strum(serialize = "CopyToVmWhenNewerWow64")]
    WhenNewerWow64,
}

impl CopyToVmKind {
    /// All four.
    pub const ALL: &'static [CopyToVmKind] = CopyToVmKind::VARIANTS;
}

/// A `CopyToVm*` key: one of the four names, in the driver key itself or in a
/// subkey named for the kernel driver (`softgpukmd\CopyToVmOverwrite`).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct CopyToVmKey {
    /// The name; the first field, so that keys sort in the order in which their files take
    /// destinations.
    pub kind: CopyToVmKind,
    /// The kernel driver's subkey, if there is one; `None` sorts first.
    pub subkey: Option<String>,
}

printed_value!(CopyToVmKey);

impl fmt::Display for CopyToVmKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.subkey {
            Some(subkey) => write!(f, "{subkey}\\{}", self.kind),
            None => self.kind.fmt(f),
        }
    }
}

impl FromStr for CopyToVmKey {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (subkey, name) = match text.rsplit_once('\\') {
            Some((subkey, name)) => (Some(subkey), name),
            None => (None, text),
        };
        if subkey.is_some_and(|s| s.is_empty() || s.contains('\\')) {
            return Err(not_a_key(text));
        }
        let kind = name.parse().map_err(|_| not_a_key(text))?;
        Ok(CopyToVmKey { kind, subkey: subkey.map(str::to_owned) })
    }
}

fn not_a_key(text: &str) -> ParseError {
    let expected = "a CopyToVm key (CopyToVmOverwrite, CopyToVmWhenNewer, CopyToVmOverwriteWow64 or \
     CopyToVmWhenNewerWow64, with at most one subkey before it)";
    ParseError::new(text, expected)
}

/// The data of one value below a `CopyToVm*` key, as stored in the registry.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(untagged)]
pub enum CopyToVmValue {
    /// `REG_MULTI_SZ`: source and optional destination.
    Multi(#[serde(serialize_with = "on_one_line")] Vec<String>),
    /// `REG_SZ`: source.
    Single(String),
}

impl<'de> Deserialize<'de> for CopyToVmValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CopyToVmValueVisitor)
    }
}

/// serde's derived code for `untagged` reads a value before it knows the type. A number in a list
/// would then not count as text, and an error would not name the place in the list.
struct CopyToVmValueVisitor;

impl<'de> Visitor<'de> for CopyToVmValueVisitor {
    type Value = CopyToVmValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text or several texts")
    }

    fn visit_str<E>(self, text: &str) -> Result<CopyToVmValue, E> {
        Ok(CopyToVmValue::Single(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<CopyToVmValue, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(list)).map(CopyToVmValue::Multi)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_sort_overwrite_first_and_the_driver_key_before_its_subkeys() {
        let mut keys: Vec<CopyToVmKey> = [
            "CopyToVmWhenNewer",
            r"softgpukmd\CopyToVmOverwrite",
            "CopyToVmOverwriteWow64",
            "CopyToVmOverwrite",
        ]
        .map(|k| k.parse().unwrap())
        .into();
        keys.sort();
        let names: Vec<String> = keys.iter().map(ToString::to_string).collect();
        assert_eq!(
            names,
            [
                "CopyToVmOverwrite",
                r"softgpukmd\CopyToVmOverwrite",
                "CopyToVmWhenNewer",
                "CopyToVmOverwriteWow64"
            ]
        );
    }

    #[test]
    fn other_key_names_are_rejected() {
        for bad in ["CopyToVm", r"a\b\CopyToVmOverwrite", r"\CopyToVmOverwrite", ""] {
            assert!(bad.parse::<CopyToVmKey>().is_err(), "{bad}");
        }
    }
}
