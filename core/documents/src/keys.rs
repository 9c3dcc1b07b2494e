//! Keys that match without case, as the configuration files of the earlier plugins did.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, IntoDeserializer, MapAccess};
use serde::de::{Visitor, value::StrDeserializer};
use serde::forward_to_deserialize_any;

/// A struct whose keys in the file may be written in any case. It stands around the struct
/// because serde's derive compares keys exactly.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct AnyCase<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for AnyCase<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MappingVisitor(PhantomData)).map(AnyCase)
    }
}

struct MappingVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for MappingVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a mapping")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(AnyCaseMapping(map))
    }
}

/// Hands the mapping to the derived code, which says here which keys it knows.
struct AnyCaseMapping<A>(A);

impl<'de, A: MapAccess<'de>> Deserializer<'de> for AnyCaseMapping<A> {
    type Error = A::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, A::Error> {
        visitor.visit_map(self.0)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        visitor.visit_map(KnownKeys { map: self.0, fields, seen: Vec::new(), duplicate: None })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        option unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier
        ignored_any
    }
}

/// Replaces each key by the spelling of the struct's field.
struct KnownKeys<A> {
    map: A,
    fields: &'static [&'static str],
    seen: Vec<&'static str>,
    /// A key that came before in another case. The error is reported with the key's value,
    /// because only there does the library add its position.
    duplicate: Option<String>,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for KnownKeys<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        let Some(key) = self.map.next_key::<String>()? else { return Ok(None) };
        let field = self.fields.iter().find(|field| field.eq_ignore_ascii_case(&key));
        if let Some(field) = field {
            if self.seen.contains(field) {
                self.duplicate = Some(key.clone());
                // The derived code must reach the value, where the error is reported.
                let unseen = self.fields.iter().find(|field| !self.seen.contains(field));
                let any: StrDeserializer<'_, A::Error> =
                    unseen.unwrap_or(field).into_deserializer();
                return seed.deserialize(any).map(Some);
            }
            self.seen.push(field);
        }
        let key: StrDeserializer<'_, A::Error> =
            field.map_or(key.as_str(), |field| field).into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        match self.duplicate.take() {
            Some(key) => self.map.next_value_seed(Fail::new(duplicate_key(&key))),
            None => self.map.next_value_seed(seed),
        }
    }
}

pub(crate) fn duplicate_key(key: &str) -> String {
    format!("duplicate key `{}`", key.escape_debug())
}

/// A seed that reads nothing and fails: the error then has the position of the value.
pub(crate) struct Fail<T> {
    message: String,
    value: PhantomData<T>,
}

impl<T> Fail<T> {
    pub(crate) fn new(message: String) -> Fail<T> {
        Fail { message, value: PhantomData }
    }
}

impl<'de, T> DeserializeSeed<'de> for Fail<T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, _: D) -> Result<T, D::Error> {
        Err(D::Error::custom(self.message))
    }
}
