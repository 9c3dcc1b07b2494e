//! Text as the value of a label.

use std::collections::BTreeMap;

/// Names and values of labels.
pub type Labels = BTreeMap<String, String>;

/// The longest value of a label, in characters (`LabelValueMaxLength` of Kubernetes).
const MAX: usize = 63;

/// Marks of trade names, which drivers write into descriptions. They are not part of a name.
const MARKS: [&str; 3] = ["(R)", "(TM)", "(C)"];

/// `text` as the value of a label: letters, digits, `-`, `_` and `.`, beginning and ending with a
/// letter or digit, at most 63 characters. `None` if nothing is left.
///
/// Trade marks such as `(R)` and all other characters are dropped, and blanks become one `-`, as
/// in the labels of GPU Feature Discovery. A longer text is cut off.
#[must_use]
pub fn label_value(text: &str) -> Option<String> {
    limited(text, MAX)
}

/// Like [`label_value`], with at most `max` characters.
pub(crate) fn limited(text: &str, max: usize) -> Option<String> {
    let text = MARKS.iter().fold(text.to_owned(), |text, mark| text.replace(mark, " "));
    let words: Vec<String> = text
        .split_whitespace()
        .map(|word| word.replace(|c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c), ""))
        .filter(|word| !word.is_empty())
        .collect();
    let joined = words.join("-");
    let value = joined.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
    // Every character is one byte.
    let cut = value[..value.len().min(max)].trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
    Some(cut).filter(|cut| !cut.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::*;

    #[test]
    fn names_of_devices_stay_readable() {
        for (text, value) in [
            ("NVIDIA A10-24Q", "NVIDIA-A10-24Q"),
            ("Intel(R) Arc(TM) A770 Graphics", "Intel-Arc-A770-Graphics"),
            ("AMD Radeon™ Pro V620 ", "AMD-Radeon-Pro-V620"),
            ("AMD Radeon ™ Pro", "AMD-Radeon-Pro"),
            ("Microsoft Basic  Render\tDriver", "Microsoft-Basic-Render-Driver"),
            ("- GPU (rev. 2) -", "GPU-rev.-2"),
        ] {
            assert_eq!(label_value(text).as_deref(), Some(value), "{text}");
        }
        for nothing in ["", " ", "(R)", "グラフィックス", "-._"] {
            assert_eq!(label_value(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn a_long_name_ends_with_a_letter_or_digit() {
        let value = label_value(&format!("{} tail", "x".repeat(62)));
        assert_eq!(value, Some("x".repeat(62)));
    }

    /// The rule of the API server (`IsValidLabelValue`).
    fn is_valid(value: &str) -> bool {
        let is_end = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
        let inner = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        value.len() <= 63
            && value.chars().all(inner)
            && is_end(value.chars().next())
            && is_end(value.chars().next_back())
    }

    proptest! {
        #[test]
        fn every_value_is_valid_and_stays_as_it_is(text in "\\PC{0,80}|[a-zA-Z(). _-]{0,90}") {
            if let Some(value) = label_value(&text) {
                prop_assert!(is_valid(&value), "{value}");
                prop_assert_eq!(label_value(&value), Some(value));
            }
        }
    }
}
