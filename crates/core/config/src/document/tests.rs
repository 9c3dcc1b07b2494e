use std::collections::BTreeMap;
use std::fmt::Write;

use proptest::prelude::*;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::*;
use crate::any_case::AnyCase;
use crate::text::MAX_BYTES;
use crate::values::{Entries, TextOr};

/// A mapping of texts and lists of texts.
type Texts = Entries<String, TextOr<Vec<String>>>;

fn error<T: DeserializeOwned>(text: &str) -> String {
    match parse::<T>("f.yaml", text.as_bytes()) {
        Ok(_) => format!("accepted: {text:?}"),
        Err(error) => match error.hint() {
            Some(hint) => format!("{error}\nhint: {hint}"),
            None => error.to_string(),
        },
    }
}

#[derive(Deserialize, Serialize, PartialEq, Debug)]
#[serde(deny_unknown_fields)]
struct Scalars {
    text: Option<String>,
    flag: Option<bool>,
    number: Option<u32>,
    list: Option<Vec<String>>,
}

#[test]
fn text_is_what_the_file_says() {
    for (text, expected) in [
        ("1809", "1809"),
        ("2.50", "2.50"),
        ("007", "007"),
        ("0x10", "0x10"),
        ("1_000", "1_000"),
        ("yes", "yes"),
        ("true", "true"),
        ("'true'", "true"),
        ("''", ""),
        ("\"x\\ty\"", "x\ty"),
        (r"'PCI\VEN_10DE&DEV_1EB8\3&13'", r"PCI\VEN_10DE&DEV_1EB8\3&13"),
        ("|\n  two\n  lines\n", "two\nlines\n"),
    ] {
        let read: Scalars = parse("f", format!("text: {text}").as_bytes()).unwrap();
        assert_eq!(read.text.as_deref(), Some(expected), "{text}");
    }
}

#[test]
fn wrong_values_are_named_with_their_line_and_key() {
    let table = [
        "flag: yes",
        "flag: [true]",
        "\n\nnumber: four",
        "number: 1.5",
        "number: -1",
        "number: 4294967296",
        "number: \"x\\ny\"",
        "number: [4",
        "number 4",
        "number = 4",
        "list:\n- a\n- [b]",
        "list: a",
        "text: {a: b}",
        "txt: a",
        "colour: a",
        "text: a\ntext: b",
        "[text]",
        "text: a\n\"od\\nd\": 1",
    ];
    insta::assert_snapshot!(table.map(error::<Scalars>).join("\n"));
}

#[test]
fn keys_in_any_case_are_unique() {
    let read: AnyCase<Scalars> = parse("f", b"TEXT: a\nNumber: 1").unwrap();
    assert_eq!((read.0.text.as_deref(), read.0.number), (Some("a"), Some(1)));
    let table = ["text: a\nTEXT: b", "text: a\nTXET: b", "list:\n- text: a\nLIST: 1"];
    insta::assert_snapshot!(table.map(error::<AnyCase<Scalars>>).join("\n"));
}

#[test]
fn keys_that_are_data_are_unique_in_any_case_and_quoted_in_paths() {
    let table = ["a: x\nA: y", "'01': [x]\nb.c: [{}]", "a: 1.5", "[a]"];
    insta::assert_snapshot!(table.map(error::<Texts>).join("\n"));
}

#[test]
fn a_file_without_content_has_no_keys() {
    for text in
        ["", "# nothing\n", "\u{FEFF}", "---", "# nothing\n---\n", "null\n", "--- ~", "---\nnull\n"]
    {
        assert!(parse::<Scalars>("f", text.as_bytes()).is_ok(), "{text:?}");
    }
}

#[test]
fn syntax_errors_name_the_line() {
    let table = [
        "a: 1\n---\nb: 2\n",
        "a: 1\n\tb: 2\n",
        "a: [1, 2\nb: 3\n",
        "a: 'x\n",
        "a: 1\nb\n",
        "a: !mine {b: c}",
        "a: 1\nb: *nobody\n",
        "? [x]\n: y\n",
        "a: %x\n",
        "@a: x\n",
        "a:\n  - x\n b: y\n",
        "a: 1\n<<: {b: 2}\n",
        "{\n\t\"a\": 1,\n\t\"b\" 2\n}",
        "{\n\"a\": \"\\ud83d\"\n}",
        "{\n\"a\": 1\n",
        "{\"a\": 1} x",
    ];
    insta::assert_snapshot!(table.map(error::<Entries<String, IgnoredAny>>).join("\n"));
}

