//! Converts device properties of the `PnP` manager to Rust values.

use crate::text;

const UINT32: u32 = 0x07;
const INT64: u32 = 0x08;
const UINT64: u32 = 0x09;
const STRING: u32 = 0x12;
const STRING_LIST: u32 = 0x2012;

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
            _ => Err(self.mismatch("a text")),
        }
    }

    /// The list of texts.
    pub fn texts(&self) -> Result<Vec<String>, PropertyError> {
        match self.kind {
            STRING_LIST => text::list(&self.data).map_err(|_| self.mismatch("a list of texts")),
            _ => Err(self.mismatch("a list of texts")),
        }
    }

    /// The 32-bit number.
    pub fn number(&self) -> Result<u32, PropertyError> {
        match (self.kind, <[u8; 4]>::try_from(self.data.as_slice())) {
            (UINT32, Ok(bytes)) => Ok(u32::from_le_bytes(bytes)),
            _ => Err(self.mismatch("a 32-bit number")),
        }
    }

    /// The LUID. Its 64 bits are unsigned in the header and signed in `DXCore`.
    pub fn luid(&self) -> Result<devices::Luid, PropertyError> {
        match (self.kind, <[u8; 8]>::try_from(self.data.as_slice())) {
            (UINT64 | INT64, Ok(bytes)) => Ok(devices::Luid(i64::from_le_bytes(bytes))),
            _ => Err(self.mismatch("a LUID")),
        }
    }

    /// The date in a `FILETIME`: 100 ns units since 1601-01-01, UTC.
    pub fn date(&self) -> Result<devices::DriverDate, PropertyError> {
        let bytes = <[u8; 8]>::try_from(self.data.as_slice());
        let bytes = bytes.ok().filter(|_| self.kind == FILETIME);
        let units = bytes.map(u64::from_le_bytes).ok_or_else(|| self.mismatch("a date"))?;
        Ok(devices::DriverDate::from_filetime(units))
    }

    fn mismatch(&self, expected: &'static str) -> PropertyError {
        PropertyError { expected, kind: self.kind, length: self.data.len() }
    }
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
        assert_eq!(property(UINT64, &minus_two).luid().unwrap(), devices::Luid(-2));
        assert_eq!(property(INT64, &minus_two).luid().unwrap(), devices::Luid(-2));
    }

    #[test]
    fn texts_are_utf16() {
        assert_eq!(property(STRING, b"N\0V\0\0\0").text().unwrap(), "NV");
        assert_eq!(property(STRING_LIST, b"a\0\0\0b\0\0\0\0\0").texts().unwrap(), ["a", "b"]);
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
