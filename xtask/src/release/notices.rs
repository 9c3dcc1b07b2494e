//! The licence notices of other people's software in the programs.
//!
//! The packages are those that cargo links for a target. Their licence texts are the files
//! in the packages' sources, so the notices need no network. What the compilers add, such
//! as the C runtime, is listed with the texts that the compilers bring.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{process, workspace};

/// The file with the notices in an archive.
pub(super) const FILE: &str = "THIRD-PARTY-NOTICES.txt";

/// The file with the notices of Rust's standard library in an archive.
pub(super) const RUST_FILE: &str = "THIRD-PARTY-NOTICES-RUST.html";

/// How the names of files with a licence begin, in capitals.
const STARTS: [&str; 6] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];

/// Packages whose sources contain no licence text.
const WITHOUT_TEXT: &[WithoutText] = &[WithoutText {
    package: "tonic-prost",
    reason: "MIT licence. The package is part of https://github.com/hyperium/tonic and is published \
             without a copy of the text; the licence of the package tonic, which this document \
             contains, is that of the repository.",
}];

/// A package that is published without a licence text.
struct WithoutText {
    package: &'static str,
    /// Why it may be shipped, and what is printed in place of the text.
    reason: &'static str,
}

/// Software in the programs that is not a Rust package.
#[derive(Clone, Copy)]
pub(super) struct Runtime {
    name: &'static str,
    /// The file with its licence; a relative path is below Go's root.
    text: &'static str,
    hint: &'static str,
}

/// What MinGW and Go link into the Windows programs.
pub(super) const WINDOWS_RUNTIMES: &[Runtime] = &[
    Runtime {
        name: "MinGW-w64 runtime",
        text: "/usr/share/doc/mingw-w64-common/copyright",
        hint: "install the Debian package mingw-w64-common",
    },
    Runtime {
        name: "GCC runtime libraries (test-device-discovery-cpp.exe links libstdc++)",
        text: "/usr/share/doc/gcc-mingw-w64-base/copyright",
        hint: "install the Debian package gcc-mingw-w64-base",
    },
    Runtime {
        name: "Go (test-device-discovery-go.exe)",
        text: "LICENSE",
        hint: "install Go from https://go.dev/dl",
    },
];

/// A third-party package in the programs.
struct Package {
    name: String,
    version: String,
    licence: String,
    repository: String,
    folder: PathBuf,
    /// The value of `license-file` in its `Cargo.toml`.
    licence_file: Option<String>,
}

/// The notices for the programs of `roots`, built for `target`.
pub(super) fn text(
    title: &str,
    roots: &[&str],
    target: &str,
    runtimes: &[Runtime],
) -> Result<String> {
    let mut texts = BTreeMap::new();
    let packages = packages(roots, target)?;
    let mut missing = Vec::new();
    for package in &packages {
        let owner = format!("{} {}", package.name, package.version);
        let found = licence_texts(package)?;
        if found.is_empty() {
            match WITHOUT_TEXT.iter().find(|known| known.package == package.name) {
                Some(known) => add(&mut texts, &owner, known.reason),
                None => missing.push(owner.clone()),
            }
        }
        for text in found {
            add(&mut texts, &owner, &text);
        }
    }
    if !missing.is_empty() {
        bail!(
            "packages without a licence text: {}\nhint: list them in WITHOUT_TEXT of \
             xtask/src/release/notices.rs, with the reason why they may be shipped",
            missing.join(", ")
        );
    }
    let mut runtime_texts = BTreeMap::new();
    for runtime in runtimes {
        add(&mut runtime_texts, runtime.name, &runtime_text(runtime)?);
    }
    Ok(document(title, &packages, &runtime_texts, &texts))
}

/// The notices of Rust's standard library, which the compiler brings.
pub(super) fn rust_standard_library() -> Result<Vec<u8>> {
    let mut rustc = Command::new("rustc");
    rustc.current_dir(workspace::root()).args(["--print", "sysroot"]);
    let root =
        process::stdout(&mut rustc).with_context(|| format!("{} failed", process::line(&rustc)))?;
    let path = Path::new(root.trim()).join("share/doc/rust/COPYRIGHT-library.html");
    fs::read(&path).with_context(|| {
        format!("cannot read {}\nhint: install Rust 1.89 or newer with rustup", path.display())
    })
}

/// Adds `owner` to the owners of `text`, so that a common text is printed once.
fn add(texts: &mut BTreeMap<String, Vec<String>>, owner: &str, text: &str) {
    let text: Vec<&str> = text.lines().map(str::trim_end).collect();
    let owners = texts.entry(text.join("\n").trim_matches('\n').to_owned()).or_default();
    if owners.last().is_none_or(|last| last != owner) {
        owners.push(owner.to_owned());
    }
}

