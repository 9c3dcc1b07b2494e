//! What the programs print about themselves, and their reference in `docs/reference`.

use std::path::Path;
use std::process::Command;

use crate::harness::outcome;

/// Set to write the reference instead of comparing it.
const UPDATE: &str = "UPDATE_REFERENCE";

const PROGRAMS: [&str; 3] = [
    env!("CARGO_BIN_EXE_directx-device-plugin"),
    env!("CARGO_BIN_EXE_device-plugin-wddm"),
    env!("CARGO_BIN_EXE_device-plugin-mcdm"),
];

#[test]
fn the_reference_is_what_the_programs_are_defined_by() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    for command in plugin::programs() {
        let file = folder.join(format!("{}.md", command.get_name()));
        let defined = cli::markdown(&command);
        if std::env::var_os(UPDATE).is_some() {
            std::fs::write(&file, &defined).unwrap();
        }
        let written = std::fs::read_to_string(&file).unwrap_or_default().replace("\r\n", "\n");
        assert_eq!(written, defined, "{}: set {UPDATE}=1 to write it anew", file.display());
    }
}

fn says(program: &str, words: &[&str]) -> String {
    let output = Command::new(program).args(words).output().unwrap();
    let (status, out, err) = outcome(&output);
    assert_eq!((status, err.as_str()), (Some(0), ""), "{words:?}");
    out
}

#[test]
fn every_program_teaches_with_an_example_and_tells_its_version() {
    for program in PROGRAMS {
        let help = says(program, &["--help"]);
        assert!(help.contains("\nExamples:\n"), "{help}");
        // No terminal, no colours.
        assert!(!help.contains('\u{1b}'), "{help}");
        let version = says(program, &["--version"]);
        assert!(version.ends_with(concat!(" ", env!("CARGO_PKG_VERSION"), "\n")), "{version}");
    }
}

#[test]
fn every_program_completes_its_flags() {
    for (program, words) in PROGRAMS.into_iter().zip([
        &["completions", "bash"][..],
        &["--completions", "powershell"],
        &["--completions", "zsh"],
    ]) {
        let script = says(program, words);
        assert!(script.contains("--device-plugin-dir"), "{words:?}");
    }
}
