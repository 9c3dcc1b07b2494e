//! Runs the code blocks of README.md and `docs` that are marked `sh`, exactly as printed. A block
//! that is marked `text` and directly follows one shows lines of its output.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "part of the tests")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use walkdir::WalkDir;

/// How many seconds one block may take: `cargo run` builds.
const LIMIT: &str = "1200";

/// The commands call the programs that `cargo xtask test docs` builds.
#[test]
#[ignore = "runs the commands of the documentation: cargo xtask test docs"]
fn the_commands_in_the_documentation_succeed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let programs = std::env::current_exe().unwrap().ancestors().nth(2).unwrap().to_owned();
    let path = std::env::var_os("PATH").unwrap();
    let path = [programs].into_iter().chain(std::env::split_paths(&path));
    let path = std::env::join_paths(path).unwrap();
    let mut failures = Vec::new();
    let blocks: Vec<_> = pages(&root).iter().flat_map(|page| blocks(&root, page)).collect();
    assert!(blocks.len() > 10, "only {} blocks", blocks.len());
    for (place, commands, shown) in blocks {
        assert!(!commands.contains(" test"), "{place}: mark blocks that run tests `console`");
        // The folder is below the root, so that cargo finds the workspace; files that are written
        // stay here.
        let folder = tempfile::tempdir_in(root.join("target")).unwrap();
        symlink(root.join("fixtures"), folder.path().join("fixtures")).unwrap();
        let mut bash = Command::new("timeout");
        bash.args([LIMIT, "bash", "-euxc", &commands]).current_dir(&folder).env("PATH", &path);
        let output = bash.output().unwrap();
        if !output.status.success() {
            let log = String::from_utf8_lossy(&output.stderr);
            failures.push(format!("{place}: {}\n{log}", output.status));
        }
        let printed = String::from_utf8_lossy(&output.stdout);
        let mut printed = printed.lines();
        for line in shown.lines().filter(|line| !["", "…"].contains(&line.trim())) {
            if !printed.any(|other| other == line) {
                failures.push(format!("{place}: the commands do not print, in this order: {line}"));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// README.md and the pages of `docs` and its folders, relative to the root.
fn pages(root: &Path) -> Vec<PathBuf> {
    let entries = WalkDir::new(root.join("docs")).sort_by_file_name().into_iter();
    let pages = entries.map(|entry| entry.unwrap().path().strip_prefix(root).unwrap().to_owned());
    let pages = pages.filter(|page| page.extension().is_some_and(|extension| extension == "md"));
    [PathBuf::from("README.md")].into_iter().chain(pages).collect()
}

/// The blocks of a page that are marked `sh`, each with its place and the output that the page
/// shows. Every block has a mark.
fn blocks(root: &Path, page: &Path) -> Vec<(String, String, String)> {
    let text = fs::read_to_string(root.join(page)).unwrap();
    let mut lines = text.lines().enumerate();
    let mut blocks: Vec<(String, String, String)> = Vec::new();
    let mut is_after_commands = false;
    while let Some((number, line)) = lines.next() {
        let Some(mark) = line.trim_start().strip_prefix("```") else {
            is_after_commands &= line.is_empty();
            continue;
        };
        let place = format!("{}:{}", page.display(), number + 1);
        assert!(!mark.is_empty(), "{place}: the block has no mark, such as `sh` or `console`");
        let content = lines.by_ref().map(|(_, line)| line);
        let content: Vec<_> = content.take_while(|line| line.trim() != "```").collect();
        match mark {
            "sh" => blocks.push((place, content.join("\n"), String::new())),
            "text" if is_after_commands => blocks.last_mut().unwrap().2 = content.join("\n"),
            _ => {}
        }
        is_after_commands = mark == "sh";
    }
    blocks
}