fn document(
    title: &str,
    packages: &[Package],
    runtimes: &BTreeMap<String, Vec<String>>,
    texts: &BTreeMap<String, Vec<String>>,
) -> String {
    const LINE: &str =
        "\n--------------------------------------------------------------------------------\n";
    let mut lines = vec![
        format!("Third-party software in {title}"),
        String::new(),
        format!("The notices of Rust's standard library are in {RUST_FILE}."),
        String::new(),
        "Rust packages (name, version, licence, source):".to_owned(),
        String::new(),
    ];
    lines.extend(packages.iter().map(|package| {
        let Package { name, version, licence, repository, .. } = package;
        format!("  {name} {version}  {licence}  {repository}").trim_end().to_owned()
    }));
    if !runtimes.is_empty() {
        lines.extend([
            String::new(),
            "Runtime libraries of the compilers:".to_owned(),
            String::new(),
        ]);
        lines.extend(runtimes.values().flatten().map(|name| format!("  {name}")));
    }
    let mut sections: Vec<(&Vec<String>, &String)> =
        runtimes.iter().chain(texts).map(|(text, owners)| (owners, text)).collect();
    sections.sort();
    let sections = sections
        .iter()
        .map(|(owners, text)| format!("{LINE}Licence of {}:\n\n{text}\n", owners.join(", ")));
    format!("{}\n{}", lines.join("\n"), sections.collect::<String>())
}

/// The third-party packages that are linked into the programs of `roots`. Packages that
/// run only during the build are not: build dependencies and procedural macros.
fn packages(roots: &[&str], target: &str) -> Result<Vec<Package>> {
    let mut tree = workspace::cargo();
    tree.args(["tree", "--locked", "--prefix", "none", "--format", "{p}"]);
    tree.args(["--edges", "normal,no-proc-macro", "--target", target]);
    tree.args(roots.iter().flat_map(|root| ["--package", root]));
    let tree =
        process::stdout(&mut tree).with_context(|| format!("{} failed", process::line(&tree)))?;
    let mut metadata = workspace::cargo();
    metadata.args(["metadata", "--locked", "--format-version", "1", "--filter-platform", target]);
    let metadata = process::stdout(&mut metadata)
        .with_context(|| format!("{} failed", process::line(&metadata)))?;
    let metadata: Value =
        serde_json::from_str(&metadata).context("cannot read cargo's metadata")?;
    linked(&tree, &metadata)
}

/// The packages of `metadata` that `tree` lists, without those of the workspace.
fn linked(tree: &str, metadata: &Value) -> Result<Vec<Package>> {
    // A line such as `serde v1.0.228 (*)`.
    let key = |line: &str| {
        let mut words = line.split_whitespace();
        Some((words.next()?.to_owned(), words.next()?.strip_prefix('v')?.to_owned()))
    };
    let mut keys: Vec<_> = tree.lines().filter_map(key).collect();
    keys.sort();
    keys.dedup();
    let all = metadata["packages"].as_array().context("cargo's metadata has no `packages`")?;
    let mut packages = Vec::new();
    for (name, version) in keys {
        let package = all
            .iter()
            .find(|package| package["name"] == *name && package["version"] == *version)
            .with_context(|| format!("`cargo metadata` lacks the package `{name} {version}`"))?;
        // Packages of the workspace have no source.
        if package["source"].is_null() {
            continue;
        }
        let text = |key: &str| package[key].as_str().map(str::to_owned);
        let manifest = PathBuf::from(text("manifest_path").unwrap_or_default());
        packages.push(Package {
            licence: text("license").unwrap_or_else(|| "see its text".to_owned()),
            repository: text("repository").unwrap_or_default(),
            folder: manifest.parent().map(Path::to_owned).unwrap_or_default(),
            licence_file: text("license_file"),
            name,
            version,
        });
    }
    Ok(packages)
}

/// The licence texts in the sources of a package, sorted by file name.
fn licence_texts(package: &Package) -> Result<Vec<String>> {
    let folder = &package.folder;
    let entries = fs::read_dir(folder).with_context(|| {
        format!("cannot read {}\nhint: run `cargo fetch --locked`", folder.display())
    })?;
    let mut paths: Vec<PathBuf> =
        package.licence_file.iter().map(|file| folder.join(file)).collect();
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        if STARTS.iter().any(|start| name.starts_with(start)) && path.is_file() {
            paths.push(path);
        }
    }
    paths.sort();
    paths.dedup();
    let read = |path: &PathBuf| {
        let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    paths.iter().map(read).collect()
}

