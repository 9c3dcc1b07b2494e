//! Text as C's `wchar_t`.

/// One unit of C's `wchar_t`: UTF-16 on Windows, a code point elsewhere.
#[cfg(windows)]
pub type WideChar = u16;
/// One unit of C's `wchar_t`: UTF-16 on Windows, a code point elsewhere.
#[cfg(not(windows))]
pub type WideChar = u32;

/// Text that ends with a zero and stays where it is for as long as it lives.
#[derive(Debug)]
pub(crate) struct WideText(Box<[WideChar]>);

impl WideText {
    /// `text`, up to its first zero if it has one.
    pub(crate) fn new(text: &str) -> WideText {
        let text = text.split('\0').next().unwrap_or_default();
        #[cfg(windows)]
        let units = text.encode_utf16();
        #[cfg(not(windows))]
        let units = text.chars().map(u32::from);
        WideText(units.chain([0]).collect())
    }

    /// Its first unit, for C.
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
    fn text_ends_with_one_zero() {
        let units = |text: &str| WideText::new(text).0.to_vec();
        assert_eq!(units(""), [0]);
        assert_eq!(units("a\0b"), [97, 0]);
        let clef = if cfg!(windows) { 3 } else { 2 };
        assert_eq!(units("𝄞").len(), clef);
    }
}
