//! Case folding for names that Windows compares case-insensitively.

/// Folds case, so that two names that Windows considers equal become equal text.
///
/// Windows upcases single UTF-16 units by a table; Rust's mapping to upper case
/// agrees with it for every name a driver package is allowed to hold (ASCII) and
/// for the letters that people use in folder names.
#[must_use]
pub fn fold_case(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_uppercase();
    }
    folded_chars(text).collect()
}

/// The characters of [`fold_case`].
pub(crate) fn folded_chars(text: &str) -> impl Iterator<Item = char> {
    text.chars().flat_map(char::to_uppercase)
}
