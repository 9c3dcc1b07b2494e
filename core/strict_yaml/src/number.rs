//! Whole numbers as documents spell them.

use std::fmt::Display;
use std::ops::RangeInclusive;

/// A type of whole number that [`crate::Node::integer`] can give.
pub trait Integer: Copy + PartialOrd + Display + Into<i128> + TryFrom<i128> {}

impl<T: Copy + PartialOrd + Display + Into<i128> + TryFrom<i128>> Integer for T {}

/// A plain scalar that is a whole number: decimal, `0x…` or `0o…`. A decimal with a
/// leading zero is none: YAML 1.1 reads it as octal and YAML 1.2 does not.
pub(crate) fn whole(text: &str) -> Option<i128> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (radix, digits) = if let Some(hex) = digits.strip_prefix("0x") {
        (16, hex)
    } else if let Some(octal) = digits.strip_prefix("0o") {
        (8, octal)
    } else if digits.len() > 1 && digits.starts_with('0') {
        return None;
    } else {
        (10, digits)
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    // What does not fit 128 bits fits no range either.
    let magnitude = i128::from_str_radix(digits, radix).unwrap_or(i128::MAX);
    Some(if negative { -magnitude } else { magnitude })
}

/// Whether a plain scalar is a number of any kind.
pub(crate) fn looks_numeric(text: &str) -> bool {
    let digit = text.trim_start_matches(['-', '+', '.']).starts_with(|c: char| c.is_ascii_digit());
    digit && (whole(text).is_some() || text.parse::<f64>().is_ok())
}

/// The words for "what was expected" of a range.
pub(crate) fn describe<T: Integer>(range: &RangeInclusive<T>) -> String {
    let (low, high): (i128, i128) = ((*range.start()).into(), (*range.end()).into());
    if (low, high) == (i64::MIN.into(), i64::MAX.into()) {
        "a signed 64-bit number".to_owned()
    } else {
        format!("a whole number from {low} to {high}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings() {
        for (text, number) in
            [("0", 0), ("-0", 0), ("+7", 7), ("-12", -12), ("0x10DE", 0x10DE), ("0o17", 15)]
        {
            assert_eq!(whole(text), Some(number), "{text}");
        }
        for text in ["", "-", "0x", "0xG", "--1", "1.0", "1e3", "010", "1_000", " 1", "١"] {
            assert_eq!(whole(text), None, "{text}");
        }
        assert_eq!(whole(&"9".repeat(60)), Some(i128::MAX));
        assert!(looks_numeric("1.5") && looks_numeric("010") && looks_numeric("-.5"));
        assert!(!looks_numeric("10.0.20348.1547") && !looks_numeric("21H2"));
        assert!(!looks_numeric("nan") && !looks_numeric("-"));
    }
}
