//! YAML and JSON documents.
//!
//! Every value answers to exactly the accessors of its kind, errors name a line that
//! exists, and what another reader takes for JSON is read as the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use strict_yaml::{Document, KeyCase, Kind, Node, ReadError, decode};

/// Values of one document that are looked at; aliases can make a million of a few.
const LOOKED_AT: usize = 2_000;

fuzz_target!(|data: &[u8]| {
    let text = match decode("f", data) {
        Ok(text) => text,
        Err(error) => return sensible(&error, &String::from_utf8_lossy(data)),
    };
    let document = Document::parse("f", &text);
    match &document {
        Ok(document) => {
            let mut left = LOOKED_AT;
            walk(&document.root(), &text, &mut left);
        }
        Err(error) => sensible(error, &text),
    }
    if let Ok(json @ (Value::Object(_) | Value::Array(_))) = serde_json::from_str(&text) {
        same_as_json(document.as_ref(), &json);
    }
});

/// How many lines there are, with the one after the last: an error at the end of the
/// document is put there.
fn lines(text: &str) -> u32 {
    // YAML's line breaks are more than `str::lines` knows, never fewer.
    let is_break = |c: &char| matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}');
    u32::try_from(text.chars().filter(is_break).count() + 2).unwrap_or(u32::MAX)
}

fn sensible(error: &ReadError, text: &str) {
    assert_eq!(error.file(), "f");
    assert!(error.to_string().starts_with("f:"), "{error}");
    if let Some(line) = error.line() {
        assert!((1..=lines(text)).contains(&line), "{error}");
    }
}

fn walk(node: &Node<'_>, text: &str, left: &mut usize) {
    let Some(fewer) = left.checked_sub(1) else { return };
    *left = fewer;
    assert!((1..=lines(text)).contains(&node.line()), "{node:?}");
    let kind = node.kind();
    assert_eq!(node.text().is_ok(), matches!(kind, Kind::Text | Kind::Number));
    assert_eq!(node.boolean().is_ok(), kind == Kind::Boolean);
    assert!(node.integer(i64::MIN..=i64::MAX).is_err() || kind == Kind::Number);
    assert_eq!(node.list().is_ok(), kind == Kind::List);
    match node.mapping(KeyCase::Exact) {
        Ok(mapping) => {
            assert_eq!(kind, Kind::Mapping);
            mapping.entries().for_each(|(_, value)| walk(&value, text, left));
        }
        Err(error) => sensible(&error, text),
    }
    for item in node.list().unwrap_or_default() {
        walk(&item, text, left);
    }
}

/// `serde_json` goes deeper than this reader, and lets the last of two equal keys win.
fn same_as_json(document: Result<&Document, &ReadError>, json: &Value) {
    match document {
        Ok(document) => {
            let mut left = LOOKED_AT;
            same(&document.root(), json, &mut left);
        }
        Err(error) => {
            let text = error.to_string();
            assert!(text.contains("nest deeper than"), "valid JSON is refused: {error}");
        }
    }
}

fn same(node: &Node<'_>, json: &Value, left: &mut usize) {
    let Some(fewer) = left.checked_sub(1) else { return };
    *left = fewer;
    match json {
        Value::Null => assert_eq!(node.kind(), Kind::Null),
        Value::Bool(value) => assert_eq!(node.boolean().as_ref(), Ok(value)),
        Value::Number(number) => match number.as_i64() {
            Some(value) => assert_eq!(node.integer(i64::MIN..=i64::MAX), Ok(value)),
            None => assert_eq!(node.kind(), Kind::Number),
        },
        Value::String(text) => assert_eq!(node.text(), Ok(text.as_str())),
        Value::Array(items) => {
            let nodes = node.list().expect("an array is a list");
            assert_eq!(nodes.len(), items.len());
            nodes.iter().zip(items).for_each(|(node, item)| same(node, item, left));
        }
        Value::Object(items) => match node.mapping(KeyCase::Exact) {
            Ok(mapping) => {
                assert_eq!(mapping.entries().count(), items.len());
                mapping.entries().for_each(|(key, node)| same(&node, &items[key], left));
            }
            Err(error) => assert!(error.to_string().contains("duplicate key"), "{error}"),
        },
    }
}
