//! Help, version, wrong usage and the reference.

use crate::{Outcome, probe};

#[test]
fn the_reference_is_up_to_date() {
    let begin =
        "<!-- generated from crates/containers/gpu_probe/src/help.rs by cargo xtask update -->\n";
    doc_pages::assert_part("reference/tools.md", begin, &gpu_probe::reference());
}

#[test]
fn help_has_examples_and_hides_what_the_child_gets() {
    let help = Outcome::of(&mut probe(&["--help"]));
    assert_eq!(help.code, Some(0), "{help}");
    assert!(help.stdout.contains("\nExamples:\n"), "{help}");
    assert!(!help.stdout.contains("--child"), "{help}");
    let version = Outcome::of(&mut probe(&["--version"]));
    assert!(version.stdout.ends_with(concat!(" ", env!("CARGO_PKG_VERSION"), "\n")));
}

fn usage_error(arguments: &[&str]) -> String {
    let outcome = Outcome::of(&mut probe(arguments));
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""), "{outcome}");
    outcome.stderr
}

#[test]
fn an_unknown_api_exits_2_with_the_nearest_name() {
    let error = usage_error(&["cud"]);
    assert_eq!(error, "error: unknown API `cud`\nhint: did you mean `cuda`?\n");
}

#[test]
fn wrong_values_exit_2() {
    assert!(usage_error(&["--time-limit", "0"]).contains("--time-limit has `0`, expected "));
    assert!(usage_error(&["--expect=x"]).contains("--expect has `x`, which is neither"));
    let error = usage_error(&["--expect"]);
    assert!(error.starts_with("error: DIRECTX_VISIBLE_DEVICES is not set\nhint: set"), "{error}");
    let mut command = probe(&["--expect"]);
    let outcome = Outcome::of(command.env("DIRECTX_VISIBLE_DEVICES_A", "all"));
    let start = "error: DIRECTX_VISIBLE_DEVICES_A has `all`, which is not a LUID\nhint: ";
    assert_eq!(outcome.code, Some(2), "{outcome}");
    assert!(outcome.stderr.starts_with(start), "{outcome}");
}

#[cfg(not(windows))]
#[test]
fn apis_of_windows_exit_2_elsewhere() {
    let error = usage_error(&["d3d12"]);
    assert!(error.starts_with("error: API `d3d12` exists only on Windows\nhint: "), "{error}");
}
