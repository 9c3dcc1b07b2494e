//! Help, version and completions, and the reference page in `docs/reference`.

use std::path::Path;

use crate::run;

/// If set, the test writes the reference page instead of comparing it.
const UPDATE: &str = "UPDATE_REFERENCE";

#[test]
fn the_reference_page_is_up_to_date() {
    let command = feature_discovery::command();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    let file = folder.join(format!("{}.md", command.get_name()));
    let defined = cli::markdown(&command);
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(&file, &defined).unwrap();
    }
    let written = std::fs::read_to_string(&file).unwrap_or_default().replace("\r\n", "\n");
    assert_eq!(written, defined, "{}: set {UPDATE}=1 to update it", file.display());
}

#[test]
fn the_program_has_examples_a_version_and_completions() {
    let (status, help, _) = run(&["--help"]);
    assert!(status == Some(0) && help.contains("\nExamples:\n"), "{help}");
    let (_, version, _) = run(&["--version"]);
    assert!(version.ends_with(concat!(" ", env!("CARGO_PKG_VERSION"), "\n")), "{version}");
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let (status, script, error) = run(&["--completions", shell]);
        assert_eq!((status, error.as_str()), (Some(0), ""), "{shell}");
        assert!(script.contains("gfd-labels"), "{shell}");
    }
}
