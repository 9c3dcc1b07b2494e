//! A file as a tree, and structs read from it.
//!
//! The parser reads the tree, and serde's derived code reads a struct from the tree: the library
//! is compiled for one type instead of for every struct, which makes the program two megabytes
//! smaller. Every error gets its line and its path here.

use std::fmt;

use serde::de::value::{StrDeserializer, U32Deserializer};
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error as _, Expected, IntoDeserializer, MapAccess,
    SeqAccess, Unexpected, Visitor,
};
use serde::forward_to_deserialize_any;

use crate::closest;
use crate::message::{HINT, expected, with_hint};
use crate::value::Value;

/// The name under which [`crate::Spanned`] asks for a value with its line.
pub(crate) const WITH_LINE: &str = "documents::Spanned";
/// The name under which [`crate::AnyCase`] asks for a mapping with keys in any case.
pub(crate) const ANY_CASE: &str = "documents::AnyCase";
/// The name under which text, a list or a mapping is asked for.
pub(crate) const TEXT_OR_MORE: &str = "documents::TextOrMore";

/// A value of a file.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Node {
    pub(crate) value: Value<Vec<Node>, Pairs>,
    /// The line, from 1.
    pub(crate) line: u32,
    /// How many characters the file has for it.
    pub(crate) width: u64,
}

/// The keys and values of a mapping, in the order of the file.
pub(crate) type Pairs = Vec<(Key, Node)>;

#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Key {
    text: String,
    line: u32,
}

/// Reads a tree with the parser's deserializer.
impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let node =
            serde_saphyr::Spanned::<Value<Vec<Node>, ParsedPairs>>::deserialize(deserializer)?;
        Ok(Node {
            value: node.value.map_mapping(|pairs| pairs.0),
            line: line(&node.referenced),
            width: node.defined.span().len(),
        })
    }
}

fn line(location: &serde_saphyr::Location) -> u32 {
    u32::try_from(location.line()).unwrap_or(u32::MAX)
}

struct ParsedPairs(Pairs);

impl<'de> Deserialize<'de> for ParsedPairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PairsVisitor;

        impl<'de> Visitor<'de> for PairsVisitor {
            type Value = ParsedPairs;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a mapping")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ParsedPairs, A::Error> {
                let mut pairs = Pairs::new();
                while let Some(key) = map.next_key::<serde_saphyr::Spanned<String>>()? {
                    let key = Key { line: line(&key.referenced), text: key.value };
                    pairs.push((key, map.next_value()?));
                }
                Ok(ParsedPairs(pairs))
            }
        }

        deserializer.deserialize_map(PairsVisitor)
    }
}

/// The text of a node.
fn text(node: Node) -> Result<String, String> {
    let as_written =
        |number: String| (u64::try_from(number.len()) == Ok(node.width)).then_some(number);
    let number = match &node.value {
        Value::Text(_) => match node.value {
            Value::Text(text) => return Ok(text),
            _ => None,
        },
        Value::Whole(number) => as_written(number.to_string()),
        Value::Fraction(number) => as_written(number.to_string()),
        Value::Boolean(_) => None,
        Value::Null | Value::List(_) | Value::Mapping(_) => {
            return Err(expected("text", &node.value));
        }
    };
    number.ok_or_else(|| with_hint(&expected("text", &node.value), "put it in quotes"))
}

/// Why a struct cannot be read from a tree.
#[derive(Debug)]
pub(crate) struct NodeError {
    pub(crate) what: String,
    pub(crate) hint: Option<String>,
    pub(crate) line: Option<u32>,
    /// The last step first.
    path: Vec<Step>,
}

/// A step of a path.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Step {
    Key(String),
    Element(usize),
}

impl NodeError {
    fn new(what: impl Into<String>) -> NodeError {
        NodeError { what: what.into(), hint: None, line: None, path: Vec::new() }
    }

    /// Adds the line, unless there is a more precise one.
    fn at(mut self, line: u32) -> NodeError {
        self.line.get_or_insert(line);
        self
    }

