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
    let mut notices = Notices::new();
    for (name, file) in runtimes {
        let text = fs::read_to_string(file)
            .with_context(|| format!("cannot read {file}, the license of {name}"))?;
        add(&mut notices, name, &text);
    }
    let registries = workspace::cargo_home().context("no home directory")?.join("registry/src");
    let sources = registries.join(names(&registries)?.first().context("cargo has no sources")?);
    for Crate { name, version, license, repository } in crates(packages, target)? {
        let package = format!("{name} v{version}");
        let owner = format!("{package}  {license}  {repository}");
        let folder = sources.join(format!("{name}-{version}"));
        let mut files = names(&folder)?;
        files.retain(|name| STARTS.iter().any(|start| name.to_uppercase().starts_with(start)));
        for file in files.iter().map(|name| folder.join(name)).filter(|path| path.is_file()) {
            add(&mut notices, &owner, &String::from_utf8_lossy(&fs::read(file)?));
        }
        if files.is_empty() {
            let known = WITHOUT_TEXT.iter().find(|(name, _)| package.starts_with(name));
            let hint = "hint: add the package to WITHOUT_TEXT, with a reason";
            let (_, text) = known.with_context(|| format!("{package} has no license\n{hint}"))?;
            add(&mut notices, &owner, text);
        }
    }
    let mut sections: Vec<_> = notices.into_iter().map(|(text, owners)| (owners, text)).collect();
    sections.sort();
    let mut document =
        vec!["Software of others, in addition to Rust's standard library\n".to_owned()];
    for (owners, text) in sections {
        let owners = owners.into_iter().collect::<Vec<_>>().join("\n  ");
        document.push(format!("{}\nLicense of\n  {owners}\n\n{text}\n\n", "-".repeat(80)));
    }
    Ok(document.concat())
}

/// A package of others.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Crate {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) license: String,
    repository: String,
}

/// What the programs of `packages` contain if they are built for `target`. Procedural macros and
/// build dependencies are left out, because they only run during the build.
pub(super) fn crates(packages: &[&str], target: &str) -> Result<BTreeSet<Crate>> {
    let mut tree = workspace::cargo();
    tree.args(["tree", "--locked", "--prefix", "none", "--format", "{p}|{l}|{r}|"]);
    tree.args(["--edges", "normal,no-proc-macro", "--target", target]);
    let tree = stdout(tree.args(packages.iter().flat_map(|package| ["--package", package])))?;
    // Packages of the workspace have paths; an empty line follows each package of `--package`.
    let lines = tree.lines().filter(|line| !line.is_empty() && !line.contains(" (/"));
    lines
        .map(|line| {
            let mut fields = line.split('|').map(str::to_owned);
            let mut field = || fields.next().context("unexpected output of `cargo tree`");
            let package = field()?;
            let license = field()?;
            let repository = field()?;
            let (name, version) = package.split_once(" v").context("a crate has no version")?;
            Ok(Crate { name: name.to_owned(), version: version.to_owned(), license, repository })
        })
        .collect()
}

/// License texts, and what has each of them.
type Notices = BTreeMap<String, BTreeSet<String>>;

fn add(notices: &mut Notices, owner: &str, text: &str) {
    let lines: Vec<&str> = text.trim().lines().map(str::trim_end).collect();
    notices.entry(lines.join("\n")).or_default().insert(owner.to_owned());
}

/// The license texts of Rust's standard library, which the compiler brings.
pub(super) fn rust_standard_library() -> Result<Vec<u8>> {
    let root = stdout(Command::new("rustc").args(["--print", "sysroot"]))?;
    let path = Path::new(root.trim()).join("share/doc/rust/COPYRIGHT-library.html");
    fs::read(&path).with_context(|| format!("cannot read {}", path.display()))
}
