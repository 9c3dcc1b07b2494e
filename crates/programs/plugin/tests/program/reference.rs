//! Help, versions and completions of the programs, and their pages in `docs/reference`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::process::Command;

use serde_json::Value;

use crate::harness::{inventories, outcome, recorded};

const PROGRAMS: [&str; 3] = [
    env!("CARGO_BIN_EXE_directx-device-plugin"),
    env!("CARGO_BIN_EXE_device-plugin-wddm"),
    env!("CARGO_BIN_EXE_device-plugin-mcdm"),
];

#[test]
fn the_reference_pages_match_the_programs() {
    for command in plugin::programs() {
        let page = format!("reference/{}.md", command.get_name());
        doc_pages::assert_page(&page, &doc_pages::reference(&command));
    }
}

/// The commands whose JSON is described, each with the struct of the document and its source.
const DOCUMENTS: [(&str, &str, &str); 3] = [
    ("devices", "Document", include_str!("../../src/devices/json.rs")),
    ("simulate", "Document", include_str!("../../src/simulate/json.rs")),
    ("status", "Report", include_str!("../../../../application/daemon/src/status.rs")),
];

const JSON_PAGE: &str = "\
# JSON of directx-device-plugin

What the commands print with `--output json`. `[]` in a path stands for each element of a list. New versions may add keys; existing
keys stay. Errors and warnings go to standard error.

