//! What is read, what is refused, and with which message.

use std::fmt::Write;
use std::str::FromStr;

use documents::{
    AnyCase, Entries, Flag, LenientFlag, LenientWhole, MAX_BYTES, MAX_DEPTH, Names, OneOf, Parsed,
    ReadError, Text, TextOrList, Whole, parse, present, to_yaml,
};
use proptest::prelude::*;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};

#[derive(Deserialize, Serialize, PartialEq, Debug)]
struct A<T> {
    a: T,
}

fn read<T: DeserializeOwned>(text: &str) -> Result<T, ReadError> {
    parse::<A<T>>("f.yaml", text.as_bytes()).map(|read| read.a)
}

fn message(error: &ReadError) -> String {
    match error.hint() {
        Some(hint) => format!("{error}\nhint: {hint}"),
        None => error.to_string(),
    }
}

/// The messages of texts that do not read as a `T`.
fn refused<T: DeserializeOwned>(texts: &[&str]) -> String {
    let one = |text: &&str| match read::<T>(text) {
        Ok(_) => format!("accepted: {text:?}"),
        Err(error) => message(&error),
    };
    texts.iter().map(one).collect::<Vec<_>>().join("\n")
}

#[test]
fn text_is_what_is_quoted_and_plain_numbers_that_read_back() {
    for (text, wanted) in [
        ("a: 1809", "1809"),
        ("a: '1809'", "1809"),
        ("a: 2.5", "2.5"),
        ("a: 010", "010"),
        ("a: 1_000", "1_000"),
        ("a: 10.0.20348.1547", "10.0.20348.1547"),
        ("a: 21H2", "21H2"),
        ("a: yes", "yes"),
        ("a: 'true'", "true"),
        ("a: ''", ""),
        ("a: \"x\\ty\"", "x\ty"),
        (r"a: 'PCI\VEN_10DE&DEV_1EB8\3&13'", r"PCI\VEN_10DE&DEV_1EB8\3&13"),
        ("a: |\n  two\n  lines\n", "two\nlines\n"),
        ("{\"a\": \"\\ud83d\\ude00\\u00e9\\/\"}", "😀é/"),
    ] {
        assert_eq!(read::<Text>(text), Ok(Text(wanted.to_owned())), "{text}");
    }
    insta::assert_snapshot!(refused::<Text>(&[
        "a: true",
        "a:\nb: 1",
        "a: ~",
        "b: 1\na: [x]",
        "a: {b: c}",
        "a: 0x10",
        "a: 2.50",
        "a: 1e3",
    ]));
}

#[test]
fn whole_numbers() {
    type I64 = Whole<i64, { i64::MIN as i128 }, { i64::MAX as i128 }>;
    for (text, wanted) in [
        ("a: 0x10DE", 0x10DE),
        ("a: 0o17", 15),
        ("a: -5", -5),
        ("{\"a\": 12}", 12),
        ("a: 9223372036854775807", i64::MAX),
        ("a: -9223372036854775808", i64::MIN),
    ] {
        assert_eq!(read::<I64>(text), Ok(Whole(wanted)), "{text}");
    }
    insta::assert_snapshot!(refused::<I64>(&[
        "a: abc",
        "a: '5'",
        "a: 1.5",
        "a: 010",
        "a: 9223372036854775808",
        "a: 99999999999999999999999999999999999999999999999999999999",
        "a: 1e3",
        "a: []",
        "a:",
    ]));
    assert_eq!(read::<LenientWhole<u8, 0, 9>>("a: \"4\""), Ok(LenientWhole(4)));
    insta::assert_snapshot!(
        "ranges",
        refused::<LenientWhole<u8, 0, 9>>(&["a: -1", "a: 10", "a: '10'", "a: '04'", "a: four"])
    );
}

