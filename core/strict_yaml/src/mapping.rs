//! A mapping that notices which of its keys nobody asked for.

use std::collections::HashMap;

use crate::tree::Entry;
use crate::{Node, ReadError, closest};

/// How a mapping's keys are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyCase {
    /// As spelled.
    Exact,
    /// Without case; two keys that differ in case only are duplicates.
    Ignored,
}

impl KeyCase {
    fn fold(self, key: &str) -> String {
        match self {
            KeyCase::Exact => key.to_owned(),
            KeyCase::Ignored => key.to_lowercase(),
        }
    }
}

/// The keys and values of a mapping. Ask for every key it may have, then call
/// [`Mapping::finish`], which refuses the rest; or take [`Mapping::entries`] where
/// the keys are data.
#[derive(Debug)]
pub struct Mapping<'d> {
    node: Node<'d>,
    case: KeyCase,
    entries: &'d [Entry],
    taken: Vec<bool>,
    asked: Vec<&'static str>,
}

impl<'d> Mapping<'d> {
    pub(crate) fn new(
        node: Node<'d>,
        entries: &'d [Entry],
        case: KeyCase,
    ) -> Result<Mapping<'d>, ReadError> {
        let mut first: HashMap<String, u32> = HashMap::new();
        for entry in entries {
            if let Some(line) = first.insert(case.fold(&entry.key), entry.line) {
                let what = format!("duplicate key {}", quoted(&entry.key));
                return Err(node
                    .place_at(entry.line)
                    .error(what)
                    .with_hint(format!("line {line} sets it already")));
            }
        }
        Ok(Mapping { node, case, entries, taken: vec![false; entries.len()], asked: Vec::new() })
    }

    /// The value of `key`, where the mapping has it.
    pub fn take(&mut self, key: &'static str) -> Option<Node<'d>> {
        self.asked.push(key);
        let wanted = self.case.fold(key);
        let at = self.entries.iter().position(|entry| self.case.fold(&entry.key) == wanted)?;
        self.taken[at] = true;
        Some(self.value(&self.entries[at]))
    }

    /// The value of `key`, which the mapping must have.
    pub fn require(&mut self, key: &'static str) -> Result<Node<'d>, ReadError> {
        if let Some(value) = self.take(key) {
            return Ok(value);
        }
        let misspelt = self.untaken().find(|entry| closest(&entry.key, [key]).is_some());
        Err(match misspelt {
            Some(entry) => self.unknown(entry).with_hint(format!("did you mean `{key}`?")),
            None => self.node.error(format!("missing key `{key}`")),
        })
    }

    /// Every key and its value, in the order of the document.
    pub fn entries(&self) -> impl Iterator<Item = (&'d str, Node<'d>)> + '_ {
        self.entries.iter().map(|entry| (entry.key.as_str(), self.value(entry)))
    }

    /// Refuses the first key that was not asked for.
    pub fn finish(self) -> Result<(), ReadError> {
        let Some(entry) = self.untaken().next() else { return Ok(()) };
        let hint = match closest(&entry.key, self.asked.iter().copied()) {
            Some(key) => format!("did you mean `{key}`?"),
            None => format!("the keys here are {}", self.asked.join(", ")),
        };
        Err(self.unknown(entry).with_hint(hint))
    }

    fn untaken(&self) -> impl Iterator<Item = &'d Entry> + '_ {
        self.entries.iter().zip(&self.taken).filter(|(_, taken)| !**taken).map(|(entry, _)| entry)
    }

    fn unknown(&self, entry: &Entry) -> ReadError {
        self.node.place_at(entry.line).error(format!("unknown key {}", quoted(&entry.key)))
    }

    fn value(&self, entry: &Entry) -> Node<'d> {
        self.node.child(entry.value, entry.line, join(self.node.path(), &entry.key))
    }
}

/// `path.key`, or `path["key"]` where the key would blur the path.
fn join(path: &str, key: &str) -> String {
    let simple = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphabetic() || c == '-')
        || key.chars().all(|c| c.is_ascii_alphanumeric())
            && key.starts_with(|c: char| c.is_ascii_alphabetic());
    match (simple, path.is_empty()) {
        (true, true) => key.to_owned(),
        (true, false) => format!("{path}.{key}"),
        (false, _) => format!("{path}[{key:?}]"),
    }
}

fn quoted(key: &str) -> String {
    format!("`{}`", key.escape_debug())
}
