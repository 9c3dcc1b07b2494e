//! Values that are either one text or several, and keys that need a value.

use std::fmt::Display;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny};
use serde::{Serialize, Serializer};
use serde_saphyr::FlowSeq;

use crate::Entries;
use crate::node::TEXT_OR_MORE;
use crate::scalar::Text;
use crate::value::{Value, ValueVisitor};

/// One text, or a list of texts.
#[derive(Clone, PartialEq, Debug)]
pub enum TextOrList {
    /// A scalar.
    One(String),
    /// A list.
    List(Vec<String>),
}

impl<'de> Deserialize<'de> for TextOrList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let TextOr(value) = TextOr::<Vec<Text>, IgnoredAny>::deserialize(deserializer)?;
        match value {
            Value::List(texts) => {
                Ok(TextOrList::List(texts.into_iter().map(|text| text.0).collect()))
            }
            other => other.into_text().map(TextOrList::One).map_err(D::Error::custom),
        }
    }
}

impl Serialize for TextOrList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            TextOrList::One(text) => serializer.serialize_str(text),
            TextOrList::List(texts) => FlowSeq(texts).serialize(serializer),
        }
    }
}

/// One text, or a mapping whose keys are data.
#[derive(Clone, PartialEq, Debug)]
pub enum TextOrEntries<K, V> {
    /// A scalar.
    One(String),
    /// A mapping.
    Entries(Entries<K, V>),
}

impl<'de, K, V> Deserialize<'de> for TextOrEntries<K, V>
where
    K: FromStr<Err: Display>,
    V: Deserialize<'de>,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let TextOr(value) = TextOr::<IgnoredAny, Entries<K, V>>::deserialize(deserializer)?;
        match value {
            Value::Mapping(entries) => Ok(TextOrEntries::Entries(entries)),
            other => other.into_text().map(TextOrEntries::One).map_err(D::Error::custom),
        }
    }
}

/// Text, a list or a mapping.
struct TextOr<L, M>(Value<L, M>);

impl<'de, L: Deserialize<'de>, M: Deserialize<'de>> Deserialize<'de> for TextOr<L, M> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let visitor = ValueVisitor::new();
        deserializer.deserialize_newtype_struct(TEXT_OR_MORE, visitor).map(TextOr)
    }
}

/// For `deserialize_with`: an optional key that has a value where it is written. With a
/// plain `Option` a key with nothing after it would mean the same as no key.
pub fn present<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}