    /// Adds a step in front of the path.
    fn within(mut self, step: Step) -> NodeError {
        self.path.push(step);
        self
    }

    /// The path of keys, such as `adapters[0].luid` or `copyToVm["a.b"]`.
    pub(crate) fn path(&self) -> String {
        let step = |step: &Step| match step {
            Step::Element(index) => format!("[{index}]"),
            Step::Key(key) if is_simple(key) => format!(".{key}"),
            Step::Key(key) => format!("[{key:?}]"),
        };
        let path: String = self.path.iter().rev().map(step).collect();
        path.trim_start_matches('.').to_owned()
    }
}

/// Whether a key is readable in a path without quotes.
fn is_simple(key: &str) -> bool {
    key.starts_with(|c: char| c.is_ascii_alphabetic())
        && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

impl fmt::Display for NodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for NodeError {}

impl serde::de::Error for NodeError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        let message = message.to_string();
        match message.split_once(HINT) {
            Some((what, hint)) => NodeError { hint: Some(hint.to_owned()), ..NodeError::new(what) },
            None => NodeError::new(message),
        }
    }

    fn invalid_type(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let found = match unexpected {
            Unexpected::Map => "a mapping".to_owned(),
            Unexpected::Seq => "a list".to_owned(),
            Unexpected::Unit | Unexpected::Option => "nothing".to_owned(),
            other => other.to_string(),
        };
        NodeError::new(format!("expected {expected}, found {found}"))
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        let hint = match closest(field, expected.iter().copied()) {
            Some(key) => format!("did you mean `{key}`?"),
            None => format!("the keys here are {}", expected.join(", ")),
        };
        let what = format!("unknown key `{}`", field.escape_debug());
        NodeError { hint: Some(hint), ..NodeError::new(what) }
    }

    fn missing_field(field: &'static str) -> Self {
        NodeError::new(format!("missing key `{field}`"))
    }

    fn duplicate_field(field: &'static str) -> Self {
        NodeError::new(duplicate_key(field))
    }
}

pub(crate) fn duplicate_key(key: &str) -> String {
    format!("duplicate key `{}`", key.escape_debug())
}

/// Reads a value from a node, and frees the node meanwhile.
pub(crate) struct NodeDeserializer {
    node: Node,
    keys: KeyCase,
}

/// How the keys of a mapping are compared with those of a struct.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KeyCase {
    Exact,
    Any,
}

impl NodeDeserializer {
    pub(crate) fn new(node: Node) -> Self {
        NodeDeserializer { node, keys: KeyCase::Exact }
    }

    fn mapping(self) -> Result<Pairs, NodeError> {
        match self.node.value {
            Value::Mapping(pairs) => Ok(pairs),
            _ => Err(NodeError::new("expected a mapping")),
        }
    }
}

