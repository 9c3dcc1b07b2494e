//! Help, versions and completions of the programs, and their pages in `docs/reference`.

use std::process::Command;

use crate::harness::outcome;

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
            &["--pod", "--config", "--inventory", "--driver-model", "--output", "--verbose"],
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
