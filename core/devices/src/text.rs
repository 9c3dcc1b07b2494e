//! Text as Windows compares it, and the identifiers that are text.

/// Folds case for comparing names that Windows compares without case.
///
/// Windows upcases single UTF-16 units by a table; Rust's mapping to upper case
/// agrees with it for every name a driver package is allowed to hold (ASCII) and
/// for the letters that people use in folder names.
pub(crate) fn fold(text: &str) -> String {
    text.chars().flat_map(char::to_uppercase).collect()
}

/// A decimal number without sign or space; leading zeros are allowed.
pub(crate) fn decimal<T: std::str::FromStr>(text: &str) -> Option<T> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// Defines an identifier that is text: parsed nowhere, compared as spelled.
macro_rules! text_newtype {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(std::sync::Arc<str>);

        impl $name {
            /// Takes the text as it is.
            pub fn new(text: impl Into<std::sync::Arc<str>>) -> Self {
                Self(text.into())
            }

            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}
pub(crate) use text_newtype;
