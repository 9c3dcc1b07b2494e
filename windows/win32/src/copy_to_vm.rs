//! The values of a `CopyToVm*` key, from registry data to what they hold.
//!
//! In come raw values; out go those that hold text, and a sentence for each that
//! does not: a bad value never hides its neighbours.

use std::collections::BTreeMap;

use devices::{CopyToVmKey, CopyToVmValue};

use crate::text::{self, TextError};

const REG_SZ: u32 = 1;
const REG_MULTI_SZ: u32 = 7;

/// A value as the registry holds it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct RawValue {
    /// The value's name; empty is the key's default value.
    pub(crate) name: String,
    /// `REG_*`.
    pub(crate) kind: u32,
    /// The data, of any length and content.
    pub(crate) data: Vec<u8>,
}

/// Why a value cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
enum ValueError {
    #[error("it has registry type {0}, neither REG_SZ nor REG_MULTI_SZ")]
    Type(u32),
    #[error(transparent)]
    Text(#[from] TextError),
}

/// A key's readable values by name. Each of the others adds a sentence to `unread`.
pub(crate) fn values(
    key: &CopyToVmKey,
    raw: Vec<RawValue>,
    unread: &mut Vec<String>,
) -> BTreeMap<String, CopyToVmValue> {
    let mut values = BTreeMap::new();
    for RawValue { name, kind, data } in raw {
        match value(kind, &data) {
            Ok(value) => {
                values.insert(name, value);
            }
            Err(reason) => unread.push(format!("value `{name}` of {key} is left out: {reason}")),
        }
    }
    values
}

fn value(kind: u32, data: &[u8]) -> Result<CopyToVmValue, ValueError> {
    match kind {
        REG_SZ => Ok(CopyToVmValue::Single(text::single(data)?)),
        REG_MULTI_SZ => Ok(CopyToVmValue::Multi(text::list(data)?)),
        other => Err(ValueError::Type(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(name: &str, kind: u32, data: &[u8]) -> RawValue {
        RawValue { name: name.to_owned(), kind, data: data.to_vec() }
    }

    fn utf16(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    #[test]
    fn a_bad_value_is_told_and_its_neighbours_stay() {
        let key: CopyToVmKey = r"softgpukmd\CopyToVmOverwrite".parse().unwrap();
        let mut unread = Vec::new();
        let values = values(
            &key,
            vec![
                raw("01", REG_MULTI_SZ, &utf16("a64.dll\0a.dll\0\0")),
                raw("02", 4, &[1, 0, 0, 0]),
                raw("03", REG_SZ, &utf16("b.dll\0")),
                raw("04", REG_MULTI_SZ, &[0x61, 0, 0]),
                raw("05", REG_SZ, &[0, 0xD8]),
            ],
            &mut unread,
        );
        let multi = CopyToVmValue::Multi(vec!["a64.dll".to_owned(), "a.dll".to_owned()]);
        let single = CopyToVmValue::Single("b.dll".to_owned());
        assert_eq!(values, [("01".to_owned(), multi), ("03".to_owned(), single)].into());
        assert_eq!(
            unread,
            [
                r"value `02` of softgpukmd\CopyToVmOverwrite is left out: it has registry type 4, neither REG_SZ nor REG_MULTI_SZ",
                r"value `04` of softgpukmd\CopyToVmOverwrite is left out: its 3 bytes are half a character too many",
                r"value `05` of softgpukmd\CopyToVmOverwrite is left out: it is not UTF-16",
            ]
        );
    }

    #[test]
    fn a_value_may_be_longer_than_any_path() {
        let long = "sub\\".repeat(700) + "a.dll";
        let data = utf16(&format!("{long}\0a.dll\0\0"));
        let expected = CopyToVmValue::Multi(vec![long, "a.dll".to_owned()]);
        assert_eq!(value(REG_MULTI_SZ, &data), Ok(expected));
    }
}
