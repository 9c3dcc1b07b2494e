//! Parses the bytes of a YAML or JSON file into a struct, with limits.
//!
//! `serde-saphyr` parses (JSON is a subset of YAML 1.2), and the structs check keys and values. The
//! errors get the file and the path of keys here.

use host::file_values::duplicate_key;
use host::printable::printable;
use serde::de::DeserializeOwned;
use serde_path_to_error::{Path, Segment, Track};
use serde_saphyr::{Error, MessageFormatter, UserMessageFormatter};

use crate::closest::closest;
use crate::synonyms::synonym;
use crate::values::one_of;
use crate::{ReadError, indentation, text};

/// How deep lists and mappings may nest. The parser calls itself for each level, and the stack of
/// a thread is small on Windows.
const MAX_DEPTH: usize = 16;
/// How many keys and values a file may have, each alias counted as often as it is used.
const MAX_VALUES: usize = 500_000;

/// Reads the file of these bytes, YAML or JSON; errors call it `name`.
///
/// A file without content, or with `null`, reads as an empty mapping.
pub(crate) fn parse<T: DeserializeOwned>(name: &str, bytes: &[u8]) -> Result<T, ReadError> {
    let mut text = text::text(name, bytes)?;
    if is_empty_document(&text) {
        text.clear();
    }
    let mut track = Track::new();
    let read = serde_saphyr::with_deserializer_from_str_with_options(&text, options(), |yaml| {
        T::deserialize(serde_path_to_error::Deserializer::new(yaml, &mut track))
    });
    if let (Ok(_), Some((first, second))) = (&read, indentation::swallowed_item(&text)) {
        let what = "the item of a list is part of another value";
        let error = ReadError { line: Some(second), ..ReadError::of_file(name, what) };
        return Err(error.with_hint(indentation::belongs_to(first, second)));
    }
    read.map_err(|error| {
        let (what, hint) = describe(&error, &text);
        let line = error.location().and_then(|location| u32::try_from(location.line()).ok());
        let error = ReadError {
            file: name.to_owned(),
            line: line.filter(|line| *line > 0),
            path: keys(&track.path(), &error),
            what,
            hint,
        };
        let error = tab_error(&error, &text).unwrap_or(error);
        match indentation_hint(&error, &text) {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    })
}

/// Whether the file has one document, which is empty or `null`.
fn is_empty_document(text: &str) -> bool {
    let words: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.starts_with('#'))
        .flat_map(str::split_whitespace)
        .collect();
    matches!(words.as_slice(), [] | ["---" | "null" | "~"] | ["---", "null" | "~"])
}

fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        with_snippet: false,
        strict_booleans: true,
        reject_unsupported_tags: true,
        emit_comments: false,
        merge_keys: serde_saphyr::options::MergeKeyPolicy::Error,
        budget: serde_saphyr::budget! {
            // The limit is 2, so that a second document is reported as such, not as a limit.
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

/// A path such as `adapters[0].luid` or `copyToVm["a.b"]`. It does not end with an unknown key,
/// which the message names.
fn keys(path: &Path, error: &Error) -> String {
    let unknown = match error {
        Error::SerdeUnknownField { field, .. } => Some(field),
        _ => None,
    };
    let last = path.iter().len().saturating_sub(1);
    let keys: String = path
        .iter()
        .enumerate()
        .filter(|(n, segment)| {
            let is_unknown =
                matches!(segment, Segment::Map { key } if *n == last && Some(key) == unknown);
            !is_unknown
        })
        .map(|(_, segment)| match segment {
            Segment::Seq { index } => format!("[{index}]"),
            // The library reads a `Spanned` value like a struct.
            Segment::Map { key } if key == "value" => String::new(),
            Segment::Map { key } if is_simple_key(key) => format!(".{key}"),
            Segment::Map { key } => format!("[{key:?}]"),
            Segment::Enum { .. } | Segment::Unknown => String::new(),
        })
        .collect();
    keys.trim_start_matches('.').to_owned()
}

/// Whether a path contains the key without quotes.
fn is_simple_key(key: &str) -> bool {
    key.starts_with(|c: char| c.is_ascii_alphabetic())
        && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

/// The message in the words of this program's other messages, and its hint.
fn describe(error: &Error, text: &str) -> (String, Option<String>) {
    let what = match error {
        Error::AliasError { error, .. } => return describe(error, text),
        Error::SerdeUnknownField { field, expected, .. } => {
            let meant =
                synonym(field, expected).or_else(|| closest(field, expected.iter().copied()));
            let hint = match meant {
                Some(key) => format!("did you mean `{key}`?"),
                None => format!("{OTHER_KEYS_HINT}{}", expected.join(", ")),
            };
            return (format!("unknown key `{}`", field.escape_debug()), Some(hint));
        }
        Error::SerdeUnknownVariant { variant, expected, .. } => one_of(expected, variant),
        Error::Message { msg, .. } => msg.clone(),
        Error::SerdeMissingField { field, .. } => format!("missing key `{field}`"),
        Error::DuplicateMappingKey { key: Some(key), .. } => duplicate_key(key),
        Error::NullIntoString { .. } => format!("expected a value{NOTHING}"),
        Error::InvalidBooleanStrict { .. } => {
            format!("expected true or false{}", found(error, text))
        }
        Error::InvalidScalar { ty, .. } => format!("expected {}{}", number(ty), found(error, text)),
        Error::SerdeInvalidType { expected, unexpected, .. } => {
            format!("expected {expected}, found {unexpected}")
        }
        Error::SerdeInvalidValue { expected, .. } => expected.clone(),
        Error::Unexpected { expected: "sequence start", .. } => "expected a list".to_owned(),
        Error::Unexpected { expected: "mapping start", .. } => EXPECTED_MAPPING.to_owned(),
        Error::Unexpected { expected: "string scalar", .. } => "expected a single value".to_owned(),
        Error::MultipleDocuments { .. } => {
            "a second YAML document begins; a file holds one document".to_owned()
        }
        Error::Eof { .. } => "the file is empty".to_owned(),
        Error::Budget { breach, .. } => format!("the file exceeds a limit: {breach:?}"),
        syntax => format!("{INVALID_YAML}{}", UserMessageFormatter.format_message(syntax)),
    };
    let hint = match what.as_str() {
        EXPECTED_MAPPING if is_toml(text) => Some(
            "the file is not YAML but TOML or INI: write `key: value` for `key = value`".to_owned(),
        ),
        EXPECTED_MAPPING => Some("write `key: value`".to_owned()),
        _ if what.ends_with(UNKNOWN_ALIAS) => {
            Some("put text that begins with `*` in quotes".to_owned())
        }
        _ if what.ends_with(NOTHING) => Some("leave the key out, or give it a value".to_owned()),
        _ => None,
    };
    (what, hint)
}

/// The error about the tab that indents a line, if that is what makes the text invalid YAML. The
/// parser may name an earlier line, where the value begins that the tab cuts off.
fn tab_error(error: &ReadError, text: &str) -> Option<ReadError> {
    let is_flow = text.trim_start().starts_with(['{', '[']);
    if !error.what.starts_with(INVALID_YAML) || is_flow {
        return None;
    }
    let is_tab_indented = |line: &str| {
        let content = line.trim_start();
        !content.is_empty() && line[..line.len() - content.len()].contains('\t')
    };
    let first = error.line?;
    let most = if error.what.contains(" tab") { usize::MAX } else { 1 };
    let mut lines = (first..).zip(text.lines().skip(first as usize - 1)).take(most);
    let (line, _) = lines.find(|(_, line)| is_tab_indented(line))?;
    let what = format!("{INVALID_YAML}{TAB}");
    let error = ReadError { line: Some(line), what, ..error.clone() };
    Some(error.with_hint("indent it with spaces"))
}

/// What is wrong with the indentation at the error, if it is about a value or about the syntax.
fn indentation_hint(error: &ReadError, text: &str) -> Option<String> {
    if error.unknown_key().is_some() || error.what.ends_with(TAB) {
        return None;
    }
    indentation::hint(text, error.line?, error.what.starts_with(INVALID_YAML))
}

/// Whether the first line with content is `key = value`, as in the files of an earlier plugin.
fn is_toml(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with(['#', ';', '[']));
    first.is_some_and(|line| line.contains('=') && !line.contains(':'))
}

/// The beginning of a message about the syntax.
const INVALID_YAML: &str = "not valid YAML: ";

/// The end of a message about a tab.
const TAB: &str = "a tab indents the line";

/// The beginning of the hint about an unknown key, if no known key is similar to it.
pub(crate) const OTHER_KEYS_HINT: &str = "the keys here are ";

pub(crate) const EXPECTED_MAPPING: &str = "expected a mapping";

/// The end of the library's message about a text such as `*name`, which stands for another value.
const UNKNOWN_ALIAS: &str = "reference to unknown value";

/// The end of a message about a key without a value.
const NOTHING: &str = ", found nothing";

/// The value at the place of an error, as the file spells it.
fn found(error: &Error, text: &str) -> String {
    const LONGEST: usize = 60;
    let spelled = error.location().and_then(|location| {
        let span = location.span();
        let start = usize::try_from(span.byte_offset()?).ok()?;
        let end = start + usize::try_from(span.byte_len()?).ok()?;
        text.get(start..end).map(str::trim)
    });
    match spelled {
        None | Some("") => NOTHING.to_owned(),
        Some(spelled) => match spelled.char_indices().nth(LONGEST) {
            Some((end, _)) => format!(", found `{}…`", printable(&spelled[..end])),
            None => format!(", found `{}`", printable(spelled)),
        },
    }
}

/// The text for a number type, which the library calls by its name in Rust.
fn number(ty: &str) -> String {
    match ty {
        "i64" => "a signed 64-bit number".to_owned(),
        "u32" => format!("a whole number from 0 to {}", u32::MAX),
        "u64" => format!("a whole number from 0 to {}", u64::MAX),
        other => other.to_owned(),
    }
}

#[cfg(test)]
mod tests;
