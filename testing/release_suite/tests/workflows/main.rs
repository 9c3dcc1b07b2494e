//! What the workflows name and publish. Only GitHub runs them.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, reason = "a test")]

mod files;
mod gates;
mod publish;

use std::process::Command;

use crate::files::{jobs, output, read, result, steps, workspace};

/// The matrix of the workflow `linux` runs every step of the tests once, and the nightly workflow
/// runs the others.
#[test]
fn the_workflows_run_every_step() {
    let list = |option: Option<&str>| {
        let mut xtask = Command::new(env!("CARGO"));
        xtask.current_dir(workspace()).args(["xtask", "test", "--list"]).args(option);
        let list = output(&mut xtask);
        let mut names: Vec<_> =
            list.lines().map(|line| line.split(' ').next().unwrap().to_owned()).collect();
        names.sort_unstable();
        names
    };
    let mut in_workflow = Vec::new();
    let matrix = &jobs("linux")["test"]["strategy"]["matrix"]["include"];
    for part in matrix.as_array().unwrap() {
        let steps = part["steps"].as_str().unwrap().replace("${{ inputs.more }}", "");
        in_workflow.extend(steps.split_whitespace().map(str::to_owned));
    }
    in_workflow.sort_unstable();
    assert_eq!(in_workflow, list(None));

    let nightly = jobs("nightly");
    let more = nightly["linux"]["with"]["more"].as_str().unwrap();
    let command = steps(&nightly["nightly"]).next().unwrap()["run"].as_str().unwrap();
    let own = command.strip_prefix(".ci/run ").unwrap();
    in_workflow.extend([more, own].join(" ").split(' ').map(str::to_owned));
    in_workflow.sort_unstable();
    assert_eq!(in_workflow, list(Some("--nightly")));
}

#[test]
fn workflow_and_pages_name_the_declared_version_of_rust() {
    let manifest = read(workspace().join("Cargo.toml"));
    let declared = manifest.split("rust-version = \"").nth(1).unwrap().split('"').next().unwrap();
    for (page, text) in [
        (".github/workflows/linux.yml", format!("rustup run --install {declared} cargo check ")),
        ("README.md", format!("[Rust](https://rustup.rs) {declared} or newer")),
        ("CONTRIBUTING.md", format!("[Rust](https://rustup.rs) {declared} or newer")),
    ] {
        assert!(read(workspace().join(page)).contains(&text), "{page} lacks `{text}`");
    }
}

#[test]
fn only_a_folder_of_a_release_is_published() {
    let mut script = Command::new(workspace().join(".ci/publish"));
    let (error, is_success) = result(script.args(["no-such-folder", "--dry-run"]));
    let expected = "error: cannot read images.txt in no-such-folder\n\
        hint: name the folder that `cargo xtask release` wrote\n";
    assert!(!is_success && error == expected, "{error}");
}

/// A workflow for a tag builds the version that the tag names.
#[test]
fn a_tag_of_another_version_is_refused() {
    let mut xtask = Command::new(env!("CARGO"));
    xtask.current_dir(workspace()).args(["xtask", "release", "--repository", "Owner/Plugin"]);
    let folder = tempfile::tempdir().unwrap();
    xtask.arg("--output").arg(folder.path().join("dist"));
    let (error, is_success) =
        result(xtask.env("GITHUB_REF_TYPE", "tag").env("GITHUB_REF_NAME", "v99.0.0"));
    let version = env!("CARGO_PKG_VERSION");
    let expected = format!("error: the tag is v99.0.0, the version is {version}\n");
    assert!(!is_success && error.ends_with(&expected), "{error}");
}
