//! What the programs print about themselves, and their reference in `docs/reference`.

use std::path::Path;

use crate::outcome::{
    GEN_DEVICE_MOUNTS, Outcome, QUERY_HCS_CAPABILITIES, TEST_DEVICE_DISCOVERY, program,
};

/// Set to write the reference instead of comparing it.
const UPDATE: &str = "UPDATE_REFERENCE";

const PROGRAMS: [&str; 3] = [GEN_DEVICE_MOUNTS, QUERY_HCS_CAPABILITIES, TEST_DEVICE_DISCOVERY];

#[test]
fn the_reference_is_what_the_programs_are_defined_by() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    for command in tools::programs() {
        let file = folder.join(format!("{}.md", command.get_name()));
        let defined = cli::markdown(&command);
        if std::env::var_os(UPDATE).is_some() {
            std::fs::write(&file, &defined).unwrap();
        }
        let written = std::fs::read_to_string(&file).unwrap_or_default().replace("\r\n", "\n");
        assert_eq!(written, defined, "{}: set {UPDATE}=1 to write it anew", file.display());
    }
}

#[test]
fn every_program_teaches_with_an_example_and_tells_its_version() {
    for path in PROGRAMS {
        let help = Outcome::of(&mut program(path, &["--help"]));
        assert_eq!(help.code, Some(0), "{help}");
        assert!(help.stdout.contains("\nExamples:\n"), "{help}");
        // No terminal, no colours.
        assert!(!help.stdout.contains('\u{1b}'), "{help}");
        let version = Outcome::of(&mut program(path, &["--version"]));
        assert!(version.stdout.ends_with(concat!(" ", env!("CARGO_PKG_VERSION"), "\n")));
    }
}

#[test]
fn every_program_completes_its_options_in_every_shell() {
    for path in PROGRAMS {
        for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
            let outcome = Outcome::of(&mut program(path, &["--completions", shell]));
            assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{shell}");
            assert!(outcome.stdout.contains("inventory"), "{shell}");
        }
    }
}

#[test]
fn wrong_usage_exits_2_without_a_word_on_standard_output() {
    for path in PROGRAMS {
        for words in [&["--no-such-option"][..], &["--completions", "tcsh"]] {
            let outcome = Outcome::of(&mut program(path, words));
            assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""), "{outcome}");
        }
    }
}

#[test]
fn the_commands_of_the_guide_are_understood() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/image-developers.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let mut understood = 0;
    for block in guide.split("```console\n").skip(1) {
        for line in block.split("```").next().unwrap().lines() {
            let line = line.replace('"', "");
            let mut programs = tools::programs().into_iter();
            let command = programs.find(|c| line.split(' ').next() == Some(c.get_name()));
            let command = command.unwrap_or_else(|| panic!("no program of ours: {line}"));
            if let Err(error) = command.try_get_matches_from(line.split_whitespace()) {
                panic!("{line}: {error}");
            }
            understood += 1;
        }
    }
    assert!(understood > 5, "the guide has more commands than {understood}");
}
