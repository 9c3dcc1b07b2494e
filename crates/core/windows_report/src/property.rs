//! Properties of adapters and devices: the `PnP` manager's values as Rust values, and which
//! properties may be missing.
//!
//! Required are only the properties that decide what a container gets: the LUID, the attributes, the
//! instance ID, the location paths, the problem code and the driver key. Everything else is
//! [`optional`].

use std::fmt::Display;

use crate::text;

const UINT32: u32 = 0x07;
const INT64: u32 = 0x08;
const UINT64: u32 = 0x09;
const STRING: u32 = 0x12;
const STRING_LIST: u32 = 0x2012;

/// `DEVPROP_TYPE_STRING_INDIRECT` (devpropdef.h): a text with the place of its translation, which
/// Windows could not find: `@oem7.inf,%name%;NVIDIA T4`.
const STRING_INDIRECT: u32 = 0x19;

/// `DEVPROP_TYPE_FILETIME` (devpropdef.h).
const FILETIME: u32 = 0x10;

/// The type (`DEVPROP_TYPE_*`, devpropdef.h) and data of a property.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Property {
    /// `DEVPROP_TYPE_*`.
    pub kind: u32,
    /// The data; its length depends on the type and the driver.
    pub data: Vec<u8>,
}

/// A property has another type or length than its definition.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("expected {expected}, found type 0x{kind:X} with {length} bytes")]
pub struct PropertyError {
    expected: &'static str,
    kind: u32,
    length: usize,
}

impl Property {
    /// The text, for display or comparison.
    pub fn text(&self) -> Result<String, PropertyError> {
        match self.kind {
            STRING => Ok(text::single_for_display(&self.data)),
            STRING_INDIRECT => {
                let text = text::single_for_display(&self.data);
                Ok(text.rsplit(';').next().unwrap_or_default().to_owned())
            }
            _ => Err(self.mismatch("a text")),
        }
    }

    pub fn texts(&self) -> Result<Vec<String>, PropertyError> {
        match self.kind {
            STRING_LIST => text::list(&self.data).map_err(|_| self.mismatch("a list of texts")),
            _ => Err(self.mismatch("a list of texts")),
        }
    }

    pub fn number(&self) -> Result<u32, PropertyError> {
        match (self.kind, <[u8; 4]>::try_from(self.data.as_slice())) {
            (UINT32, Ok(bytes)) => Ok(u32::from_le_bytes(bytes)),
            _ => Err(self.mismatch("a 32-bit number")),
        }
    }

    /// The LUID. Its 64 bits are unsigned in the header and signed in `DXCore`.
    pub fn luid(&self) -> Result<host::Luid, PropertyError> {
        match (self.kind, <[u8; 8]>::try_from(self.data.as_slice())) {
            (UINT64 | INT64, Ok(bytes)) => Ok(host::Luid(i64::from_le_bytes(bytes))),
            _ => Err(self.mismatch("a LUID")),
        }
    }

    /// The date in a `FILETIME`: 100 ns units since 1601-01-01, UTC.
    pub fn date(&self) -> Result<host::DriverDate, PropertyError> {
        let bytes = <[u8; 8]>::try_from(self.data.as_slice());
        let bytes = bytes.ok().filter(|_| self.kind == FILETIME);
        let units = bytes.map(u64::from_le_bytes).ok_or_else(|| self.mismatch("a date"))?;
        Ok(host::DriverDate::from_filetime(units))
    }

    fn mismatch(&self, expected: &'static str) -> PropertyError {
        PropertyError { expected, kind: self.kind, length: self.data.len() }
    }
}

/// The value of a property without which a device can be advertised. If it cannot be read, it counts
/// as missing, and `notes` say so.
pub fn optional<T, E: Display>(
    what: &str,
    read: Result<Option<T>, E>,
    notes: &mut Vec<String>,
) -> Option<T> {
    read.unwrap_or_else(|error| {
        notes.push(format!("cannot read {what}: {error}"));
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn property(kind: u32, data: &[u8]) -> Property {
        Property { kind, data: data.to_vec() }
    }

    #[test]
    fn numbers_are_little_endian_and_keep_their_sign() {
        assert_eq!(property(UINT32, &[1, 2, 0, 0]).number().unwrap(), 0x201);
        let minus_two = (-2_i64).to_le_bytes();
        assert_eq!(property(UINT64, &minus_two).luid().unwrap(), host::Luid(-2));
        assert_eq!(property(INT64, &minus_two).luid().unwrap(), host::Luid(-2));
    }

    #[test]
    fn texts_are_utf16() {
        assert_eq!(property(STRING, b"N\0V\0\0\0").text().unwrap(), "NV");
        assert_eq!(property(STRING_LIST, b"a\0\0\0b\0\0\0\0\0").texts().unwrap(), ["a", "b"]);
    }

    /// The last part is the text of the INF file, in its language.
    #[test]
    fn a_text_without_its_translation_is_that_of_the_inf_file() {
        for (stored, read) in [
            ("@oem7.inf,%nvidia_dev.1eb8%;NVIDIA T4", "NVIDIA T4"),
            ("@a;b.inf,%x%;T4", "T4"),
            ("@oem7.inf,%x%;", ""),
            ("T4", "T4"),
        ] {
            let stored = stored.encode_utf16().chain([0]).flat_map(u16::to_le_bytes);
            let stored: Vec<u8> = stored.collect();
            assert_eq!(property(STRING_INDIRECT, &stored).text().unwrap(), read);
        }
        assert!(property(STRING_INDIRECT, &[]).texts().is_err());
    }

    #[test]
    fn what_is_optional_and_cannot_be_read_is_missing_with_a_note() {
        let mut notes = Vec::new();
        assert_eq!(optional::<_, PropertyError>("a", Ok(Some(7)), &mut notes), Some(7));
        assert_eq!(optional::<u32, PropertyError>("b", Ok(None), &mut notes), None);
        assert!(notes.is_empty());
        let wrong = property(STRING, &[]).number().map(Some);
        assert_eq!(optional("Numa_Node", wrong, &mut notes), None);
        let note = "cannot read Numa_Node: expected a 32-bit number, found type 0x12 with 0 bytes";
        assert_eq!(notes, [note]);
    }

    #[test]
    fn only_a_filetime_is_a_date() {
        let bytes = (134_774 * 864_000_000_000_u64).to_le_bytes();
        assert_eq!(property(FILETIME, &bytes).date().unwrap().to_string(), "1970-01-01");
        assert!(property(9, &bytes).date().is_err());
        assert!(property(FILETIME, &bytes[..7]).date().is_err());
    }

    #[test]
    fn the_error_contains_type_and_length() {
        let error = property(UINT64, &[0; 7]).luid().unwrap_err();
        assert_eq!(error.to_string(), "expected a LUID, found type 0x9 with 7 bytes");
        assert!(property(UINT64, &[0; 4]).number().is_err());
        assert!(property(STRING_LIST, &[]).text().is_err());
        assert!(property(STRING, &[]).texts().is_err());
        assert!(property(STRING_LIST, &[b'a', 0, b'b']).texts().is_err());
    }
}