fn runtime_text(runtime: &Runtime) -> Result<String> {
    let mut path = PathBuf::from(runtime.text);
    if path.is_relative() {
        let root = process::stdout(Command::new("go").args(["env", "GOROOT"]));
        path = Path::new(root.unwrap_or_default().trim()).join(path);
    }
    fs::read_to_string(&path).with_context(|| {
        format!(
            "no licence of {}: cannot read {}\nhint: {}",
            runtime.name,
            path.display(),
            runtime.hint
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn package(folder: &Path, name: &str) -> Package {
        Package {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            licence: "MIT".to_owned(),
            repository: "https://example.org".to_owned(),
            folder: folder.to_owned(),
            licence_file: None,
        }
    }

    #[test]
    fn packages_of_the_workspace_are_left_out() {
        let metadata = json!({"packages": [
            {"name": "plugin", "version": "0.1.0", "source": null, "manifest_path": "/w/Cargo.toml"},
            {"name": "a", "version": "1.0.0", "source": "registry", "license": "MIT",
             "manifest_path": "/r/a/Cargo.toml", "license_file": "TERMS"},
            {"name": "a", "version": "2.0.0", "source": "registry", "manifest_path": "/r/b/Cargo.toml"},
        ]});
        let found = linked("plugin v0.1.0 (/w)\na v1.0.0\na v1.0.0 (*)\n", &metadata).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!((&*found[0].version, &*found[0].licence), ("1.0.0", "MIT"));
        assert_eq!(found[0].folder, Path::new("/r/a"));
        assert_eq!(found[0].licence_file.as_deref(), Some("TERMS"));
        let error = linked("b v1.0.0\n", &metadata).err().unwrap().to_string();
        assert_eq!(error, "`cargo metadata` lacks the package `b 1.0.0`");
    }

    #[test]
    fn licence_texts_are_found_by_their_names() {
        let folder = tempfile::tempdir().unwrap();
        let names = ["LICENSE-MIT", "License.txt", "NOTICE", "COPYING", "README.md", "TERMS"];
        for name in names {
            fs::write(folder.path().join(name), name).unwrap();
        }
        fs::create_dir(folder.path().join("LICENSES")).unwrap();
        let mut package = package(folder.path(), "a");
        let found = licence_texts(&package).unwrap();
        assert_eq!(found, ["COPYING", "LICENSE-MIT", "License.txt", "NOTICE"]);
        package.licence_file = Some("TERMS".to_owned());
        assert_eq!(licence_texts(&package).unwrap().len(), 5);
        package.folder = folder.path().join("none");
        let error = licence_texts(&package).unwrap_err().to_string();
        assert!(error.ends_with("hint: run `cargo fetch --locked`"), "{error}");
    }

    #[test]
    fn a_common_text_is_printed_once_with_its_owners() {
        let folder = Path::new("/");
        let packages = [package(folder, "a"), package(folder, "b")];
        let (mut texts, mut runtimes) = (BTreeMap::new(), BTreeMap::new());
        add(&mut texts, "a 1.0.0", "\nMIT text  \r\n");
        add(&mut texts, "b 1.0.0", "MIT text\n");
        add(&mut texts, "b 1.0.0", "MIT text\n");
        add(&mut runtimes, "C runtime", "runtime text");
        let document = document("product 1.0", &packages, &runtimes, &texts);
        assert_eq!(document.matches("MIT text").count(), 1);
        for part in [
            "Third-party software in product 1.0\n",
            "  a 1.0.0  MIT  https://example.org\n",
            "Licence of a 1.0.0, b 1.0.0:\n\nMIT text\n",
            "  C runtime\n",
            "Licence of C runtime:\n\nruntime text\n",
        ] {
            assert!(document.contains(part), "{part}: {document}");
        }
    }

    #[test]
    fn packages_without_a_text_are_packages_of_the_programs() {
        let found = packages(&["multicall"], workspace::WINDOWS_TARGET).unwrap();
        for known in WITHOUT_TEXT {
            let package = found.iter().find(|package| package.name == known.package);
            let package = package.unwrap_or_else(|| panic!("{} is not linked", known.package));
            assert!(licence_texts(package).unwrap().is_empty(), "{} has a text", known.package);
        }
    }

    #[test]
    fn an_unknown_runtime_is_an_error_with_a_hint() {
        let runtime = Runtime { name: "x", text: "/nonexistent/copyright", hint: "install x" };
        let error = runtime_text(&runtime).unwrap_err().to_string();
        let expected = "no licence of x: cannot read /nonexistent/copyright\nhint: install x";
        assert_eq!(error, expected);
    }
}
