//! Keys that match without case, as the configuration files of the earlier plugins did.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, Visitor};

use crate::node::ANY_CASE;

/// A struct whose keys in the file may be written in any case. It stands around the struct
/// because serde's derive compares keys exactly.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct AnyCase<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for AnyCase<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(ANY_CASE, StructVisitor(PhantomData)).map(AnyCase)
    }
}

struct StructVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for StructVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a mapping")
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        T::deserialize(deserializer)
    }
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
