//! How files spell values, for what serde's derived code does not do by itself.

use std::collections::{BTreeMap, HashSet};
use std::fmt::{self, Display};
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::{Deserializer, Error, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use serde_saphyr::FlowSeq;

/// Makes a file contain the type as the text that it parses and prints.
#[macro_export]
macro_rules! text_value {
    ($name:ident) => {
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <String as serde::Deserialize>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        $crate::printed_value!($name);
    };
}
pub use crate::text_value;

/// Makes a file contain the enum as the name of its variant, whose case does not matter.
#[macro_export]
macro_rules! named_value {
    ($name:ident) => {
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <String as serde::Deserialize>::deserialize(deserializer)?;
                let names = <$name as strum::VariantNames>::VARIANTS;
                text.parse().map_err(|_| serde::de::Error::unknown_variant(&text, names))
            }
        }

        $crate::printed_value!($name);
    };
}
pub use crate::named_value;

/// Makes a file contain the type as the text that it prints.
#[macro_export]
macro_rules! printed_value {
    ($name:ident) => {
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    };
}
pub use crate::printed_value;

/// Reads text of at least one character.
pub(crate) fn filled<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    check_filled(String::deserialize(deserializer)?)
}

/// Like [`filled`], for an optional key.
pub(crate) fn filled_option<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    Option::deserialize(deserializer)?.map(check_filled).transpose()
}

fn check_filled<E: Error>(text: String) -> Result<String, E> {
    if text.is_empty() { Err(E::custom("expected text, found an empty text")) } else { Ok(text) }
}

/// Reads a value; a key without a value counts as left out.
pub(crate) fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// Whether a key can be left out, because its value is the default.
#[must_use]
pub fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Writes a list on one line.
pub(crate) fn on_one_line<T: Serialize, S: Serializer>(
    list: &T,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    FlowSeq(list).serialize(serializer)
}

/// The entries of a mapping in a file whose keys are data. Two keys that differ only in case are an
/// error, since what they name on Windows is the same.
#[derive(Clone, PartialEq, Debug)]
pub struct Entries<K, V>(pub BTreeMap<K, V>);

impl<'de, K: FromStr<Err: Display> + Ord, V: Deserialize<'de>> Deserialize<'de> for Entries<K, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EntriesVisitor(PhantomData))
    }
}

struct EntriesVisitor<K, V>(PhantomData<(K, V)>);

impl<'de, K: FromStr<Err: Display> + Ord, V: Deserialize<'de>> Visitor<'de>
    for EntriesVisitor<K, V>
{
    type Value = Entries<K, V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a mapping")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = BTreeMap::new();
        let mut seen = HashSet::new();
        while let Some(text) = map.next_key::<String>()? {
            let key = text.parse().map_err(|error: K::Err| refused_key(&error.to_string()))?;
            if !seen.insert(text.to_lowercase()) {
                return Err(refused_key(&duplicate_key(&text)));
            }
            if entries.insert(key, map.next_value()?).is_some() {
                let key = text.escape_debug();
                return Err(refused_key(&format!("`{key}` is another name of an earlier key")));
            }
        }
        Ok(Entries(entries))
    }
}

/// An error about the last key. The YAML reader adds the line of the key to this kind of error. To
/// an error that is only text, it adds a line only at the end of a value.
#[must_use]
pub fn refused_key<E: Error>(what: &str) -> E {
    E::invalid_value(Unexpected::Other("key"), &what)
}

/// What is wrong with a key that a mapping has twice.
#[must_use]
pub fn duplicate_key(key: &str) -> String {
    format!("duplicate key `{}`", key.escape_debug())
}
