//! The tree that both parsers build, with the limits that keep it finite.

/// The largest document, in bytes. A recorded host with a thousand driver files an
/// adapter takes some hundred KiB.
pub const MAX_BYTES: usize = 16 << 20;
/// How deep lists and mappings may nest.
pub const MAX_DEPTH: usize = 64;
/// How many values a document may have once its aliases are followed.
pub const MAX_NODES: u64 = 1_000_000;

/// An index into [`Tree::values`].
pub(crate) type Id = usize;

#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) values: Vec<Value>,
    pub(crate) root: Id,
}

#[derive(Debug)]
pub(crate) struct Value {
    /// From 1.
    pub(crate) line: u32,
    pub(crate) data: Data,
    /// How many values this is, aliases followed.
    pub(crate) weight: u64,
}

#[derive(Debug)]
pub(crate) enum Data {
    Scalar(Scalar),
    List(Vec<Id>),
    Mapping(Vec<Entry>),
}

#[derive(Debug)]
pub(crate) struct Scalar {
    /// As spelled where plain, else what the quotes stand for.
    pub(crate) text: String,
    pub(crate) style: Style,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Style {
    /// Without quotes: a number, a boolean, null, or text.
    Plain,
    /// Text whatever it looks like.
    Quoted,
}

#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    /// The key's line, from 1.
    pub(crate) line: u32,
    pub(crate) value: Id,
}

/// A place in a document that cannot be read, before the file's name is known.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) line: u32,
    /// How far the parser had got, in bytes or characters; compared, never shown.
    pub(crate) reached: usize,
    pub(crate) what: String,
}

impl Fault {
    pub(crate) fn new(line: u32, what: impl Into<String>) -> Fault {
        Fault { line, reached: 0, what: what.into() }
    }

    pub(crate) fn reached(mut self, reached: usize) -> Fault {
        self.reached = reached;
        self
    }

    pub(crate) fn too_deep(line: u32) -> Fault {
        Fault::new(line, format!("lists and mappings nest deeper than {MAX_DEPTH}"))
    }
}

/// Builds a tree from the leaves up.
#[derive(Default)]
pub(crate) struct Builder {
    values: Vec<Value>,
}

impl Builder {
    pub(crate) fn scalar(&mut self, line: u32, text: String, style: Style) -> Result<Id, Fault> {
        self.push(line, 1, Data::Scalar(Scalar { text, style }))
    }

    pub(crate) fn list(&mut self, line: u32, items: Vec<Id>) -> Result<Id, Fault> {
        let weight = self.weight_of(items.iter().copied());
        self.push(line, weight, Data::List(items))
    }

    pub(crate) fn mapping(&mut self, line: u32, entries: Vec<Entry>) -> Result<Id, Fault> {
        let weight = self.weight_of(entries.iter().map(|entry| entry.value));
        self.push(line, weight, Data::Mapping(entries))
    }

    pub(crate) fn finish(self, root: Id) -> Tree {
        Tree { values: self.values, root }
    }

    /// The scalar `id`, where it is one.
    pub(crate) fn scalar_at(&self, id: Id) -> Option<&Scalar> {
        match &self.values[id].data {
            Data::Scalar(scalar) => Some(scalar),
            Data::List(_) | Data::Mapping(_) => None,
        }
    }

    pub(crate) fn line_of(&self, id: Id) -> u32 {
        self.values[id].line
    }

    fn weight_of(&self, ids: impl Iterator<Item = Id>) -> u64 {
        ids.fold(1, |sum: u64, id| sum.saturating_add(self.values[id].weight))
    }

    fn push(&mut self, line: u32, weight: u64, data: Data) -> Result<Id, Fault> {
        let count = u64::try_from(self.values.len()).unwrap_or(u64::MAX);
        if weight > MAX_NODES || count >= MAX_NODES {
            return Err(Fault::new(line, format!("the document has more than {MAX_NODES} values")));
        }
        self.values.push(Value { line, data, weight });
        Ok(self.values.len() - 1)
    }
}
