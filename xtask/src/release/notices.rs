//! The license texts of other people's software in the programs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::{names, stdout};
use crate::workspace;

/// How the names of files with a license begin, in capitals.
const STARTS: [&str; 6] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];

/// Packages that are published without a license text, and what is printed in its place.
const WITHOUT_TEXT: [(&str, &str); 2] = [
    (
        "tonic-prost",
        "MIT license. The package is part of https://github.com/hyperium/tonic; the license of the \
         package tonic is that of the repository.",
    ),
    (
        "kube",
        "Apache License 2.0. The package is part of https://github.com/kube-rs/kube; the text of the \
         license is that of the package k8s-openapi.",
    ),
];

/// The notices for the programs of `packages`, built for `target` and linked with `runtimes`: names
/// and the files with their licenses.
pub(super) fn text(packages: &[&str], target: &str, runtimes: &[(&str, &str)]) -> Result<String> {
    let mut owners: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut add = |owner: &str, text: &str| {
        let text: Vec<&str> = text.trim().lines().map(str::trim_end).collect();
        owners.entry(text.join("\n")).or_default().insert(owner.to_owned());
    };
    for (name, file) in runtimes {
        let text = fs::read_to_string(file);
        add(name, &text.with_context(|| format!("cannot read {file}, the license of {name}"))?);
    }
    let cargo_home = std::env::var_os("CARGO_HOME").map(Into::into);
    let cargo_home = cargo_home.or_else(|| Some(std::env::home_dir()?.join(".cargo")));
    let sources = cargo_home.context("no home directory")?.join("registry/src");
    let sources = sources.join(names(&sources)?.first().context("cargo has no sources")?);
    // Procedural macros and build dependencies only run during the build.
    let mut tree = workspace::cargo();
    tree.args(["tree", "--locked", "--prefix", "none", "--format", "{p}|  {l}  {r}"]);
    tree.args(["--edges", "normal,no-proc-macro", "--target", target]);
    let tree = stdout(tree.args(packages.iter().flat_map(|package| ["--package", package])))?;
    // Packages of the workspace have paths; an empty line follows each package of `--package`.
    let is_foreign = |line: &&str| !line.is_empty() && !line.contains(" (/");
    for line in tree.lines().filter(is_foreign).collect::<BTreeSet<_>>() {
        let line = line.trim_end_matches(" (*)");
        let (package, rest) = line.split_once('|').context("unexpected output of `cargo tree`")?;
        let owner = format!("{package}{rest}");
        let folder = sources.join(package.replacen(" v", "-", 1));
        let mut files = names(&folder)?;
        files.retain(|name| STARTS.iter().any(|start| name.to_uppercase().starts_with(start)));
        for file in files.iter().map(|name| folder.join(name)).filter(|path| path.is_file()) {
            add(&owner, &String::from_utf8_lossy(&fs::read(file)?));
        }
        if files.is_empty() {
            let known = WITHOUT_TEXT.iter().find(|(name, _)| package.starts_with(name));
            let hint = "hint: add the package to WITHOUT_TEXT, with a reason";
            add(&owner, known.with_context(|| format!("{package} has no license\n{hint}"))?.1);
        }
    }
    let mut sections: Vec<_> = owners.into_iter().map(|(text, owners)| (owners, text)).collect();
    sections.sort();
    let mut document =
        vec!["Software of others, in addition to Rust's standard library\n".to_owned()];
    for (owners, text) in sections {
        let owners = owners.into_iter().collect::<Vec<_>>().join("\n  ");
        document.push(format!("{}\nLicense of\n  {owners}\n\n{text}\n\n", "-".repeat(80)));
    }
    Ok(document.concat())
}

/// The license texts of Rust's standard library, which the compiler brings.
pub(super) fn rust_standard_library() -> Result<Vec<u8>> {
    let root = stdout(Command::new("rustc").args(["--print", "sysroot"]))?;
    let path = Path::new(root.trim()).join("share/doc/rust/COPYRIGHT-library.html");
    fs::read(&path).with_context(|| format!("cannot read {}", path.display()))
}
