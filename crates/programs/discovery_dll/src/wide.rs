//! Null-terminated text of `wchar_t`.

/// `wchar_t`: a UTF-16 unit on Windows, a code point on other systems.
#[cfg(windows)]
pub type WideChar = u16;
/// `wchar_t`: a UTF-16 unit on Windows, a code point on other systems.
#[cfg(not(windows))]
pub type WideChar = u32;

/// Null-terminated text with a stable address.
#[derive(Debug)]
pub(crate) struct WideText(Box<[WideChar]>);

impl WideText {
    /// Converts `text`, up to the first null character if it contains one.
    pub(crate) fn new(text: &str) -> WideText {
        let text = text.split('\0').next().unwrap_or_default();
        #[cfg(windows)]
        let units = text.encode_utf16();
        #[cfg(not(windows))]
        let units = text.chars().map(u32::from);
        WideText(units.chain([0]).collect())
    }

    /// A pointer to the first unit, for C code.
    pub(crate) fn as_ptr(&self) -> *const WideChar {
        self.0.as_ptr()
    }
}

impl Default for WideText {
    fn default() -> WideText {
        WideText::new("")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_ends_with_one_null_character() {
        let units = |text: &str| WideText::new(text).0.to_vec();
        assert_eq!(units(""), [0]);
        assert_eq!(units("a\0b"), [97, 0]);
        let clef = if cfg!(windows) { 3 } else { 2 };
        assert_eq!(units("𝄞").len(), clef);
    }
}
