//! A file's bytes, and those as text.
//!
//! UTF-8, with or without a byte order mark, and UTF-16 with one: that is what
//! `>` in Windows PowerShell 5.1 and older Notepads write.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::ReadError;
use crate::tree::MAX_BYTES;

/// The bytes of a file: all of them, or just too many for [`decode`].
pub fn read_bytes(path: &Path) -> std::io::Result<Vec<u8>> {
    let most = u64::try_from(MAX_BYTES).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    File::open(path)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The text of a file of at most [`MAX_BYTES`]; `name` is the file's name for errors.
pub fn decode(name: &str, bytes: &[u8]) -> Result<String, ReadError> {
    if bytes.len() > MAX_BYTES {
        return Err(too_large(name));
    }
    match bytes {
        [0xFF, 0xFE, rest @ ..] => utf16(name, rest, u16::from_le_bytes),
        [0xFE, 0xFF, rest @ ..] => utf16(name, rest, u16::from_be_bytes),
        [0xEF, 0xBB, 0xBF, rest @ ..] => utf8(name, rest),
        _ => utf8(name, bytes),
    }
}

pub(crate) fn too_large(name: &str) -> ReadError {
    ReadError::of_file(name, format!("the file is larger than {} MiB", MAX_BYTES >> 20))
}

fn utf8(name: &str, bytes: &[u8]) -> Result<String, ReadError> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(error) => {
            let lines = bytes[..error.valid_up_to()].split(|b| *b == b'\n').count();
            let line = u32::try_from(lines).unwrap_or(u32::MAX);
            Err(ReadError::at_line(name, line, "the bytes are not UTF-8 text"))
        }
    }
}

fn utf16(name: &str, bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String, ReadError> {
    let bad = || ReadError::of_file(name, "the bytes are not UTF-16 text");
    let (pairs, rest) = bytes.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(bad());
    }
    let units: Vec<u16> = pairs.iter().map(|pair| unit(*pair)).collect();
    String::from_utf16(&units).map_err(|_| bad())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_order_marks_decide() {
        let le: Vec<u8> =
            [0xFEFF_u16, 0x61, 0xD83D, 0xDE00].iter().flat_map(|u| u.to_le_bytes()).collect();
        let be: Vec<u8> =
            [0xFEFF_u16, 0x61, 0xD83D, 0xDE00].iter().flat_map(|u| u.to_be_bytes()).collect();
        for bytes in [le.as_slice(), be.as_slice(), "a😀".as_bytes(), "\u{FEFF}a😀".as_bytes()]
        {
            assert_eq!(decode("f", bytes), Ok("a😀".to_owned()));
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_named_with_their_line() {
        let error = decode("f.yaml", b"a: 1\nb: \xFF\n").unwrap_err().to_string();
        assert_eq!(error, "f.yaml:2: the bytes are not UTF-8 text");
        for odd in [&b"\xFF\xFEa"[..], b"\xFF\xFE\x00\xD8"] {
            let error = decode("f.yaml", odd).unwrap_err().to_string();
            assert_eq!(error, "f.yaml: the bytes are not UTF-16 text");
        }
    }

    #[test]
    fn a_file_without_end_is_refused() {
        let error = decode("f.yaml", &vec![b' '; MAX_BYTES + 1]).unwrap_err().to_string();
        assert_eq!(error, "f.yaml: the file is larger than 16 MiB");
    }
}