#[test]
fn aliases_stand_for_their_value() {
    let texts = parse::<Texts>("f", b"b: &x [p, q]\na: *x\n").unwrap();
    assert_eq!(texts.0["a"], TextOr::Several(vec!["p".to_owned(), "q".to_owned()]));
}

/// Each of these once took gigabytes or seconds; here they must end at a limit.
#[test]
fn files_that_explode_are_refused() {
    let mut laughs = String::from("l0: &l0 [x, x, x, x, x, x, x, x, x, x]\n");
    for n in 1..40 {
        let item = format!("*l{}, ", n - 1).repeat(10);
        writeln!(laughs, "l{n}: &l{n} [{item}]").unwrap();
    }
    for (name, text) in [
        ("laughs", laughs),
        ("flow list", format!("a: [{}", "a,".repeat(700_000))),
        ("flow mapping", format!("{{{}", "a,".repeat(700_000))),
        ("flow mapping of many keys", {
            let keys: String = (0..600_000).fold(String::new(), |all, n| all + &format!("k{n},"));
            format!("{{{keys}")
        }),
        ("block list", "- a\n".repeat(600_000)),
        ("anchors", (0..200_000).fold(String::new(), |all, n| all + &format!("k{n}: &a{n} x\n"))),
        ("documents", "---\n".repeat(100_000)),
        ("deep blocks", "- ".repeat(300_000)),
    ] {
        assert!(text.len() < MAX_BYTES, "{name}: {}", text.len());
        let error = parse::<Entries<String, IgnoredAny>>("f.yaml", text.as_bytes());
        let error = error.unwrap_err().to_string();
        assert!(error.starts_with("f.yaml:") && error.len() < 300, "{name}: {error}");
    }
}

#[test]
fn nesting_is_bounded() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("{a: ", "}")] {
        let fits = open.repeat(MAX_DEPTH) + "1" + &close.repeat(MAX_DEPTH);
        assert!(parse::<IgnoredAny>("f", fits.as_bytes()).is_ok(), "{open}");
        for depth in [MAX_DEPTH + 1, 300_000] {
            let error = parse::<IgnoredAny>("f", open.repeat(depth).as_bytes());
            assert!(error.is_err(), "{open} {depth}");
        }
    }
}

proptest! {
    #[test]
    fn any_yaml_tokens_are_read_or_refused_without_a_panic(
        tokens in prop::collection::vec(
            prop::sample::select(vec![
                "a", ":", " ", "\n", "- ", "? ", "[", "]", "{", "}", ",", "&x ", "*x", "!t ", "'",
                "\"", "|", ">", "#", "---", "...", "\t", "%YAML 1.2", "<<", "\\u", "\\ud83d", "0x",
                "~", "\r", "\u{FEFF}", "\u{85}",
            ]),
            0..40,
        )
    ) {
        let _ = parse::<Texts>("f", tokens.concat().as_bytes());
    }

    #[test]
    fn json_strings_read_as_serde_json_reads_them(text in any::<String>()) {
        let json = serde_json::json!({ "a": [text, text] });
        let expected = TextOr::Several(vec![text.clone(), text]);
        for document in [json.to_string(), serde_json::to_string_pretty(&json).unwrap()] {
            prop_assert_eq!(&parse::<Texts>("f", document.as_bytes()).unwrap().0["a"], &expected);
        }
    }

    #[test]
    fn text_is_written_so_that_it_reads_back(text in any::<String>(), key in any::<String>()) {
        let yaml = serde_saphyr::to_string(&BTreeMap::from([(&key, &text)])).unwrap();
        let texts = Entries([(key, TextOr::Text(text))].into());
        prop_assert_eq!(parse::<Texts>("f", yaml.as_bytes()), Ok(texts));
    }
}
