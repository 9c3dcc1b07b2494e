//! What is read, what is refused and with which words.
#![allow(
    clippy::redundant_closure_for_method_calls,
    reason = "a method of `Node<'d>` fits one `'d`, and the helper needs any"
)]

use std::fmt::Write;

use proptest::prelude::*;
use strict_yaml::{Document, KeyCase, Kind, MAX_BYTES, MAX_DEPTH, Node, ReadError};

fn parse(text: &str) -> Document {
    Document::parse("f.yaml", text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn value(document: &Document) -> Node<'_> {
    let mut root = document.root().mapping(KeyCase::Exact).expect("the tests write mappings");
    root.require("a").expect("the tests write `a`")
}

/// The error of `read` on the value of `a`, with its hint.
fn refused<T: std::fmt::Debug>(
    text: &str,
    read: impl Fn(&Node<'_>) -> Result<T, ReadError>,
) -> String {
    let document = parse(text);
    let node = value(&document);
    told(&read(&node).expect_err(text))
}

fn told(error: &ReadError) -> String {
    match error.hint() {
        Some(hint) => format!("{error}\nhint: {hint}"),
        None => error.to_string(),
    }
}

#[test]
fn text_is_what_is_quoted_and_plain_numbers_as_spelled() {
    for (text, wanted) in [
        ("a: 1809", "1809"),
        ("a: '1809'", "1809"),
        ("a: 2.50", "2.50"),
        ("a: 10.0.20348.1547", "10.0.20348.1547"),
        ("a: 21H2", "21H2"),
        ("a: 'true'", "true"),
        ("a: ''", ""),
        ("a: \"x\\ty\"", "x\ty"),
        (r"a: 'PCI\VEN_10DE&DEV_1EB8\3&13'", r"PCI\VEN_10DE&DEV_1EB8\3&13"),
        ("a: |\n  two\n  lines\n", "two\nlines\n"),
        ("{\"a\": \"\\ud83d\\ude00\\u00e9\\/\"}", "😀é/"),
    ] {
        assert_eq!(value(&parse(text)).text().as_deref(), Ok(wanted), "{text}");
    }
}

#[test]
fn other_things_are_no_text() {
    insta::assert_snapshot!(
        ["a: true", "a:\nb: 1", "a: ~", "b: 1\na: [x]", "a: {b: c}"]
            .map(|text| refused(text, |n| n.text().map(str::to_owned)))
            .join("\n")
    );
}

#[test]
fn numbers() {
    for (text, wanted) in [
        ("a: 0x10DE", 0x10DE),
        ("a: 0o17", 15),
        ("a: -5", -5),
        ("{\"a\": 12}", 12),
        ("a: 9223372036854775807", i64::MAX),
        ("a: -9223372036854775808", i64::MIN),
    ] {
        assert_eq!(value(&parse(text)).integer(i64::MIN..=i64::MAX), Ok(wanted), "{text}");
    }
    insta::assert_snapshot!(
        ["a: abc", "a: '5'", "a: 1.5", "a: 010", "a: 9223372036854775808", "a: 1e3", "a: []", "a:"]
            .map(|text| refused(text, |n| n.integer(i64::MIN..=i64::MAX)))
            .join("\n")
    );
    insta::assert_snapshot!(
        ["a: -1", "a: 86401"].map(|text| refused(text, |n| n.integer(0_u32..=86400))).join("\n")
    );
}

#[test]
fn booleans() {
    for (text, wanted) in [("a: true", true), ("a: FALSE", false), ("{\"a\": true}", true)] {
        assert_eq!(value(&parse(text)).boolean(), Ok(wanted), "{text}");
    }
    insta::assert_snapshot!(
        ["a: yes", "a: 1", "a: \"true\""].map(|text| refused(text, |n| n.boolean())).join("\n")
    );
}

#[test]
fn choices_are_named() {
    let read = |n: &Node<'_>| n.choice(&[("auto", 1), ("always", 2), ("never", 3)]);
    assert_eq!(read(&value(&parse("a: Never"))), Ok(3));
    insta::assert_snapshot!(
        ["a: alway", "a: off", "a: false"].map(|text| refused(text, read)).join("\n")
    );
}

#[test]
fn parsed_text_carries_the_type_s_own_words() {
    insta::assert_snapshot!(refused("a: x", |n| n.parsed::<std::net::Ipv4Addr>()));
}

/// Reads `{outer: {name, size}}` and gives the error with its hint.
fn outer_error(text: &str, case: KeyCase) -> String {
    fn read(text: &str, case: KeyCase) -> Result<(), ReadError> {
        let document = Document::parse("f.yaml", text)?;
        let mut root = document.root().mapping(case)?;
        let mut outer = root.require("outer")?.mapping(case)?;
        outer.require("name")?.text()?;
        outer.take("size").map(|n| n.integer(0..=9)).transpose()?;
        outer.finish()?;
        root.finish()
    }
    match read(text, case) {
        Ok(()) => "read".to_owned(),
        Err(error) => told(&error),
    }
}

#[test]
fn keys_are_known_and_unique() {
    insta::assert_snapshot!(
        [
            "outer: {name: x, size: 1}",
            "outer:\n  name: x\n  siez: 1",
            "outer:\n  size: 1\n  nam: x",
            "outer:\n  name: x\n  colour: red",
            "outer:\n  size: 1",
            "outer:\n  name: x\n  size: 1\n  name: y",
            "{\"outer\": {\"name\": \"x\",\n\"name\": \"y\"}}",
            "outer: {NAME: x}",
            "",
            "# nothing\n---\n",
            "[outer]",
            "outer: {name: x}\n\"od\\nd\": 1",
        ]
        .map(|text| outer_error(text, KeyCase::Exact))
        .join("\n")
    );
}

#[test]
fn keys_without_case() {
    assert_eq!(outer_error("OUTER: {Name: x, SIZE: 1}", KeyCase::Ignored), "read");
    insta::assert_snapshot!(outer_error("outer:\n  name: x\n  NAME: y", KeyCase::Ignored));
}

#[test]
fn paths_quote_the_keys_that_would_blur_them() {
    let document = parse("a: {'01': [x, {b.c: true}]}");
    let entries: Vec<_> = value(&document).mapping(KeyCase::Exact).unwrap().entries().collect();
    let list = entries[0].1.list().unwrap();
    let inner: Vec<_> = list[1].mapping(KeyCase::Exact).unwrap().entries().collect();
    assert_eq!(inner[0].1.path(), r#"a["01"][1]["b.c"]"#);
    assert_eq!((inner[0].0, inner[0].1.kind()), ("b.c", Kind::Boolean));
}

fn syntax_error(text: &str) -> String {
    match Document::parse("f.yaml", text) {
        Ok(_) => format!("read: {text:?}"),
        Err(error) => told(&error),
    }
}

#[test]
fn syntax_errors_name_the_line() {
    insta::assert_snapshot!(
        [
            "a: 1\n---\nb: 2\n",
            "a: 1\n\tb: 2\n",
            "a: [1, 2\nb: 3\n",
            "a: 'x\n",
            "a: 1\nb\n",
            "a: !!binary x",
            "a: !mine {b: c}",
            "a: 1\nb: *nobody\n",
            "a: &a [1, *a]\n",
            "? [x]\n: y\n",
            ": x\n",
            "a: \"\\ud83d\\ude00\"\n",
            "a: %x\n",
            "@a: x\n",
            "a:\n  - x\n b: y\n",
        ]
        .map(syntax_error)
        .join("\n")
    );
}

#[test]
fn json_syntax_errors_name_the_line() {
    insta::assert_snapshot!(
        [
            "{\n\t\"a\": 1,\n\t\"b\" 2\n}",
            "{\n\t\"a\": [1,\n\t}\n}",
            "{\n\"a\": \"\\ud83d\"\n}",
            "{\n\"a\": \"\\x\"\n}",
            "{\n\"a\": 1\n",
            "{\n\t\"a\": tru\n}",
            "{\n\t\"a\": 01\n}",
            "{\"a\": 1} x",
            "{\n\t\"a\": \"x\ny\"}",
        ]
        .map(syntax_error)
        .join("\n")
    );
}

#[test]
fn json_with_tabs_and_yaml_in_flow_style_are_both_read() {
    for text in ["{\r\n\t\"a\":\t[1,\r\n\t2]\r\n}\r\n", "{a: [1, 2]}", "\u{FEFF}{\"a\": [1, 2]}"] {
        let document = parse(text);
        let list = value(&document).list().unwrap();
        let numbers: Vec<u8> = list.iter().map(|n| n.integer(0..=9).unwrap()).collect();
        assert_eq!(numbers, [1, 2], "{text}");
    }
}

#[test]
fn aliases_stand_for_their_value_and_cannot_explode() {
    let document = parse("b: &x [1, 2]\na: *x\n");
    let mut root = document.root().mapping(KeyCase::Exact).unwrap();
    assert_eq!(root.require("a").unwrap().list().unwrap().len(), 2);

    let mut laughs = String::from("l0: &l0 [x, x, x, x, x, x, x, x, x, x]\n");
    for n in 1..40 {
        let item = format!("*l{}, ", n - 1).repeat(10);
        writeln!(laughs, "l{n}: &l{n} [{item}]").unwrap();
    }
    assert_eq!(syntax_error(&laughs), "f.yaml:6: the document has more than 1000000 values");
}

#[test]
fn nesting_is_bounded() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("{a: ", "}")] {
        let fits = open.repeat(MAX_DEPTH) + "1" + &close.repeat(MAX_DEPTH);
        assert!(Document::parse("f", &fits).is_ok(), "{open}");
        for depth in [MAX_DEPTH + 1, 300_000] {
            let error = syntax_error(&open.repeat(depth));
            // The YAML parser has a limit of its own for what it must look ahead.
            let limits = ["nest deeper than 64", "recursion limit exceeded"];
            assert!(limits.iter().any(|l| error.contains(l)), "{open} {depth}: {error}");
        }
    }
    let block = "- ".repeat(300_000);
    assert!(syntax_error(&block).contains("nest deeper than 64"));
}

#[test]
fn size_is_bounded() {
    let text = " ".repeat(MAX_BYTES + 1);
    assert_eq!(syntax_error(&text), "f.yaml: the file is larger than 16 MiB");
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_but_nothing_panics(text in "[ -~\\n\\t\\PC]{0,80}") {
        let _ = Document::parse("f", &text).map(|d| d.root().mapping(KeyCase::Ignored).is_ok());
    }

    #[test]
    fn yaml_soup_is_read_or_refused(
        words in prop::collection::vec(
            prop::sample::select(vec![
                "a", ":", " ", "\n", "- ", "? ", "[", "]", "{", "}", ",", "&x ", "*x", "!t ", "'",
                "\"", "|", ">", "#", "---", "...", "\t", "%YAML 1.2", "<<", "\\u", "\\ud83d", "0x",
                "~", "\r", "\u{FEFF}", "\u{85}",
            ]),
            0..40,
        )
    ) {
        let _ = Document::parse("f", &words.concat());
    }

    #[test]
    fn json_strings_read_as_serde_json_reads_them(text in any::<String>()) {
        let json = serde_json::json!({ "a": [text, { "b": text }] });
        for document in [json.to_string(), serde_json::to_string_pretty(&json).unwrap()] {
            let document = Document::parse("f", &document).unwrap();
            let list = value(&document).list().unwrap();
            prop_assert_eq!(list[0].text(), Ok(text.as_str()));
        }
    }

    #[test]
    fn whole_numbers_read_back(number: i64) {
        let document = format!("a: {number}");
        prop_assert_eq!(value(&parse(&document)).integer(i64::MIN..=i64::MAX), Ok(number));
    }
}