Other pages describe the JSON of [`doctor`](../doctor.md), [`verify`](../verify.md#reports) and [`gpu-probe`](../probe.md#json).
";

#[test]
fn the_page_about_json_matches_the_structs() {
    let mut page = JSON_PAGE.to_owned();
    for (command, document, source) in DOCUMENTS {
        let table = doc_pages::json_table(&doc_pages::json_keys(source, document));
        writeln!(page, "\n## {command}\n\n{}", table.trim_end()).unwrap();
    }
    doc_pages::assert_page("reference/json.md", &page);
}

/// The paths of the keys in a document, as the page writes them.
fn add_paths(paths: &mut BTreeSet<String>, value: &Value, path: &str) {
    match value {
        Value::Object(keys) => {
            for (key, value) in keys {
                let key = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                add_paths(paths, value, &key);
                paths.insert(key);
            }
        }
        Value::Array(elements) => {
            for element in elements {
                add_paths(paths, element, &format!("{path}[]"));
            }
        }
        _ => {}
    }
}

#[test]
fn documents_have_the_keys_of_the_page() {
    let pod = "--pod=one=directx.microsoft.com/display:1,directx.microsoft.com/compute:1";
    for (command, runs) in [("devices", &[&[][..]][..]), ("simulate", &[&[], &[pod]])] {
        let (_, document, source) = DOCUMENTS.into_iter().find(|d| d.0 == command).unwrap();
        let keys: BTreeMap<String, doc_pages::JsonKey> = doc_pages::json_keys(source, document)
            .into_iter()
            .map(|key| (key.path.clone(), key))
            .collect();
        let mut paths = BTreeSet::new();
        for arguments in runs {
            for name in inventories() {
                let mut program = Command::new(PROGRAMS[0]);
                program.args([command, "--output", "json", "--inventory"]).arg(recorded(&name));
                let (_, out, err) = outcome(&program.args(*arguments).output().unwrap());
                let document =
                    serde_json::from_str(&out).unwrap_or_else(|_| panic!("{name}: {err}"));
                add_paths(&mut paths, &document, "");
            }
        }
        for path in &paths {
            // The names of variables are keys, too.
            let map = path.rsplit_once('.').and_then(|(map, _)| keys.get(map));
            let is_in_map = map.is_some_and(|map| map.kind == "object with strings");
            assert!(keys.contains_key(path) || is_in_map, "{command}: {path} is not described");
        }
        for key in keys.values().filter(|key| !key.is_optional) {
            assert!(paths.contains(&key.path), "{command}: no document has {}", key.path);
        }
        assert_eq!(paths.contains("pods[].requests[].count"), command == "simulate");
    }
}

fn stdout(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    let (status, out, err) = outcome(&output);
    assert_eq!((status, err.as_str()), (Some(0), ""), "{arguments:?}");
    out
}

#[test]
fn every_program_has_examples_and_a_version() {
    for program in PROGRAMS {
        let help = stdout(program, &["--help"]);
        assert!(help.contains("\nExamples:\n"), "{help}");
        // No terminal, no colors.
        assert!(!help.contains('\u{1b}'), "{help}");
        let version = stdout(program, &["--version"]);
        assert!(version.ends_with(concat!(" ", env!("CARGO_PKG_VERSION"), "\n")), "{version}");
    }
}

#[test]
fn every_program_completes_its_options() {
    for (program, arguments) in PROGRAMS.into_iter().zip([
        &["completions", "bash"][..],
        &["--completions", "powershell"],
        &["--completions", "zsh"],
    ]) {
        let script = stdout(program, arguments);
        assert!(script.contains("--device-plugin-dir"), "{arguments:?}");
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
        (&["simulate", "--output", ""], "text json\n"),
        (&["service", "un"], "uninstall\n"),
    ] {
        let mut bash = Command::new("bash");
        bash.args(["-c", complete, PROGRAMS[0], "directx-device-plugin"]).args(words);
        let (_, out, err) = outcome(&bash.output().unwrap());
        assert_eq!((out.as_str(), err.as_str()), (expected, ""), "{words:?}");
    }
}

/// The options in the help of a command, in the order of the help.
fn options(help: &str) -> Vec<&str> {
    let help = help.split("Examples:").next().unwrap();
    let lines = help.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
    // Possible values are list items: a dash and a space.
    let options = lines.filter(|line| !line.starts_with("- "));
    options.map(|line| line.split(' ').find(|word| word.starts_with("--")).unwrap()).collect()
}

#[test]
fn help_lists_own_options_first_then_help_then_logging() {
    let [program, thin, _] = PROGRAMS;
    for (command, own) in [
        (
            "serve",
            &[
                "--driver-model",
                "--config",
                "--inventory",
                "--device-plugin-dir",
                "--log-file",
                "--listen",
                "--pod-resources",
            ][..],
        ),
        (
            "simulate",
            &[
                "--pod",
                "--gpu",
                "--config",
                "--inventory",
                "--driver-model",
                "--output",
                "--verbose",
            ],
        ),
        ("devices", &["--filter", "--inventory", "--output"]),
        ("record", &["--output", "--inventory"]),
        (
            "doctor",
            &[
                "--try",
                "--skip",
                "--wait-for-event",
                "--image",
                "--namespace",
                "--image-os-version",
                "--config",
                "--inventory",
                "--driver-model",
                "--device-plugin-dir",
                "--output",
            ],
        ),
        (
            "verify",
            &[
                "--skip",
                "--wait-for-event",
                "--image",
                "--namespace",
                "--image-os-version",
                "--config",
                "--inventory",
                "--driver-model",
                "--device-plugin-dir",
                "--output",
            ],
        ),
        ("status", &["--live", "--driver-model", "--device-plugin-dir", "--output"]),
        ("service", &[]),
        ("completions", &[]),
    ] {
        let last = ["--help", "--log-format", "--log-level"];
        for flag in ["--help", "-h"] {
            let help = stdout(program, &[command, flag]);
            assert_eq!(options(&help), [own, &last].concat(), "{help}");
        }
    }
    let last = ["--help", "--version", "--log-format", "--log-level"];
    assert_eq!(options(&stdout(program, &["--help"])), last);
    let own = [
        "--config",
        "--inventory",
        "--device-plugin-dir",
        "--log-file",
        "--listen",
        "--pod-resources",
        "--completions",
    ];
    assert_eq!(options(&stdout(thin, &["--help"])), [&own[..], &last].concat());
}
