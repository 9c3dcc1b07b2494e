//! The text in a file's bytes.
//!
//! UTF-8 with or without a byte order mark, and UTF-16 with one: Windows PowerShell 5.1
//! writes UTF-16 when output is redirected with `>`. The YAML library decodes UTF-16 only
//! from readers, and there replaces what is malformed; here that is an error.

use crate::ReadError;

/// The largest file, in bytes. The inventory of a host with a thousand driver files per
/// adapter takes some hundred KiB.
pub(crate) const MAX_BYTES: usize = 16 << 20;

/// The text in the bytes of the file `name`.
///
/// # Errors
/// The bytes are no text, or too many.
pub(crate) fn text(name: &str, bytes: &[u8]) -> Result<String, ReadError> {
    if bytes.len() > MAX_BYTES {
        let what = format!("the file is larger than {} MiB", MAX_BYTES >> 20);
        return Err(ReadError::of_file(name, what));
    }
    match bytes {
        [0xFF, 0xFE, rest @ ..] => utf16(name, rest, u16::from_le_bytes),
        [0xFE, 0xFF, rest @ ..] => utf16(name, rest, u16::from_be_bytes),
        [0xEF, 0xBB, 0xBF, rest @ ..] => utf8(name, rest),
        _ => utf8(name, bytes),
    }
}

fn utf8(name: &str, bytes: &[u8]) -> Result<String, ReadError> {
    str::from_utf8(bytes).map(str::to_owned).map_err(|error| {
        let lines = bytes[..error.valid_up_to()].split(|byte| *byte == b'\n').count();
        let line = Some(u32::try_from(lines).unwrap_or(u32::MAX));
        ReadError { line, ..ReadError::of_file(name, "the file is not valid UTF-8") }
    })
}

fn utf16(name: &str, bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String, ReadError> {
    let malformed = || ReadError::of_file(name, "the file is not valid UTF-16");
    let (pairs, rest) = bytes.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(malformed());
    }
    let units: Vec<u16> = pairs.iter().map(|pair| unit(*pair)).collect();
    String::from_utf16(&units).map_err(|_| malformed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_order_marks_select_the_encoding() {
        let units = [0xFEFF_u16, 0x61, 0xD83D, 0xDE00];
        let little: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
        let big: Vec<u8> = units.iter().flat_map(|unit| unit.to_be_bytes()).collect();
        for bytes in [little.as_slice(), &big, "a😀".as_bytes(), "\u{FEFF}a😀".as_bytes()] {
            assert_eq!(text("f", bytes), Ok("a😀".to_owned()));
        }
    }

    #[test]
    fn malformed_text_is_an_error_with_its_line() {
        let error = text("f.yaml", b"a: 1\nb: \xFF\n").unwrap_err().to_string();
        assert_eq!(error, "f.yaml:2: the file is not valid UTF-8");
        for malformed in [&b"\xFF\xFEa"[..], b"\xFF\xFE\x00\xD8"] {
            let error = text("f.yaml", malformed).unwrap_err().to_string();
            assert_eq!(error, "f.yaml: the file is not valid UTF-16");
        }
    }

    #[test]
    fn a_file_over_the_limit_is_an_error() {
        let error = text("f.yaml", &vec![b' '; MAX_BYTES + 1]).unwrap_err().to_string();
        assert_eq!(error, "f.yaml: the file is larger than 16 MiB");
    }
}
