//! A device property as the `PnP` manager hands it out, read as a Rust value.

use crate::text;

const UINT32: u32 = 0x07;
const INT64: u32 = 0x08;
const UINT64: u32 = 0x09;
const STRING: u32 = 0x12;
const STRING_LIST: u32 = 0x2012;

/// A property's type (`DEVPROP_TYPE_*`, devpropdef.h) and data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Property {
    /// `DEVPROP_TYPE_*`.
    pub(crate) kind: u32,
    /// The data, as long as the type and the driver made it.
    pub(crate) data: Vec<u8>,
}

/// A property holds something other than its definition says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("it has type 0x{kind:X} and {length} bytes instead of {wanted}")]
pub(crate) struct PropertyError {
    wanted: &'static str,
    kind: u32,
    length: usize,
}

impl Property {
    /// A text for display or comparison.
    pub(crate) fn text(&self) -> Result<String, PropertyError> {
        match self.kind {
            STRING => Ok(text::single_for_display(&self.data)),
            _ => Err(self.instead_of("a text")),
        }
    }

    /// A list of texts.
    pub(crate) fn texts(&self) -> Result<Vec<String>, PropertyError> {
        match self.kind {
            STRING_LIST => text::list(&self.data).map_err(|_| self.instead_of("a list of texts")),
            _ => Err(self.instead_of("a list of texts")),
        }
    }

    /// A 32-bit number.
    pub(crate) fn number(&self) -> Result<u32, PropertyError> {
        match (self.kind, <[u8; 4]>::try_from(self.data.as_slice())) {
            (UINT32, Ok(bytes)) => Ok(u32::from_le_bytes(bytes)),
            _ => Err(self.instead_of("a 32-bit number")),
        }
    }

    /// A LUID: 64 bits, which the header calls unsigned and `DXCore` signed.
    pub(crate) fn luid(&self) -> Result<devices::Luid, PropertyError> {
        match (self.kind, <[u8; 8]>::try_from(self.data.as_slice())) {
            (UINT64 | INT64, Ok(bytes)) => Ok(devices::Luid(i64::from_le_bytes(bytes))),
            _ => Err(self.instead_of("a LUID")),
        }
    }

    fn instead_of(&self, wanted: &'static str) -> PropertyError {
        PropertyError { wanted, kind: self.kind, length: self.data.len() }
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
    fn another_type_or_length_is_told_with_both() {
        let error = property(UINT64, &[0; 7]).luid().unwrap_err();
        assert_eq!(error.to_string(), "it has type 0x9 and 7 bytes instead of a LUID");
        assert!(property(UINT64, &[0; 4]).number().is_err());
        assert!(property(STRING_LIST, &[]).text().is_err());
        assert!(property(STRING, &[]).texts().is_err());
        assert!(property(STRING_LIST, &[b'a', 0, b'b']).texts().is_err());
    }
}