#[test]
fn booleans() {
    for (text, wanted) in [("a: true", true), ("a: FALSE", false), ("{\"a\": true}", true)] {
        assert_eq!(read::<Flag>(text), Ok(Flag(wanted)), "{text}");
    }
    assert_eq!(read::<LenientFlag>("a: 'True'"), Ok(LenientFlag(true)));
    insta::assert_snapshot!(refused::<Flag>(&["a: yes", "a: 1", "a: \"true\"", "a:"]));
}

#[derive(PartialEq, Debug)]
struct Sizes;

impl Names<u8> for Sizes {
    fn names() -> impl Iterator<Item = (&'static str, u8)> {
        [("small", 1), ("medium", 2), ("large", 3)].into_iter()
    }
}

#[test]
fn choices_are_named() {
    assert_eq!(read::<OneOf<u8, Sizes>>("a: Large"), Ok(3.into()));
    insta::assert_snapshot!(refused::<OneOf<u8, Sizes>>(&["a: smal", "a: off", "a: false"]));
}

#[test]
fn the_error_of_a_parsed_type_becomes_the_message() {
    insta::assert_snapshot!(refused::<Parsed<std::net::Ipv4Addr>>(&["a: x", "a: 5", "a: true"]));
}

#[test]
fn one_text_or_a_list() {
    assert_eq!(read::<TextOrList>("a: x"), Ok(TextOrList::One("x".into())));
    let list = TextOrList::List(vec!["x".into(), "5".into()]);
    assert_eq!(read::<TextOrList>("a: [x, 5]"), Ok(list));
    assert_eq!(read::<TextOrList>("a: []"), Ok(TextOrList::List(Vec::new())));
    insta::assert_snapshot!(refused::<TextOrList>(&["a: [x, true]", "a: {b: c}", "a:"]));
}

#[derive(Deserialize, PartialEq, Debug)]
#[serde(deny_unknown_fields)]
struct Outer {
    outer: Inner,
}

#[derive(Deserialize, PartialEq, Debug)]
#[serde(deny_unknown_fields)]
struct Inner {
    name: Text,
    #[serde(default, deserialize_with = "present")]
    size: Option<Whole<u8, 0, 9>>,
}

fn outer_error<T: DeserializeOwned>(text: &str) -> String {
    parse::<T>("f.yaml", text.as_bytes()).err().map_or("accepted".to_owned(), |e| message(&e))
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
            "outer:\n  name: x\n  size:",
            "outer:\n  name: x\n  size: 1\n  name: y",
            "{\"outer\": {\"name\": \"x\",\n\"name\": \"y\"}}",
            "outer: {NAME: x}",
            "",
            "# nothing\n---\n",
            "[outer]",
            "outer: {name: x}\n\"od\\nd\": 1",
        ]
        .map(outer_error::<Outer>)
        .join("\n")
    );
}

#[derive(Deserialize, PartialEq, Debug)]
#[serde(deny_unknown_fields)]
struct AnyCaseOuter {
    outer: AnyCase<Inner>,
}

#[test]
fn keys_in_any_case() {
    type File = AnyCase<AnyCaseOuter>;
    assert_eq!(outer_error::<File>("OUTER: {Name: x, SIZE: 1}"), "accepted");
    insta::assert_snapshot!(
        [
            "outer:\n  name: x\n  NAME: y",
            "outer:\n  name: x\n  size: 1\n  Size: 2",
            "outer:\n  name: x\n  SIEZ: 2",
            "outer: [x]",
        ]
        .map(outer_error::<File>)
        .join("\n")
    );
}

#[derive(PartialEq, Debug)]
struct Letter(char);

impl FromStr for Letter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse().map(Letter).map_err(|_| format!("`{text}` is not a letter"))
    }
}

#[test]
fn keys_that_are_data_are_parsed_and_unique_in_any_case() {
    let read_entries = read::<Entries<Letter, Text>>;
    let entries = read_entries("a: {x: '1', b: '2'}").unwrap();
    assert_eq!(entries.0[0], (Letter('x'), Text("1".into())));
    insta::assert_snapshot!(refused::<Entries<Letter, Text>>(&[
        "a:\n  x: '1'\n  long: '2'",
        "a:\n  x: '1'\n  X: '2'",
        "a: [x]",
        "a:\n  x: true",
    ]));
}

