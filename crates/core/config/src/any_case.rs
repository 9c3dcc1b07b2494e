//! Keys that match without case, as the configuration files of the earlier plugins did.

use std::fmt;
use std::marker::PhantomData;

use host::file_values::{duplicate_key, refused_key};
use serde::de::value::StrDeserializer;
use serde::de::{Deserialize, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, Visitor};
use serde::forward_to_deserialize_any;

/// Reads a struct whose keys in the file may be written in any case. serde's derive compares keys
/// exactly, so this wrapper passes them on as the struct spells them.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct AnyCase<T>(pub(crate) T);

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
        T::deserialize(Mapping { map, keys: &[], seen: Vec::new() })
    }
}

/// A mapping of the file. It passes each key on as the struct spells it.
struct Mapping<A> {
    map: A,
    /// The keys of the struct.
    keys: &'static [&'static str],
    /// The keys of the struct that were read so far.
    seen: Vec<&'static str>,
}

impl<'de, A: MapAccess<'de>> Deserializer<'de> for Mapping<A> {
    type Error = A::Error;

    fn deserialize_struct<V: Visitor<'de>>(
        mut self,
        _name: &'static str,
        keys: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        self.keys = keys;
        visitor.visit_map(self)
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, A::Error> {
        visitor.visit_map(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Mapping<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        let Some(key) = self.map.next_key::<String>()? else { return Ok(None) };
        let known = self.keys.iter().find(|known| known.eq_ignore_ascii_case(&key));
        if let Some(known) = known {
            if self.seen.contains(known) {
                return Err(refused_key(&duplicate_key(&key)));
            }
            self.seen.push(known);
        }
        let key: StrDeserializer<'_, A::Error> =
            known.map_or(&*key, |known| known).into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}
