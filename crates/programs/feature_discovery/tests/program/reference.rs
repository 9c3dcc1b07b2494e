//! Help, version and completions, and the reference in `docs/reference/tools.md`.

use crate::run;

#[test]
fn the_reference_is_up_to_date() {
    let command = feature_discovery::command();
    let begin = "<!-- generated from crates/programs/feature_discovery by cargo xtask update -->\n";
    doc_pages::assert_part("reference/tools.md", begin, &doc_pages::reference(&command, 2));
}

#[test]
fn the_program_has_examples_a_version_and_completions() {
    let (status, help, _) = run(&["--help"]);
    assert!(status == Some(0) && help.contains("\nExamples:\n"), "{help}");
    let (_, version, _) = run(&["--version"]);
    assert!(version.ends_with(concat!(" ", env!("CARGO_PKG_VERSION"), "\n")), "{version}");
    let command = feature_discovery::command();
    let option = command.get_arguments().find(|argument| argument.get_id() == "completions");
    for shell in option.unwrap().get_possible_values() {
        let shell = shell.get_name();
        let (status, script, error) = run(&["--completions", shell]);
        assert_eq!((status, error.as_str()), (Some(0), ""), "{shell}");
        assert!(script.contains("gfd-labels"), "{shell}");
    }
}
