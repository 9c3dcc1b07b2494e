//! Help, version and completions of the programs, and their reference in `docs/reference/tools.md`.

use std::path::Path;

use crate::outcome::{GEN_DEVICE_MOUNTS, Outcome, program};

/// The path of each program, which cargo builds in one folder, and its definition.
fn programs() -> [(String, clap::Command); 3] {
    tools::programs().map(|command| {
        let file = format!("{}{}", command.get_name(), std::env::consts::EXE_SUFFIX);
        (Path::new(GEN_DEVICE_MOUNTS).with_file_name(file).display().to_string(), command)
    })
}

/// The values of an option.
pub(crate) fn values(command: &clap::Command, option: &str) -> Vec<String> {
    let option = command.get_arguments().find(|argument| argument.get_id() == option).unwrap();
    option.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect()
}

#[test]
fn the_references_are_up_to_date() {
    let references = tools::programs().map(|command| doc_pages::reference(&command, 2));
    let begin = "<!-- generated from crates/programs/tools by cargo xtask update -->\n";
    doc_pages::assert_part("reference/tools.md", begin, &references.join("\n"));
}

#[test]
fn every_program_has_examples_and_a_version() {
    for (path, _) in programs() {
        let help = Outcome::of(&mut program(&path, &["--help"]));
        assert_eq!(help.code, Some(0), "{help}");
        assert!(help.stdout.contains("\nExamples:\n"), "{help}");
        // No colors without a terminal.
        assert!(!help.stdout.contains('\u{1b}'), "{help}");
        let version = Outcome::of(&mut program(&path, &["--version"]));
        assert!(version.stdout.ends_with(concat!(" ", env!("CARGO_PKG_VERSION"), "\n")));
    }
}

#[test]
fn a_file_and_a_word_without_their_option_are_named_with_it() {
    for (path, command) in programs() {
        let name = command.get_name();
        // The words of `gen-device-mounts` are those of a container.
        let takes_words = command.get_positionals().next().is_some();
        for (word, tip) in [
            ("host.yaml", "tip: write `--inventory host.yaml`".to_owned()),
            ("version", format!("tip: write `{name} --version`")),
        ] {
            let outcome = Outcome::of(&mut program(&path, &[word]));
            assert_eq!(outcome.code, Some(2), "{outcome}");
            assert!(takes_words || outcome.stderr.contains(&tip), "{outcome}");
        }
    }
}

#[test]
fn every_program_has_completions_for_every_shell() {
    for (path, command) in programs() {
        for shell in values(&command, "completions") {
            let outcome = Outcome::of(&mut program(&path, &["--completions", &shell]));
            assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{shell}");
            assert!(outcome.stdout.contains("inventory"), "{shell}");
        }
    }
}

#[test]
fn wrong_usage_exits_2_and_prints_nothing_to_standard_output() {
    for (path, _) in programs() {
        for words in [&["--no-such-option"][..], &["--completions", "tcsh"]] {
            let outcome = Outcome::of(&mut program(&path, words));
            assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""), "{outcome}");
        }
    }
}

#[test]
fn the_commands_of_the_guide_are_valid() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/image-developers.md");
    let guide = std::fs::read_to_string(page).unwrap();
    let mut parsed = 0;
    for block in guide.split("```console\n").skip(1) {
        for line in block.split("```").next().unwrap().lines() {
            let line = line.replace('"', "");
            let name = line.split(' ').next();
            let command = tools::programs()
                .into_iter()
                .find(|command| name == Some(command.get_name()))
                .unwrap_or_else(|| panic!("unknown program: {line}"));
            if let Err(error) = command.try_get_matches_from(line.split_whitespace()) {
                panic!("{line}: {error}");
            }
            parsed += 1;
        }
    }
    assert!(parsed > 4, "the guide has only {parsed} commands");
}
