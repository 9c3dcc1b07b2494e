//! YAML and JSON files.
//!
//! Any bytes are read or refused; an error names a line that exists; and a JSON document
//! reads as another JSON reader reads it.

use documents::{Entries, Flag, LenientWhole, ReadError, Text, TextOrList, parse};
use serde::de::IgnoredAny;
use serde_json::Value;

/// Every kind of value below one mapping.
#[derive(serde::Deserialize, Debug)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "reading the values is the test")]
struct Every {
    text: Option<Text>,
    whole: Option<LenientWhole<i64, { i64::MIN as i128 }, { i64::MAX as i128 }>>,
    flag: Option<Flag>,
    list: Option<Vec<documents::AnyCase<Pair>>>,
    map: Option<Entries<String, TextOrList>>,
}

#[derive(serde::Deserialize, Debug)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "reading the values is the test")]
struct Pair {
    first: documents::Spanned<Text>,
    second: Option<Text>,
}

/// Checks one input.
pub fn check(data: &[u8]) {
    if let Err(error) = parse::<Every>("f", data) {
        sensible(&error, data);
    }
    let read = parse::<Entries<String, TextOrList>>("f", data);
    if let Err(error) = &read {
        sensible(error, data);
    }
    if let Ok(Value::Object(object)) = serde_json::from_slice(data) {
        same_as_json(read, &object);
    }
    // Whatever is read once is read again.
    let any = parse::<IgnoredAny>("f", data).is_ok();
    assert_eq!(any, parse::<IgnoredAny>("f", data).is_ok());
}

/// The number of lines, plus the one after the last, where an error at the end is reported.
fn lines(data: &[u8]) -> u32 {
    // YAML has more line breaks than `\n`, and UTF-16 has others still: count generously.
    let breaks = data.iter().filter(|byte| !byte.is_ascii_graphic()).count();
    u32::try_from(breaks + 2).unwrap_or(u32::MAX)
}

fn sensible(error: &ReadError, data: &[u8]) {
    assert_eq!(error.file(), "f");
    assert!(error.to_string().starts_with("f:"), "{error}");
    if let Some(line) = error.line() {
        assert!((1..=lines(data)).contains(&line), "{error}");
    }
}

/// Compares a mapping of texts and lists of texts; whatever else JSON holds is refused.
fn same_as_json(
    read: Result<Entries<String, TextOrList>, ReadError>,
    json: &serde_json::Map<String, Value>,
) {
    let Ok(Entries(entries)) = read else { return };
    assert_eq!(entries.len(), json.len());
    for (key, value) in entries {
        match (value, &json[&key]) {
            (TextOrList::One(text), Value::String(wanted)) => assert_eq!(text, *wanted),
            (TextOrList::One(text), Value::Number(wanted)) => assert_eq!(text, wanted.to_string()),
            (TextOrList::List(texts), Value::Array(wanted)) => {
                assert_eq!(texts.len(), wanted.len());
            }
            (value, wanted) => panic!("{value:?} is not {wanted}"),
        }
    }
}
