//! Newtypes that hold text.

/// Makes the text of a newtype readable and printable.
macro_rules! text {
    ($name:ident) => {
        impl $name {
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
pub(crate) use text;

/// Defines an identifier that holds text unchanged and compares it case-sensitively. In a file it
/// is not empty.
macro_rules! string_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
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
        crate::text::file_values::printed_value!($name);
    };
}
pub(crate) use string_id;