#[test]
fn paths_quote_the_keys_that_need_it() {
    type Nested = Entries<String, Vec<Entries<String, Text>>>;
    insta::assert_snapshot!(refused::<Nested>(&["a: {'01': [{}, {b.c: true}]}"]));
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
            "a: !mine {b: c}",
            "a: 1\nb: *nobody\n",
            "? [x]\n: y\n",
            "a: %x\n",
            "@a: x\n",
            "a:\n  - x\n b: y\n",
            "a: 1\n<<: {b: 2}\n",
            "{\n\t\"a\": 1,\n\t\"b\" 2\n}",
            "{\n\t\"a\": [1,\n\t}\n}",
            "{\n\"a\": \"\\ud83d\"\n}",
            "{\n\"a\": 1\n",
            "{\"a\": 1} x",
        ]
        .map(outer_error::<Entries<String, IgnoredAny>>)
        .join("\n")
    );
}

#[test]
fn aliases_stand_for_their_value() {
    assert_eq!(
        parse::<Entries<String, Vec<Text>>>("f", b"b: &x [p, q]\na: *x\n").unwrap().0[1].1.len(),
        2
    );
}

/// Each of these once took gigabytes or seconds; here they must end at a limit.
#[test]
fn files_that_explode_are_refused() {
    let mut laughs = String::from("l0: &l0 [x, x, x, x, x, x, x, x, x, x]\n");
    for n in 1..40 {
        let item = format!("*l{}, ", n - 1).repeat(10);
        writeln!(laughs, "l{n}: &l{n} [{item}]").unwrap();
    }
    let lists = |text: &str| format!("a: {text}");
    for (name, text) in [
        ("laughs", laughs),
        ("flow list", lists(&format!("[{}", "a,".repeat(7_000_000)))),
        ("flow mapping", format!("{{{}", "a,".repeat(7_000_000))),
        ("flow mapping of many keys", {
            let keys: String = (0..600_000).fold(String::new(), |all, n| all + &format!("k{n},"));
            format!("{{{keys}")
        }),
        ("block list", "- a\n".repeat(600_000)),
        ("anchors", (0..200_000).fold(String::new(), |all, n| all + &format!("k{n}: &a{n} x\n"))),
        ("documents", "---\n".repeat(100_000)),
        ("comments", "#\n".repeat(3_000_000)),
        ("deep blocks", "- ".repeat(300_000)),
    ] {
        assert!(text.len() < MAX_BYTES, "{name}: {}", text.len());
        let error = parse::<Entries<String, IgnoredAny>>("f.yaml", text.as_bytes());
        if name == "comments" {
            assert!(error.is_ok(), "{name}");
            continue;
        }
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
    fn any_text_is_read_or_refused_without_a_panic(text in "[ -~\\n\\t\\PC]{0,80}") {
        let _ = parse::<AnyCase<AnyCaseOuter>>("f", text.as_bytes());
    }

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
        let _ = parse::<Entries<String, TextOrList>>("f", tokens.concat().as_bytes());
    }

    #[test]
    fn json_strings_read_as_serde_json_reads_them(text in any::<String>()) {
        let json = serde_json::json!({ "a": [text, text] });
        let wanted = Ok(TextOrList::List(vec![text.clone(), text]));
        for document in [json.to_string(), serde_json::to_string_pretty(&json).unwrap()] {
            prop_assert_eq!(&read::<TextOrList>(&document), &wanted);
        }
    }

    #[test]
    fn text_is_written_so_that_it_reads_back(text in any::<String>(), key in any::<String>()) {
        let value = A { a: Entries(vec![(key, TextOrList::One(text))]) };
        let yaml = to_yaml(&value).unwrap();
        prop_assert_eq!(parse::<A<Entries<String, TextOrList>>>("f", yaml.as_bytes()), Ok(value));
    }
}
