//! A value as the file has it, before it is checked.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Any value of a file; `L` is what a list reads into, and `M` what a mapping reads into.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Value<L = IgnoredAny, M = IgnoredAny> {
    Null,
    Boolean(bool),
    Whole(i128),
    Fraction(f64),
    Text(String),
    List(L),
    Mapping(M),
}

impl<L, M> Value<L, M> {
    /// The value with another kind of mapping.
    pub(crate) fn map_mapping<N>(self, convert: impl FnOnce(M) -> N) -> Value<L, N> {
        match self {
            Value::Null => Value::Null,
            Value::Boolean(value) => Value::Boolean(value),
            Value::Whole(number) => Value::Whole(number),
            Value::Fraction(number) => Value::Fraction(number),
            Value::Text(text) => Value::Text(text),
            Value::List(list) => Value::List(list),
            Value::Mapping(mapping) => Value::Mapping(convert(mapping)),
        }
    }

    /// The text, or a message.
    pub(crate) fn into_text(self) -> Result<String, String> {
        match self {
            Value::Text(text) => Ok(text),
            other => Err(format!("expected text, found {}", other.describe())),
        }
    }

    /// "found …" of an error message.
    pub(crate) fn describe(&self) -> String {
        match self {
            Value::Null => "nothing".to_owned(),
            Value::Boolean(value) => value.to_string(),
            Value::Whole(number) => format!("the number {number}"),
            Value::Fraction(number) => format!("the number {number}"),
            Value::Text(text) => format!("the text {:?}", short(text)),
            Value::List(_) => "a list".to_owned(),
            Value::Mapping(_) => "a mapping".to_owned(),
        }
    }
}

/// As much of `text` as an error message can hold.
fn short(text: &str) -> String {
    const LONGEST: usize = 60;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

impl<'de, L: Deserialize<'de>, M: Deserialize<'de>> Deserialize<'de> for Value<L, M> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor::new())
    }
}

pub(crate) struct ValueVisitor<L, M>(PhantomData<(L, M)>);

impl<L, M> ValueVisitor<L, M> {
    pub(crate) fn new() -> Self {
        ValueVisitor(PhantomData)
    }
}

impl<'de, L: Deserialize<'de>, M: Deserialize<'de>> Visitor<'de> for ValueVisitor<L, M> {
    type Value = Value<L, M>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Value::Boolean(value))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Value::Whole(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Value::Whole(number.into()))
    }

    fn visit_i128<E>(self, number: i128) -> Result<Self::Value, E> {
        Ok(Value::Whole(number))
    }

    fn visit_u128<E>(self, number: u128) -> Result<Self::Value, E> {
        // What does not fit is in no range either.
        Ok(Value::Whole(i128::try_from(number).unwrap_or(i128::MAX)))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
        Ok(Value::Fraction(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Value::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Self::Value, E> {
        Ok(Value::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
        L::deserialize(SeqAccessDeserializer::new(list)).map(Value::List)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        M::deserialize(MapAccessDeserializer::new(map)).map(Value::Mapping)
    }
}
