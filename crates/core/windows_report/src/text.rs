//! Parses UTF-16 text from the registry and from device properties.
//!
//! The bytes come from other programs and drivers. They can lack the final null character,
//! contain data after it, or have an odd length.

/// The bytes are not valid UTF-16.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("invalid UTF-16")]
pub struct TextError;

/// A text (`REG_SZ`): the data up to the first null character, or all data without one.
pub fn single(bytes: &[u8]) -> Result<String, TextError> {
    decode(until_null(&whole_units(bytes)?))
}

/// A list of texts (`REG_MULTI_SZ`): a null character ends each text, and an empty text ends
/// the list. Both can be missing at the end of the data.
pub fn list(bytes: &[u8]) -> Result<Vec<String>, TextError> {
    let units = whole_units(bytes)?;
    units.split(|unit| *unit == 0).take_while(|text| !text.is_empty()).map(decode).collect()
}

/// A text for display: like [`single`], but replaces invalid characters.
#[must_use]
pub fn single_for_display(bytes: &[u8]) -> String {
    String::from_utf16_lossy(until_null(&units(bytes)))
}

/// UTF-8 text for display (the driver description of `DXCore`), up to the first null character.
#[must_use]
pub fn utf8_for_display(bytes: &[u8]) -> String {
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

/// The units before the first null character, or all units.
#[must_use]
pub fn until_null(units: &[u16]) -> &[u16] {
    units.split(|unit| *unit == 0).next().unwrap_or_default()
}

fn whole_units(bytes: &[u8]) -> Result<Vec<u16>, TextError> {
    if bytes.len().is_multiple_of(2) { Ok(units(bytes)) } else { Err(TextError) }
}

fn units(bytes: &[u8]) -> Vec<u16> {
    bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect()
}

fn decode(units: &[u16]) -> Result<String, TextError> {
    String::from_utf16(units).map_err(|_| TextError)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    #[test]
    fn a_text_ends_at_its_null_character_or_with_the_data() {
        assert_eq!(single(&bytes("a.dll\0")), Ok("a.dll".to_owned()));
        assert_eq!(single(&bytes("a.dll")), Ok("a.dll".to_owned()));
        assert_eq!(single(&bytes("a.dll\0rest")), Ok("a.dll".to_owned()));
        assert_eq!(single(&bytes("")), Ok(String::new()));
        assert_eq!(
            single(&bytes("Grafik-Treiber für Übung\0")),
            Ok("Grafik-Treiber für Übung".into())
        );
    }

    #[test]
    fn a_list_ends_at_an_empty_text_or_with_the_data() {
        for data in ["a\0b\0\0", "a\0b\0", "a\0b", "a\0b\0\0rest\0"] {
            assert_eq!(list(&bytes(data)), Ok(vec!["a".to_owned(), "b".to_owned()]));
        }
        for empty in ["", "\0", "\0\0", "\0a\0\0"] {
            assert_eq!(list(&bytes(empty)), Ok(vec![]));
        }
    }

    #[test]
    fn invalid_text_is_an_error_or_displayed_with_replacements() {
        let odd = &bytes("ab")[..3];
        assert_eq!(single(odd), Err(TextError));
        assert_eq!(list(odd), Err(TextError));
        assert_eq!(single_for_display(odd), "a");
        let surrogate = 0xD800_u16.to_le_bytes();
        assert_eq!(single(&surrogate), Err(TextError));
        assert_eq!(list(&surrogate), Err(TextError));
        assert_eq!(single_for_display(&surrogate), "\u{FFFD}");
    }

    #[test]
    fn a_driver_description_ends_at_its_null_character() {
        assert_eq!(utf8_for_display(b"NVIDIA Tesla T4\0\0"), "NVIDIA Tesla T4");
        assert_eq!(utf8_for_display(b"\xFFx"), "\u{FFFD}x");
    }

    proptest! {
        #[test]
        fn stored_texts_are_parsed_unchanged(texts in proptest::collection::vec("[^\0]{1,2000}", 0..4)) {
            let mut stored: String = texts.iter().flat_map(|t| [t.as_str(), "\0"]).collect();
            stored.push('\0');
            prop_assert_eq!(list(&bytes(&stored)), Ok(texts));
        }

        #[test]
        fn valid_text_is_displayed_unchanged(data: Vec<u8>) {
            let displayed = single_for_display(&data);
            if let Ok(text) = single(&data) {
                prop_assert_eq!(text, displayed);
            } else {
                let is_replaced = displayed.contains(char::REPLACEMENT_CHARACTER);
                prop_assert!(is_replaced || !data.len().is_multiple_of(2));
            }
        }
    }
}
