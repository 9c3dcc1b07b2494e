//! Bytes into a struct, with limits that no file gets past.

use serde::de::{Deserialize as _, DeserializeOwned};
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::{Error, MessageFormatter, UserMessageFormatter};

use crate::node::{Node, NodeDeserializer, duplicate_key};
use crate::value::Value;
use crate::{ReadError, bytes};

/// How deep lists and mappings may nest. The parser calls itself for each level, and the stack of
/// a thread is small on Windows.
pub const MAX_DEPTH: usize = 16;
/// How many keys and values a file may have, each alias counted as often as it is used.
pub const MAX_VALUES: usize = 500_000;

/// Reads the file of these bytes, YAML or JSON; errors call it `name`.
///
/// A file without content reads as an empty mapping.
pub fn parse<T: DeserializeOwned>(name: &str, bytes: &[u8]) -> Result<T, ReadError> {
    let tree = tree(name, bytes)?;
    let line = tree.line;
    let is_empty = matches!(&tree.value, Value::Mapping(pairs) if pairs.is_empty());
    T::deserialize(NodeDeserializer::new(tree)).map_err(|error| {
        if is_empty {
            return ReadError::at_line(name, 1, "the file is empty");
        }
        let path = error.path();
        let line = error.line.unwrap_or(line);
        let read = ReadError::at_line(name, line, error.what).with_path(path);
        match error.hint {
            Some(hint) => read.with_hint(hint),
            None => read,
        }
    })
}

/// The file as a tree.
fn tree(name: &str, bytes: &[u8]) -> Result<Node, ReadError> {
    let text = bytes::text(name, bytes)?;
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(&text);
    if is_empty(text) {
        return Ok(Node { value: Value::Mapping(Vec::new()), line: 1, width: 0 });
    }
    let read = serde_saphyr::with_deserializer_from_str_with_options(text, options(), |yaml| {
        Node::deserialize(yaml)
    });
    read.map_err(|error| read_error(name, &error))
}

/// Whether a file has only comments, blank lines and at most one `---`.
fn is_empty(text: &str) -> bool {
    let is_content = |line: &&str| !line.is_empty() && !line.starts_with('#');
    let mut content = text.lines().map(str::trim).filter(is_content);
    content.next().is_none_or(|line| line == "---") && content.next().is_none()
}

fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        with_snippet: false,
        strict_booleans: true,
        reject_unsupported_tags: true,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        emit_comments: false,
        merge_keys: serde_saphyr::options::MergeKeyPolicy::Error,
        budget: serde_saphyr::budget! {
            // One more, so that a second document is an error of its own.
            max_documents: 2,
            max_depth: MAX_DEPTH,
            flow_nesting_limit: MAX_DEPTH,
            max_nodes: MAX_VALUES,
            max_events: 3 * MAX_VALUES,
            max_recorded_anchor_events: MAX_VALUES / 4,
            // Names in the registry have up to 16,383 characters.
            simple_key_max_lookahead: 1 << 16,
        },
    }
}

fn read_error(name: &str, error: &Error) -> ReadError {
    let what = describe(error);
    let line = error.location().and_then(|location| u32::try_from(location.line()).ok());
    match line {
        Some(line) if line > 0 => ReadError::at_line(name, line, what),
        _ => ReadError::of_file(name, what),
    }
}

/// The message in the words of this program's other messages.
fn describe(error: &Error) -> String {
    match error {
        Error::DuplicateMappingKey { key: Some(key), .. } => duplicate_key(key),
        Error::Unexpected { expected: "string scalar", .. } => "a key must be text".to_owned(),
        Error::MultipleDocuments { .. } => {
            "a second YAML document begins; a file holds one document".to_owned()
        }
        Error::Eof { .. } => "the file is empty".to_owned(),
        Error::Budget { breach, .. } => over_limit(breach),
        syntax => {
            let message = UserMessageFormatter.format_message(syntax);
            format!("not valid YAML: {message}")
        }
    }
}

fn over_limit(breach: &BudgetBreach) -> String {
    match breach {
        BudgetBreach::Nodes { .. } | BudgetBreach::Events { .. } => {
            format!("the file has more than {MAX_VALUES} values")
        }
        BudgetBreach::Depth { .. } => {
            format!("lists and mappings nest deeper than {MAX_DEPTH} levels")
        }
        BudgetBreach::Aliases { .. }
        | BudgetBreach::Anchors { .. }
        | BudgetBreach::RecordedAnchorEvents { .. } => {
            "the file has too many anchors and aliases".to_owned()
        }
        other => format!("the file exceeds a limit of the YAML reader: {other:?}"),
    }
}