impl<'de> Deserializer<'de> for NodeDeserializer {
    type Error = NodeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
        match self.node.value {
            Value::Null => visitor.visit_unit(),
            Value::Boolean(value) => visitor.visit_bool(value),
            Value::Whole(number) => visitor.visit_i128(number),
            Value::Fraction(number) => visitor.visit_f64(number),
            Value::Text(text) => visitor.visit_string(text),
            Value::List(nodes) => visitor.visit_seq(Elements::new(nodes)),
            Value::Mapping(pairs) => visitor.visit_map(Mapping::new(pairs, None)),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
        match self.node.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
        visitor.visit_string(text(self.node).map_err(NodeError::custom)?)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
        self.deserialize_string(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, NodeError> {
        match (name, &self.node.value) {
            (ANY_CASE, _) => {
                let keys = KeyCase::Any;
                visitor.visit_newtype_struct(NodeDeserializer { keys, ..self })
            }
            (TEXT_OR_MORE, Value::List(_) | Value::Mapping(_)) => self.deserialize_any(visitor),
            (TEXT_OR_MORE, _) => self.deserialize_string(visitor),
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        _length: usize,
        visitor: V,
    ) -> Result<V::Value, NodeError> {
        if name == WITH_LINE {
            return visitor
                .visit_seq(WithLine { line: Some(self.node.line), node: Some(self.node) });
        }
        self.deserialize_any(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
        visitor.visit_map(Mapping::new(self.mapping()?, None))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, NodeError> {
        let known = (self.keys == KeyCase::Any).then_some(fields);
        visitor.visit_map(Mapping::new(self.mapping()?, known))
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
        match self.node.value {
            Value::List(nodes) => visitor.visit_seq(Elements::new(nodes)),
            _ => Err(NodeError::new("expected a list")),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char bytes byte_buf unit unit_struct
        tuple enum identifier
    }
}

/// The elements of a list.
struct Elements {
    nodes: std::iter::Enumerate<std::vec::IntoIter<Node>>,
}

impl Elements {
    fn new(nodes: Vec<Node>) -> Elements {
        Elements { nodes: nodes.into_iter().enumerate() }
    }
}

impl<'de> SeqAccess<'de> for Elements {
    type Error = NodeError;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, NodeError> {
        let Some((index, node)) = self.nodes.next() else { return Ok(None) };
        let line = node.line;
        let read = seed.deserialize(NodeDeserializer::new(node)).map(Some);
        read.map_err(|error| error.at(line).within(Step::Element(index)))
    }
}

/// The line of a value, then the value.
struct WithLine {
    line: Option<u32>,
    node: Option<Node>,
}

impl<'de> SeqAccess<'de> for WithLine {
    type Error = NodeError;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, NodeError> {
        if let Some(line) = self.line.take() {
            let line: U32Deserializer<NodeError> = line.into_deserializer();
            return seed.deserialize(line).map(Some);
        }
        let node = self.node.take().map(NodeDeserializer::new);
        node.map(|node| seed.deserialize(node)).transpose()
    }
}

/// The keys and values of a mapping.
struct Mapping {
    pairs: std::vec::IntoIter<(Key, Node)>,
    /// The value of the key that was read.
    value: Option<(Key, Node)>,
    /// The keys of a struct whose keys may be written in any case.
    known: Option<&'static [&'static str]>,
    /// Those that were read.
    seen: Vec<&'static str>,
}

impl Mapping {
    fn new(pairs: Pairs, known: Option<&'static [&'static str]>) -> Self {
        Mapping { pairs: pairs.into_iter(), value: None, known, seen: Vec::new() }
    }

    /// The spelling of a key in the struct.
    fn spelling<'k>(&mut self, key: &'k str) -> Result<&'k str, NodeError> {
        let is_key = |field: &&&str| field.eq_ignore_ascii_case(key);
        let Some(field) = self.known.into_iter().flatten().find(is_key) else { return Ok(key) };
        if self.seen.contains(field) {
            return Err(NodeError::new(duplicate_key(key)));
        }
        self.seen.push(field);
        Ok(field)
    }
}

impl<'de> MapAccess<'de> for Mapping {
    type Error = NodeError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, NodeError> {
        let Some((key, node)) = self.pairs.next() else { return Ok(None) };
        let read = self.spelling(&key.text).and_then(|text| {
            let text: StrDeserializer<'_, NodeError> = text.into_deserializer();
            seed.deserialize(text)
        });
        match read {
            Ok(read) => {
                self.value = Some((key, node));
                Ok(Some(read))
            }
            Err(error) if self.known.is_some() => Err(error.at(key.line)),
            Err(error) => Err(error.at(key.line).within(Step::Key(key.text))),
        }
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, NodeError> {
        let Some((key, node)) = self.value.take() else {
            return Err(NodeError::new("a value without a key"));
        };
        let line = node.line;
        let read = seed.deserialize(NodeDeserializer::new(node));
        read.map_err(|error| error.at(line).within(Step::Key(key.text)))
    }
}
