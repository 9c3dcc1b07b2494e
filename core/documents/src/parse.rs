//! Bytes into a struct, with limits that no file gets past.

use serde::de::DeserializeOwned;
use serde_path_to_error::{Segment, Track};
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::{Error, MessageFormatter, UserMessageFormatter};

use crate::scalar::HINT;
use crate::{ReadError, bytes, closest};

/// How deep lists and mappings may nest.
pub const MAX_DEPTH: usize = 64;
/// How many keys and values a file may have, each alias counted as often as it is used.
pub const MAX_VALUES: usize = 500_000;

/// Reads the file of these bytes, YAML or JSON; errors call it `name`.
///
/// A file without content reads as an empty mapping.
pub fn parse<T: DeserializeOwned>(name: &str, bytes: &[u8]) -> Result<T, ReadError> {
    let text = bytes::decode(name, bytes)?;
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(&text);
    let mut track = Track::new();
    let read = serde_saphyr::with_deserializer_from_str_with_options(text, options(), |yaml| {
        T::deserialize(serde_path_to_error::Deserializer::new(yaml, &mut track))
    });
    read.map_err(|error| {
        // A syntax error can be found while the value before it is read; its path would
        // mislead.
        let path = if is_about_a_value(&error) { path(track) } else { String::new() };
        read_error(name, &error).with_path(path)
    })
    .or_else(|error| if is_empty(text) { empty().map_err(|_| error) } else { Err(error) })
}

fn empty<T: DeserializeOwned>() -> Result<T, Error> {
    serde_saphyr::from_str("{}")
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

fn is_about_a_value(error: &Error) -> bool {
    use Error::{
        Message, SerdeInvalidLength, SerdeInvalidType, SerdeInvalidValue, SerdeMissingField,
        SerdeUnknownField, Unexpected,
    };
    matches!(
        error,
        Message { .. }
            | Unexpected { .. }
            | SerdeInvalidType { .. }
            | SerdeInvalidValue { .. }
            | SerdeInvalidLength { .. }
            | SerdeUnknownField { .. }
            | SerdeMissingField { .. }
            | Error::DuplicateMappingKey { .. }
    )
}

/// The path of keys, such as `adapters[0].luid` or `copyToVm["a.b"]`.
fn path(track: Track) -> String {
    let path: String = track.path().iter().map(step).collect();
    path.trim_start_matches('.').to_owned()
}

fn step(segment: &Segment) -> String {
    match segment {
        Segment::Seq { index } => format!("[{index}]"),
        // `Spanned` reads a value as a field of this name.
        Segment::Map { key } if key == "value" => String::new(),
        Segment::Map { key } if is_simple(key) => format!(".{key}"),
        Segment::Map { key } => format!("[{key:?}]"),
        Segment::Enum { .. } | Segment::Unknown => String::new(),
    }
}

/// Whether a key is readable in a path without quotes.
fn is_simple(key: &str) -> bool {
    key.starts_with(|c: char| c.is_ascii_alphabetic())
        && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

fn read_error(name: &str, error: &Error) -> ReadError {
    let (what, hint) = describe(error);
    let line = error.location().and_then(|location| u32::try_from(location.line()).ok());
    let error = match line {
        Some(line) if line > 0 => ReadError::at_line(name, line, what),
        _ => ReadError::of_file(name, what),
    };
    match hint {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

/// The message in the words of this program's other messages, and advice.
fn describe(error: &Error) -> (String, Option<String>) {
    match error {
        Error::Message { msg, .. } => match msg.split_once(HINT) {
            Some((what, hint)) => (what.to_owned(), Some(hint.to_owned())),
            // The derived code says "field"; to a reader of the file it is a key.
            None => (msg.replace("duplicate field", "duplicate key"), None),
        },
        Error::Unexpected { expected: "mapping start", .. } => ("expected a mapping".into(), None),
        Error::Unexpected { expected: "sequence start", .. } => ("expected a list".into(), None),
        Error::SerdeInvalidType { unexpected, expected, .. } => {
            (format!("expected {expected}, found {}", in_yaml_terms(unexpected)), None)
        }
        Error::SerdeUnknownField { field, expected, .. } => {
            let hint = match closest(field, expected.iter().copied()) {
                Some(key) => format!("did you mean `{key}`?"),
                None => format!("the keys here are {}", expected.join(", ")),
            };
            (format!("unknown key `{}`", field.escape_debug()), Some(hint))
        }
        Error::SerdeMissingField { field, .. } => (format!("missing key `{field}`"), None),
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            (format!("duplicate key `{}`", key.escape_debug()), None)
        }
        Error::MultipleDocuments { .. } => {
            ("a second YAML document begins; a file holds one document".into(), None)
        }
        Error::Eof { .. } => ("the file is empty".into(), None),
        Error::Budget { breach, .. } => (over_limit(breach), None),
        other if is_about_a_value(other) => (message(other), None),
        syntax => (format!("not valid YAML: {}", message(syntax)), None),
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

fn message(error: &Error) -> String {
    UserMessageFormatter.format_message(error).into_owned()
}

fn in_yaml_terms(unexpected: &str) -> &str {
    match unexpected {
        "map" => "a mapping",
        "sequence" => "a list",
        "unit value" => "nothing",
        other => other,
    }
}
