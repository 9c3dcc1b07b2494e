//! Newtypes that hold text.

/// Makes the text of a newtype readable and printable.
macro_rules! text {
    ($name:ident) => {
        impl $name {
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
pub(crate) use text;

/// Makes a newtype of text compare, order and hash its text as Windows does: without case.
macro_rules! caseless {
    ($name:ident) => {
        impl $name {
            fn folded_chars(&self) -> impl Iterator<Item = char> {
                crate::text::case_folding::folded_chars(&self.0)
            }
        }

        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                self.folded_chars().eq(other.folded_chars())
            }
        }

        impl Eq for $name {}

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
                Some(self.cmp(other))
            }
        }

        impl Ord for $name {
            fn cmp(&self, other: &Self) -> std::cmp::Ordering {
                self.folded_chars().cmp(other.folded_chars())
            }
        }

        impl std::hash::Hash for $name {
            fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
                self.folded_chars().for_each(|character| character.hash(state));
                // As `str` does, so that two texts in a row cannot be mistaken for two others.
                state.write_u8(0xFF);
            }
        }
    };
}
pub(crate) use caseless;

/// Defines an identifier of Windows. It keeps and prints the text unchanged, and compares it
/// without case. In a file it is not empty.
macro_rules! string_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name(std::sync::Arc<str>);

        impl $name {
            /// Wraps `text` unchanged.
            pub fn new(text: impl Into<std::sync::Arc<str>>) -> Self {
                Self(text.into())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                crate::text::file_values::filled(deserializer).map(Self::new)
            }
        }

        crate::text::text_newtype::text!($name);
        crate::text::text_newtype::caseless!($name);
        crate::text::file_values::printed_value!($name);
    };
}
pub(crate) use string_id;
