//! Parses the values of a `CopyToVm*` key.
//!
//! Values that contain text are kept exactly as they are, with any number of strings. Whether
//! they name usable files is decided later, by `devices`. For every other value there is a
//! warning: an invalid value does not affect the others.

use std::collections::BTreeMap;

use host::{CopyToVmKey, CopyToVmValue};

use crate::text;

const REG_SZ: u32 = 1;
const REG_MULTI_SZ: u32 = 7;

/// An unparsed registry value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RawValue {
    /// The name; empty for the default value of the key.
    pub name: String,
    /// `REG_*`.
    pub kind: u32,
    /// The data; length and content can be arbitrary.
    pub data: Vec<u8>,
}

/// The valid values of a key by name. Each other value adds a warning to `warnings`.
pub fn values(
    key: &CopyToVmKey,
    raw: Vec<RawValue>,
    warnings: &mut Vec<String>,
) -> BTreeMap<String, CopyToVmValue> {
    let mut values = BTreeMap::new();
    for RawValue { name, kind, data } in raw {
        match parse(kind, &data) {
            Ok(value) => {
                values.insert(name, value);
            }
            Err(reason) => warnings.push(format!("skipped value `{name}` of {key}: {reason}")),
        }
    }
    values
}

fn parse(kind: u32, data: &[u8]) -> Result<CopyToVmValue, String> {
    let value = match kind {
        REG_SZ => text::single(data).map(CopyToVmValue::Single),
        REG_MULTI_SZ => text::list(data).map(CopyToVmValue::Multi),
        other => {
            return Err(format!("expected REG_SZ or REG_MULTI_SZ, found registry type {other}"));
        }
    };
    value.map_err(|error| error.to_string())
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
    fn an_invalid_value_is_a_warning_and_the_others_are_kept() {
        let key: CopyToVmKey = r"softgpukmd\CopyToVmOverwrite".parse().unwrap();
        let mut warnings = Vec::new();
        let values = values(
            &key,
            vec![
                raw("01", REG_MULTI_SZ, &utf16("a64.dll\0a.dll\0\0")),
                raw("02", 4, &[1, 0, 0, 0]),
                raw("03", REG_SZ, &utf16("b.dll\0")),
                raw("04", REG_MULTI_SZ, &[0x61, 0, 0]),
                raw("05", REG_SZ, &[0, 0xD8]),
            ],
            &mut warnings,
        );
        let multi = CopyToVmValue::Multi(vec!["a64.dll".to_owned(), "a.dll".to_owned()]);
        let single = CopyToVmValue::Single("b.dll".to_owned());
        assert_eq!(values, [("01".to_owned(), multi), ("03".to_owned(), single)].into());
        assert_eq!(
            warnings,
            [
                r"skipped value `02` of softgpukmd\CopyToVmOverwrite: expected REG_SZ or REG_MULTI_SZ, found registry type 4",
                r"skipped value `04` of softgpukmd\CopyToVmOverwrite: invalid UTF-16",
                r"skipped value `05` of softgpukmd\CopyToVmOverwrite: invalid UTF-16",
            ]
        );
    }

    #[test]
    fn a_list_keeps_any_number_of_strings() {
        let texts = |texts: &[&str]| {
            Ok(CopyToVmValue::Multi(texts.iter().map(ToString::to_string).collect()))
        };
        for none in ["", "\0", "\0\0"] {
            assert_eq!(parse(REG_MULTI_SZ, &utf16(none)), texts(&[]));
        }
        assert_eq!(parse(REG_MULTI_SZ, &utf16("a\0\0")), texts(&["a"]));
        assert_eq!(parse(REG_MULTI_SZ, &utf16("a\0b\0c\0d\0\0")), texts(&["a", "b", "c", "d"]));
        let unusable = r"..\x";
        assert_eq!(parse(REG_MULTI_SZ, &utf16(unusable)), texts(&[unusable]));
    }

    #[test]
    fn a_value_can_be_longer_than_any_path() {
        let long = "sub\\".repeat(700) + "a.dll";
        let data = utf16(&format!("{long}\0a.dll\0\0"));
        let expected = CopyToVmValue::Multi(vec![long, "a.dll".to_owned()]);
        assert_eq!(parse(REG_MULTI_SZ, &data), Ok(expected));
    }
}
