//! Mappings whose keys are data.

use std::fmt::{self, Display};
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::{Serialize, Serializer};

use crate::keys::Fail;
use crate::node::duplicate_key;

/// The entries of a mapping in the order of the file. Two keys that differ only in case are
/// an error, since what they name on Windows is the same.
#[derive(Clone, PartialEq, Debug)]
pub struct Entries<K, V>(pub Vec<(K, V)>);

impl<K, V> Default for Entries<K, V> {
    fn default() -> Self {
        Entries(Vec::new())
    }
}

impl<'de, K, V> Deserialize<'de> for Entries<K, V>
where
    K: FromStr<Err: Display>,
    V: Deserialize<'de>,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EntriesVisitor(PhantomData))
    }
}

struct EntriesVisitor<K, V>(PhantomData<(K, V)>);

impl<'de, K, V> Visitor<'de> for EntriesVisitor<K, V>
where
    K: FromStr<Err: Display>,
    V: Deserialize<'de>,
{
    type Value = Entries<K, V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a mapping")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        let mut seen = std::collections::HashSet::new();
        while let Some(text) = map.next_key::<String>()? {
            if !seen.insert(text.to_lowercase()) {
                return map.next_value_seed(Fail::new(duplicate_key(&text)));
            }
            match text.parse() {
                Ok(key) => entries.push((key, map.next_value()?)),
                Err(error) => return map.next_value_seed(Fail::new(K::Err::to_string(&error))),
            }
        }
        Ok(Entries(entries))
    }
}

impl<K: Display, V: Serialize> Serialize for Entries<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key.to_string(), value)))
    }
}
