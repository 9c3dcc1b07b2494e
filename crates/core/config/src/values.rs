//! The kinds of values that files have, and their limits.

use std::fmt::{self, Display};
use std::marker::PhantomData;
use std::num::NonZeroU32;
use std::str::FromStr;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use strum::VariantNames;

pub(crate) use host::file_values::Entries;

use crate::closest::closest;

/// The maximum number of replicas of a device.
pub const MAX_MULTITENANCY: u64 = 1024;
/// The longest grace period for a device that disappeared, in seconds: a day.
pub const MAX_REMOVAL_GRACE: u64 = 86_400;
/// The most memory that a rule can require of a device, in MiB: 16 TiB.
pub const MAX_MEMORY_MIB: u64 = 16 << 20;

/// Text that parses as a `T`, whose error becomes the message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Parsed<T>(pub(crate) T);

impl<'de, T: FromStr<Err: Display>> Deserialize<'de> for Parsed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map(Parsed).map_err(D::Error::custom)
    }
}

impl<T: Display> Serialize for Parsed<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<T: FromStr> FromStr for Parsed<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, T::Err> {
        text.parse().map(Parsed)
    }
}

/// A whole number from `MIN` to `MAX`, which may be in quotes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Number<const MIN: u64, const MAX: u64>(pub(crate) u64);

impl<const MIN: u64, const MAX: u64> FromStr for Number<MIN, MAX> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.parse().ok().filter(|number| (MIN..=MAX).contains(number));
        number.map(Number).ok_or_else(|| format!("expected a whole number from {MIN} to {MAX}"))
    }
}

impl<'de, const MIN: u64, const MAX: u64> Deserialize<'de> for Number<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(|error| D::Error::custom(format!("{error}, found {text:?}")))
    }
}

/// The number, at least 1: 0 replicas mean 1, as in the earlier plugins.
pub(crate) fn positive<const MIN: u64, const MAX: u64>(number: Number<MIN, MAX>) -> NonZeroU32 {
    let number = u32::try_from(number.0).unwrap_or(u32::MAX);
    NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN)
}

/// One of a few values by its name, compared without ASCII case.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Choice<T>(pub(crate) T);

impl<T: FromStr + VariantNames> FromStr for Choice<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse().map(Choice).map_err(|_| one_of(T::VARIANTS, text))
    }
}

/// The message for text that is none of these names.
pub(crate) fn one_of(names: &[&str], text: &str) -> String {
    let what = format!("expected one of {}, found {text:?}", names.join(", "));
    match closest(text, names.iter().copied()) {
        Some(name) => format!("{what}; did you mean `{name}`?"),
        None => what,
    }
}

/// One value as text, or a list or mapping of several.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum TextOr<T> {
    /// A text, a number, `true` or `false`.
    Text(String),
    /// The list or mapping.
    Several(T),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for TextOr<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextOrVisitor(PhantomData))
    }
}

struct TextOrVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for TextOrVisitor<T> {
    type Value = TextOr<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text or several texts")
    }

    fn visit_str<E>(self, text: &str) -> Result<TextOr<T>, E> {
        Ok(TextOr::Text(text.to_owned()))
    }

    fn visit_bool<E>(self, value: bool) -> Result<TextOr<T>, E> {
        Ok(TextOr::Text(value.to_string()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<TextOr<T>, E> {
        Ok(TextOr::Text(number.to_string()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<TextOr<T>, E> {
        Ok(TextOr::Text(number.to_string()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<TextOr<T>, A::Error> {
        T::deserialize(SeqAccessDeserializer::new(list)).map(TextOr::Several)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<TextOr<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(TextOr::Several)
    }
}

/// Reads an optional key, for `deserialize_with`. A key without a value is an error; a plain
/// `Option` would read it as if there were no key.
pub(crate) fn present<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}
