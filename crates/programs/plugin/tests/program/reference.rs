//! Help, versions and completions of the programs, and their pages in `docs/reference`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::ValueEnum as _;
use clap_complete::Shell;
use serde_json::Value;

use crate::harness::{inventories, outcome, recorded};

const PLUGIN: &str = env!("CARGO_BIN_EXE_directx-device-plugin");

/// The path of each program, which cargo builds beside the plugin, and its definition.
fn programs() -> [(PathBuf, clap::Command); 3] {
    plugin::programs().map(|command| {
        let file = format!("{}{}", command.get_name(), std::env::consts::EXE_SUFFIX);
        (Path::new(PLUGIN).with_file_name(file), command)
    })
}

/// The programs for one driver model need no table: `serve` has all of their options.
const ONE_MODEL: &str = "
## device-plugin-wddm and device-plugin-mcdm

The same as `directx-device-plugin serve --driver-model wddm` and `mcdm`, with the other options of `serve`, under the names of
earlier plugins.
";

#[test]
fn the_reference_page_matches_the_programs() {
    let [plugin, one_model @ ..] = plugin::programs();
    let page = doc_pages::reference(&plugin, 1);
    doc_pages::assert_page("reference/directx-device-plugin.md", &(page.clone() + ONE_MODEL));
    for program in one_model {
        let reference = doc_pages::reference(&program, 1);
        for row in reference.lines().filter(|line| line.starts_with('|')) {
            assert!(page.contains(row), "{}: {row}", program.get_name());
        }
    }
}

const JSON_PAGE: &str = include_str!("../../../../../docs/reference/json.md");

/// What the page says about the document of a command: the path of each key, and its type.
fn described(command: &str) -> BTreeMap<&'static str, &'static str> {
    let heading = format!("## {command}");
    let section = JSON_PAGE.lines().skip_while(|line| *line != heading).skip(1);
    let lines = section.take_while(|line| !line.starts_with("## "));
    let block = lines.skip_while(|line| *line != "```text").skip(1);
    block.map_while(|line| line.split_once(": ")).collect()
}

/// Adds the keys in a value, each with its path as the page writes it.
fn add_keys<'a>(found: &mut Vec<(String, &'a Value)>, value: &'a Value, path: &str) {
    match value {
        Value::Object(keys) => {
            for (key, value) in keys {
                let key = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                add_keys(found, value, &key);
                found.push((key, value));
            }
        }
        Value::Array(elements) => {
            for element in elements {
                add_keys(found, element, &format!("{path}[]"));
            }
        }
        _ => {}
    }
}

/// Whether a value has the type that the page gives for it.
fn has_type(value: &Value, kind: &str) -> bool {
    match value {
        Value::Null => kind.ends_with(" or null"),
        Value::Bool(_) => kind.starts_with("boolean"),
        Value::Number(number) => kind.starts_with("integer") && !number.is_f64(),
        Value::String(_) => kind.starts_with("string"),
        Value::Array(elements) => kind
            .strip_prefix("list of ")
            .is_some_and(|kind| elements.iter().all(|element| has_type(element, kind))),
        Value::Object(_) => kind.starts_with("object"),
    }
}

/// Fails unless the page has every key of the documents with its type, and every key of the page is
/// in a document, except for optional ones.
pub(crate) fn assert_described(command: &str, documents: &[Value]) {
    let page = described(command);
    let mut found = Vec::new();
    for document in documents {
        add_keys(&mut found, document, "");
    }
    for (path, value) in &found {
        // The names of variables and labels are keys, too. Those of labels contain dots.
        let mut maps = page.iter().filter(|(_, kind)| **kind == "object with strings");
        let is_in_map =
            value.is_string() && maps.any(|(map, _)| path.starts_with(&format!("{map}.")));
        let has_row = page.get(path.as_str()).is_some_and(|kind| has_type(value, kind));
        assert!(has_row || is_in_map, "{command}: the page lacks {path} with {value}, or its type");
    }
    for (path, kind) in page {
        let is_found = found.iter().any(|(found, _)| found == path);
        assert!(is_found || kind.ends_with(", optional"), "{command}: no document has {path}");
    }
}

/// The test of `status` compares its document.
#[test]
fn the_page_about_json_describes_what_the_commands_print() {
    let pod = "--pod=one=directx.microsoft.com/display:1,directx.microsoft.com/compute:1";
    for (command, runs) in [("devices", &[&[][..]][..]), ("simulate", &[&[], &[pod]])] {
        let mut documents = Vec::new();
        for arguments in runs {
            for name in inventories() {
                let mut program = Command::new(PLUGIN);
                program.args([command, "--output", "json", "--inventory"]).arg(recorded(&name));
                let (_, out, err) = outcome(&program.args(*arguments).output().unwrap());
                let document = serde_json::from_str(&out);
                documents.push(document.unwrap_or_else(|_| panic!("{name}: {err}")));
            }
        }
        assert_described(command, &documents);
    }
}

fn stdout(program: &Path, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    let (status, out, err) = outcome(&output);
    assert_eq!((status, err.as_str()), (Some(0), ""), "{arguments:?}");
    out
}

#[test]
fn every_program_has_examples_and_a_version() {
    for (program, _) in programs() {
        let help = stdout(&program, &["--help"]);
        assert!(help.contains("\nExamples:\n"), "{help}");
        // No terminal, no colors.
        assert!(!help.contains('\u{1b}'), "{help}");
        let version = stdout(&program, &["--version"]);
        assert!(version.ends_with(concat!(" ", env!("CARGO_PKG_VERSION"), "\n")), "{version}");
    }
}

#[test]
fn every_program_completes_its_options_in_every_shell() {
    for (program, command) in programs() {
        let has_subcommand = command.find_subcommand("completions").is_some();
        let word = if has_subcommand { "completions" } else { "--completions" };
        for shell in Shell::value_variants() {
            let script = stdout(&program, &[word, &shell.to_string()]);
            assert!(script.contains("device-plugin-dir"), "{shell}: {script}");
        }
    }
}

/// Loads the script as `docs/programs.md` says.
#[cfg(unix)]
#[test]
fn bash_completes_commands_options_and_values() {
    let complete = r#"
        source <("$0" completions bash)
        [[ $(complete -p "$1") =~ -F\ ([^ ]+) ]]
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
        "${BASH_REMATCH[1]}" "$1" "${@: -1}" "${@: -2:1}"
        echo "${COMPREPLY[@]}""#;
    for (words, expected) in [
        (&["sim"][..], "simulate\n"),
        (&["simulate", "--inv"], "--inventory\n"),
        (&["simulate", "--output", ""], "text json node\n"),
        (&["service", "un"], "uninstall\n"),
    ] {
        let mut bash = Command::new("bash");
        bash.args(["-c", complete, PLUGIN, "directx-device-plugin"]).args(words);
        let (_, out, err) = outcome(&bash.output().unwrap());
        assert_eq!((out.as_str(), err.as_str()), (expected, ""), "{words:?}");
    }
}
