//! The text in a file's bytes: UTF-8 with or without a byte order mark, or UTF-16 with one, which
//! Windows PowerShell 5.1 writes when output is redirected with `>`. The YAML library replaces what
//! is malformed in UTF-16; here that is an error.

use encoding_rs::{Encoding, UTF_8};

use crate::ReadError;

/// The largest file, in bytes. The inventory of a host with a thousand driver files per
/// adapter takes some hundred KiB.
pub(crate) const MAX_BYTES: usize = 16 << 20;

/// The text in the bytes of the file `name`.
pub(crate) fn text(name: &str, bytes: &[u8]) -> Result<String, ReadError> {
    if bytes.len() > MAX_BYTES {
        let what = format!("the file is larger than {} MiB", MAX_BYTES >> 20);
        return Err(ReadError::of_file(name, what));
    }
    let (encoding, mark) = Encoding::for_bom(bytes).unwrap_or((UTF_8, 0));
    let text = encoding.decode_without_bom_handling_and_without_replacement(&bytes[mark..]);
    let text = text.map(String::from).ok_or_else(|| {
        let error = str::from_utf8(bytes).err().filter(|_| encoding == UTF_8);
        let line = error.and_then(|error| {
            let lines = bytes[..error.valid_up_to()].split(|byte| *byte == b'\n').count();
            u32::try_from(lines).ok()
        });
        let what = format!("the file is not valid {}", encoding.name());
        ReadError { line, ..ReadError::of_file(name, what) }
    })?;
    // UTF-16 without a byte order mark looks like this.
    if text.contains('\0') {
        let what = "the file is not UTF-8, or UTF-16 with a byte order mark";
        return Err(ReadError::of_file(name, what).with_hint("save it as UTF-8"));
    }
    Ok(text)
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
            assert_eq!(error, "f.yaml: the file is not valid UTF-16LE");
        }
    }

    #[test]
    fn another_encoding_is_an_error_with_a_hint() {
        let utf_16: Vec<u8> = "a: 1".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let utf_32: Vec<u8> =
            "\u{FEFF}a".chars().flat_map(|c| u32::from(c).to_le_bytes()).collect();
        for bytes in [utf_16, utf_32] {
            let error = text("f.yaml", &bytes).unwrap_err();
            let what = "f.yaml: the file is not UTF-8, or UTF-16 with a byte order mark";
            assert_eq!(error.to_string(), what);
            assert_eq!(error.hint(), Some("save it as UTF-8"));
        }
    }

    #[test]
    fn a_file_over_the_limit_is_an_error() {
        let error = text("f.yaml", &vec![b' '; MAX_BYTES + 1]).unwrap_err().to_string();
        assert_eq!(error, "f.yaml: the file is larger than 16 MiB");
    }
}
