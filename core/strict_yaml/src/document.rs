//! A document and the values in it.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::decode::too_large;
use crate::number::{Integer, describe, looks_numeric, whole};
use crate::tree::{Data, Fault, Id, MAX_BYTES, Scalar, Style, Tree, Value};
use crate::{KeyCase, Mapping, Place, ReadError, closest, json, yaml};

/// A document that was read.
#[derive(Debug)]
pub struct Document {
    name: String,
    tree: Tree,
}

impl Document {
    /// Reads the one document in `text`; `name` is what errors call it. A document
    /// with nothing in it, or with comments alone, is an empty mapping.
    pub fn parse(name: &str, text: &str) -> Result<Document, ReadError> {
        if text.len() > MAX_BYTES {
            return Err(too_large(name));
        }
        let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
        let tree = if json::begins(text) { json_or_yaml(text) } else { yaml_or_nothing(text) };
        match tree {
            Ok(tree) => Ok(Document { name: name.to_owned(), tree }),
            Err(fault) => Err(ReadError::at_line(name, fault.line, fault.what)),
        }
    }

    /// The outermost value.
    #[must_use]
    pub fn root(&self) -> Node<'_> {
        let id = self.tree.root;
        Node { document: self, id, line: self.value(id).line, path: String::new() }
    }

    /// The name that errors call the document by.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    fn value(&self, id: Id) -> &Value {
        &self.tree.values[id]
    }
}

/// What begins with a bracket is JSON, or else YAML in flow style. Where it is
/// neither, the parser that got further has understood it better.
fn json_or_yaml(text: &str) -> Result<Tree, Fault> {
    json::parse(text).or_else(|in_json| {
        yaml_or_nothing(text)
            .map_err(|in_yaml| if in_yaml.reached > in_json.reached { in_yaml } else { in_json })
    })
}

fn yaml_or_nothing(text: &str) -> Result<Tree, Fault> {
    match yaml::parse(text)? {
        Some(tree) if !is_nothing(&tree) => Ok(tree),
        _ => {
            let mut builder = crate::tree::Builder::default();
            let root = builder.mapping(1, Vec::new())?;
            Ok(builder.finish(root))
        }
    }
}

/// Whether the document is a null of no characters, as `---` alone is.
fn is_nothing(tree: &Tree) -> bool {
    match &tree.values[tree.root].data {
        Data::Scalar(scalar) => scalar.style == Style::Plain && scalar.text.is_empty(),
        Data::List(_) | Data::Mapping(_) => false,
    }
}

/// What a value is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// `null`, `~`, or nothing where a value should be.
    Null,
    /// `true` or `false` without quotes.
    Boolean,
    /// A number without quotes.
    Number,
    /// Any other scalar.
    Text,
    /// A list.
    List,
    /// A mapping.
    Mapping,
}

/// A value in a document, which knows its line and its path of keys.
#[derive(Clone, Debug)]
pub struct Node<'d> {
    document: &'d Document,
    id: Id,
    line: u32,
    path: String,
}

