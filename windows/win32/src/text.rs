//! UTF-16 text as the registry and device properties hold it.
//!
//! In come bytes of any length from outside; out go Rust strings. Writers are free
//! to leave the final null out, to write past it, and to store half a character.

/// The bytes are no text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum TextError {
    /// UTF-16 has two bytes a unit.
    #[error("its {0} bytes are half a character too many")]
    OddLength(usize),
    /// A surrogate stands alone.
    #[error("it is not UTF-16")]
    NotUtf16,
}

/// One text (`REG_SZ`): up to the first null, or all of it where there is none.
pub(crate) fn single(bytes: &[u8]) -> Result<String, TextError> {
    decode(until_null(&whole_units(bytes)?))
}

/// A list of texts (`REG_MULTI_SZ`): each ends at a null, the list at an empty text.
/// Either null may be missing at the end of the data.
pub(crate) fn list(bytes: &[u8]) -> Result<Vec<String>, TextError> {
    let units = whole_units(bytes)?;
    units.split(|unit| *unit == 0).take_while(|text| !text.is_empty()).map(decode).collect()
}

/// One text for display: as [`single`], with what is no text replaced.
pub(crate) fn single_for_display(bytes: &[u8]) -> String {
    String::from_utf16_lossy(until_null(&units(bytes)))
}

/// UTF-8 text for display (`DXCore`'s driver description), up to the first null.
pub(crate) fn utf8_for_display(bytes: &[u8]) -> String {
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

/// The units before the first null, or all of them.
pub(crate) fn until_null(units: &[u16]) -> &[u16] {
    units.split(|unit| *unit == 0).next().unwrap_or_default()
}

fn whole_units(bytes: &[u8]) -> Result<Vec<u16>, TextError> {
    if bytes.len().is_multiple_of(2) {
        Ok(units(bytes))
    } else {
        Err(TextError::OddLength(bytes.len()))
    }
}

fn units(bytes: &[u8]) -> Vec<u16> {
    bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect()
}

fn decode(units: &[u16]) -> Result<String, TextError> {
    String::from_utf16(units).map_err(|_| TextError::NotUtf16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    #[test]
    fn a_text_ends_at_its_null_or_with_the_data() {
        assert_eq!(single(&bytes("a.dll\0")), Ok("a.dll".to_owned()));
        assert_eq!(single(&bytes("a.dll")), Ok("a.dll".to_owned()));
        assert_eq!(single(&bytes("a.dll\0left over")), Ok("a.dll".to_owned()));
        assert_eq!(single(&bytes("")), Ok(String::new()));
        assert_eq!(
            single(&bytes("Grafik-Treiber für Übung\0")),
            Ok("Grafik-Treiber für Übung".into())
        );
    }

    #[test]
    fn a_list_ends_at_an_empty_text_or_with_the_data() {
        for complete_or_not in ["a\0b\0\0", "a\0b\0", "a\0b", "a\0b\0\0left over\0"] {
            assert_eq!(list(&bytes(complete_or_not)), Ok(vec!["a".to_owned(), "b".to_owned()]));
        }
        for empty in ["", "\0", "\0\0", "\0a\0\0"] {
            assert_eq!(list(&bytes(empty)), Ok(vec![]));
        }
    }

    #[test]
    fn half_characters_are_told_and_shown_replaced() {
        let odd = &bytes("ab")[..3];
        assert_eq!(single(odd), Err(TextError::OddLength(3)));
        assert_eq!(list(odd), Err(TextError::OddLength(3)));
        assert_eq!(single_for_display(odd), "a");
        let alone = 0xD800_u16.to_le_bytes();
        assert_eq!(single(&alone), Err(TextError::NotUtf16));
        assert_eq!(list(&alone), Err(TextError::NotUtf16));
        assert_eq!(single_for_display(&alone), "\u{FFFD}");
    }

    #[test]
    fn a_driver_description_ends_at_its_null() {
        assert_eq!(utf8_for_display(b"NVIDIA Tesla T4\0\0"), "NVIDIA Tesla T4");
        assert_eq!(utf8_for_display(b"\xFFx"), "\u{FFFD}x");
    }

    proptest! {
        #[test]
        fn texts_read_back(texts in proptest::collection::vec("[^\0]{1,2000}", 0..4)) {
            let mut stored: String = texts.iter().flat_map(|t| [t.as_str(), "\0"]).collect();
            stored.push('\0');
            prop_assert_eq!(list(&bytes(&stored)), Ok(texts));
        }

        #[test]
        fn any_bytes_of_whole_characters_show_as_they_read(data: Vec<u8>) {
            match single(&data) {
                Ok(text) => prop_assert_eq!(text, single_for_display(&data)),
                Err(TextError::OddLength(n)) => prop_assert_eq!(n % 2, 1),
                Err(TextError::NotUtf16) => {
                    let shown = single_for_display(&data);
                    prop_assert!(shown.contains(char::REPLACEMENT_CHARACTER));
                }
            }
        }
    }
}
