//! Runs the commands of the workflows on this machine, and checks what they name.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, reason = "a test")]

mod gates;
mod publish;
mod runner;

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use crate::runner::{
    Runner, jobs, needs_github, output, read, result, steps, workflows, workspace, write_program,
};

/// The jobs that the tests run, each in a workflow.
const TESTED: [(&str, &[&str]); 7] = [
    ("linux", &["test"]),
    ("nightly", &["nightly"]),
    ("package", &["build", "sign", "package", "check"]),
    ("publish", &["publish"]),
    ("release", &["release"]),
    ("windows", &["test"]),
    ("windows-node", &["build", "hosted"]),
];

#[test]
#[ignore = "builds images: cargo xtask test release"]
fn the_workflows_test_the_steps_that_exist_and_the_programs_that_they_build() {
    let runner = Runner::new("registry.example.com");
    let root = workspace();
    runner.run("nightly", "nightly", &root, &[]);
    for part in jobs("linux")["test"]["strategy"]["matrix"]["include"].as_array().unwrap() {
        runner.run("linux", "test", &root, &[("STEPS", part["steps"].as_str().unwrap())]);
    }

    let windows = runner.path("windows");
    fs::create_dir(&windows).unwrap();
    runner.run("windows", "test", &windows, &[]);
    for name in kept("windows", "test") {
        assert!(read(windows.join(&name)).len() > 100, "{name}");
    }
    assert_eq!(read(runner.path("summary.md")), read(windows.join("conformance.md")));

    runner.run("windows-node", "build", &root, &[]);
    images_have_the_commit();
    windows_node(&runner);
}

/// The files that a job keeps, by their patterns.
fn kept(workflow: &str, job: &str) -> Vec<String> {
    let jobs = jobs(workflow);
    let mut steps = jobs[job]["steps"].as_array().unwrap().iter();
    let paths = steps.find_map(|step| step["with"]["path"].as_str()).unwrap();
    paths.lines().map(str::to_owned).collect()
}

fn images_have_the_commit() {
    let mut head = Command::new("git");
    let head = output(head.current_dir(workspace()).args(["rev-parse", "HEAD"]));
    let image = workspace().join("target/images/directx-device-plugin/blobs");
    output(Command::new("grep").args(["-r", "-q", "--text", head.trim()]).arg(image));
}

/// The job gets the files below `target`, and runs a program that is built for Windows.
fn windows_node(runner: &Runner) {
    let kept = kept("windows-node", "build");
    let names: Vec<&str> = kept.iter().map(|name| name.strip_prefix("target/").unwrap()).collect();
    assert!(names.contains(&"images/*.tar"), "{names:?}");
    let release = workspace().join("target/x86_64-pc-windows-gnu/release");
    assert!(fs::read(release.join("windows_node.exe")).unwrap().starts_with(b"MZ"));
    let job = runner.path("hosted");
    fs::create_dir(&job).unwrap();
    std::os::unix::fs::symlink(workspace().join("target/images"), job.join("images")).unwrap();
    let program = runner.path("windows_node");
    let mut build = Command::new("go");
    build.current_dir(workspace().join("testing/kubernetes")).args(["build", "-buildvcs=false"]);
    output(build.arg("-o").arg(&program).arg("./windows_node"));
    // It reads its options before it refuses to run on Linux.
    write_program(
        &job.join("x86_64-pc-windows-gnu/release/windows_node.exe"),
        &format!(
            "#!/bin/sh\nset -e\ntest -f \"$2\"\ntest -f \"$4\"\n\
             {} \"$@\" 2>&1 | grep 'runs only on Windows'\necho report > windows-node.md\n",
            program.display()
        ),
    );
    runner.run("windows-node", "hosted", &job, &[]);
    assert!(read(runner.path("summary.md")).ends_with("report\n"));
}

/// Every other step is one command, in the table of what only GitHub can show.
#[test]
fn every_step_is_tested_or_documented() {
    let mut untested = BTreeSet::new();
    for workflow in workflows() {
        for (name, job) in jobs(&workflow).as_object().unwrap() {
            let is_tested = TESTED
                .iter()
                .any(|(known, jobs)| *known == workflow && jobs.contains(&name.as_str()));
            for step in steps(job).filter(|step| !is_tested || needs_github(job, step)) {
                let commands = step["run"].as_str().unwrap();
                assert_eq!(commands.trim().lines().count(), 1, "{workflow}: {commands}");
                untested.insert(format!("| {workflow} | {name} | `{}` |", commands.trim()));
            }
        }
    }
    let page = read(workspace().join("docs/maintainers/releasing.md"));
    let (_, table) = page.split_once("| workflow | job | command |\n|---|---|---|\n").unwrap();
    let documented = table.lines().take_while(|line| !line.is_empty());
    assert_eq!(documented.map(str::to_owned).collect::<BTreeSet<_>>(), untested);
}

/// The matrix of the workflow runs every step of the tests once.
#[test]
fn the_workflow_runs_every_step() {
    let matrix = &jobs("linux")["test"]["strategy"]["matrix"]["include"];
    let parts = matrix.as_array().unwrap().iter();
    let mut in_workflow: Vec<&str> =
        parts.flat_map(|part| part["steps"].as_str().unwrap().split(' ')).collect();
    let mut xtask = Command::new(env!("CARGO"));
    let list = output(xtask.current_dir(workspace()).args(["xtask", "test", "--list"]));
    let mut expected: Vec<&str> =
        list.lines().map(|line| line.split(' ').next().unwrap()).collect();
    in_workflow.sort_unstable();
    expected.sort_unstable();
    assert_eq!(in_workflow, expected);
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