impl<'d> Node<'d> {
    /// What the value is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match &self.value().data {
            Data::Scalar(scalar) => scalar_kind(scalar),
            Data::List(_) => Kind::List,
            Data::Mapping(_) => Kind::Mapping,
        }
    }

    /// The line of its key, or, for an item of a list, the line it begins on; from 1.
    #[must_use]
    pub fn line(&self) -> u32 {
        self.line
    }

    /// The path of keys, such as `adapters[0].luid`; empty at the top.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The text: anything in quotes, and a plain scalar as spelled unless it is a
    /// boolean or null.
    pub fn text(&self) -> Result<&'d str, ReadError> {
        match (&self.value().data, self.kind()) {
            (Data::Scalar(scalar), Kind::Text | Kind::Number) => Ok(&scalar.text),
            _ => Err(self.expected("text")),
        }
    }

    /// `true` or `false`, without quotes.
    pub fn boolean(&self) -> Result<bool, ReadError> {
        match (&self.value().data, self.kind()) {
            (Data::Scalar(scalar), Kind::Boolean) => Ok(scalar.text.eq_ignore_ascii_case("true")),
            _ => Err(self.expected("true or false")),
        }
    }

    /// A whole number in `range`, without quotes: decimal, `0x…` or `0o…`.
    pub fn integer<T: Integer>(&self, range: RangeInclusive<T>) -> Result<T, ReadError> {
        let number = match &self.value().data {
            Data::Scalar(scalar) if scalar.style == Style::Plain => whole(&scalar.text),
            _ => None,
        };
        number
            .and_then(|number| T::try_from(number).ok())
            .filter(|number| range.contains(number))
            .ok_or_else(|| self.expected(&describe(&range)))
    }

    /// The text, parsed. The error of `T` becomes the message.
    pub fn parsed<T: FromStr<Err: Display>>(&self) -> Result<T, ReadError> {
        self.text()?.parse().map_err(|error: T::Err| self.error(error.to_string()))
    }

    /// The value that stands for one of a few words, compared without ASCII case.
    pub fn choice<T: Copy>(&self, choices: &[(&str, T)]) -> Result<T, ReadError> {
        let word = self.text().unwrap_or_default();
        if let Some((_, value)) = choices.iter().find(|(name, _)| name.eq_ignore_ascii_case(word)) {
            return Ok(*value);
        }
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        let error = self.expected(&format!("one of {}", names.join(", ")));
        Err(match closest(word, names) {
            Some(name) => error.with_hint(format!("did you mean `{name}`?")),
            None => error,
        })
    }

    /// The items of a list.
    pub fn list(&self) -> Result<Vec<Node<'d>>, ReadError> {
        match &self.value().data {
            Data::List(items) => Ok(items
                .iter()
                .enumerate()
                .map(|(n, id)| {
                    self.child(*id, self.document.value(*id).line, format!("{}[{n}]", self.path))
                })
                .collect()),
            _ => Err(self.expected("a list")),
        }
    }

    /// The keys and values of a mapping, in the order of the document.
    pub fn mapping(&self, case: KeyCase) -> Result<Mapping<'d>, ReadError> {
        match &self.value().data {
            Data::Mapping(entries) => Mapping::new(self.clone(), entries, case),
            _ => Err(self.expected("a mapping")),
        }
    }

    /// An error about this value, with its file, line and path.
    #[must_use]
    pub fn error(&self, what: impl Into<String>) -> ReadError {
        self.place().error(what)
    }

    /// Where the value is, for errors that are noticed later.
    #[must_use]
    pub fn place(&self) -> Place {
        self.place_at(self.line())
    }

    pub(crate) fn place_at(&self, line: u32) -> Place {
        Place { file: self.document.name.clone(), line, path: self.path.clone() }
    }

    pub(crate) fn child(&self, id: Id, line: u32, path: String) -> Node<'d> {
        Node { document: self.document, id, line, path }
    }

    fn value(&self) -> &'d Value {
        self.document.value(self.id)
    }

    fn expected(&self, what: &str) -> ReadError {
        let error = self.error(format!("expected {what}, found {}", self.describe()));
        match (&self.value().data, self.kind()) {
            (_, Kind::Null) => error.with_hint("leave the key out, or give it a value"),
            (Data::Scalar(scalar), Kind::Text) if scalar.style == Style::Quoted => {
                match plain_kind(&scalar.text) {
                    Kind::Number | Kind::Boolean => error.with_hint("leave the quotes out"),
                    _ => error,
                }
            }
            (_, Kind::Boolean) if what == "text" => error.with_hint("put it in quotes"),
            _ => error,
        }
    }

    fn describe(&self) -> String {
        match (&self.value().data, self.kind()) {
            (_, Kind::Null) => "nothing".to_owned(),
            (Data::Scalar(scalar), Kind::Boolean) => scalar.text.clone(),
            (Data::Scalar(scalar), Kind::Number) => format!("the number {}", short(&scalar.text)),
            (Data::Scalar(scalar), _) => format!("the text {:?}", short(&scalar.text)),
            (Data::List(_), _) => "a list".to_owned(),
            (Data::Mapping(_), _) => "a mapping".to_owned(),
        }
    }
}

fn scalar_kind(scalar: &Scalar) -> Kind {
    match scalar.style {
        Style::Quoted => Kind::Text,
        Style::Plain => plain_kind(&scalar.text),
    }
}

/// What YAML 1.2's core schema makes of a plain scalar.
fn plain_kind(text: &str) -> Kind {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Kind::Null,
        "true" | "True" | "TRUE" | "false" | "False" | "FALSE" => Kind::Boolean,
        _ if looks_numeric(text) => Kind::Number,
        _ => Kind::Text,
    }
}

/// As much of `text` as an error message can bear.
fn short(text: &str) -> String {
    const LONGEST: usize = 60;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
