//! The software bill of materials: which crates the programs contain.
//!
//! `CycloneDX` 1.5 in JSON (<https://cyclonedx.org/docs/1.5/json>). `cargo tree` resolves the
//! packages as the build does, for the same packages and target; `cargo metadata` knows
//! their licences and dependencies.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::source::Source;
use super::{manifest::Title, programs};
use crate::{process, workspace};

/// The media type of the document, and the type of the artifact that contains it.
pub(super) const MEDIA_TYPE: &str = "application/vnd.cyclonedx+json";

/// The document for the programs in the image `title`.
pub(super) fn document(title: &Title<'_>, source: &Source) -> Result<Value> {
    let tree = tree()?;
    let metadata = metadata()?;
    let lock = fs::read_to_string(workspace::root().join("Cargo.lock"))?;
    components(title, source, &tree, &metadata, &checksums(&lock))
}

/// A package as `NAME VERSION`.
type PackageKey = String;

/// The packages that are linked into the programs. Those that run only during the build
/// are not: build dependencies and procedural macros.
fn tree() -> Result<Vec<PackageKey>> {
    let mut tree = workspace::cargo();
    tree.args(["tree", "--locked", "--prefix", "none", "--format", "{p}"]);
    tree.args(["--edges", "normal,no-proc-macro", "--target", workspace::WINDOWS_TARGET]);
    tree.args(programs::PACKAGES.iter().flat_map(|package| ["--package", package]));
    let text =
        process::stdout(&mut tree).with_context(|| format!("{} failed", process::line(&tree)))?;
    let mut keys: Vec<_> = text.lines().filter_map(package_key).collect();
    keys.sort();
    keys.dedup();
    Ok(keys)
}

/// The package in a line of `cargo tree` such as `serde v1.0.228 (*)`.
fn package_key(line: &str) -> Option<PackageKey> {
    let mut words = line.split_whitespace();
    let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
    Some(format!("{name} {version}"))
}

fn metadata() -> Result<Value> {
    let mut metadata = workspace::cargo();
    metadata.args(["metadata", "--locked", "--format-version", "1"]);
    metadata.args(["--filter-platform", workspace::WINDOWS_TARGET]);
    let text = process::stdout(&mut metadata)
        .with_context(|| format!("{} failed", process::line(&metadata)))?;
    serde_json::from_str(&text).context("cannot read cargo's metadata")
}

/// The SHA-256 digests of the packages from a registry, which `Cargo.lock` lists.
fn checksums(lock: &str) -> BTreeMap<PackageKey, String> {
    let field = |section: &str, name: &str| {
        let value = section.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "));
        value.map(|value| value.trim_matches('"').to_owned())
    };
    let sections = lock.split("[[package]]").skip(1);
    let pairs = sections.filter_map(|section| {
        let key = format!("{} {}", field(section, "name")?, field(section, "version")?);
        Some((key, field(section, "checksum")?))
    });
    pairs.collect()
}

fn components(
    title: &Title<'_>,
    source: &Source,
    tree: &[PackageKey],
    metadata: &Value,
    checksums: &BTreeMap<PackageKey, String>,
) -> Result<Value> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let packages = list(&metadata["packages"]);
    let keys: BTreeMap<String, PackageKey> = packages
        .iter()
        .filter_map(|package| Some((package["id"].as_str()?.to_owned(), key(package)?)))
        .collect();
    let by_key: BTreeMap<PackageKey, &Value> =
        packages.iter().filter_map(|package| Some((key(package)?, package))).collect();
    let mut components = Vec::new();
    for key in tree {
        let package = by_key
            .get(key)
            .with_context(|| format!("`cargo metadata` lacks the package `{key}`"))?;
        components.push(component(package, checksums.get(key)));
    }
    let mut dependencies = vec![json!({
        "ref": title.name,
        "dependsOn": tree.iter().filter(|key| is_root(key)).map(|key| purl(key)).collect::<Vec<_>>(),
    })];
    let mut nodes: Vec<(PackageKey, Vec<String>)> = Vec::new();
    for node in list(&metadata["resolve"]["nodes"]) {
        let Some(key) = node["id"].as_str().and_then(|id| keys.get(id)) else { continue };
        let linked = list(&node["deps"]).into_iter().filter(is_linked);
        let targets = linked.filter_map(|dep| keys.get(dep["pkg"].as_str()?).cloned());
        let mut targets: Vec<_> =
            targets.filter(|key| tree.contains(key)).map(|key| purl(&key)).collect();
        targets.sort();
        if tree.contains(key) {
            nodes.push((key.clone(), targets));
        }
    }
    nodes.sort();
    dependencies
        .extend(nodes.into_iter().map(|(key, on)| json!({"ref": purl(&key), "dependsOn": on})));
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": source.date.rfc3339(),
            "component": {
                "type": "container",
                "bom-ref": title.name,
                "name": title.name,
                "version": source.version,
                "licenses": [{"expression": env!("CARGO_PKG_LICENSE")}],
            },
        },
        "components": components,
        "dependencies": dependencies,
    }))
}

fn component(package: &Value, checksum: Option<&String>) -> Value {
    let key = key(package).unwrap_or_default();
    let mut component = json!({
        "type": "library",
        "bom-ref": purl(&key),
        "name": package["name"],
        "version": package["version"],
        "purl": purl(&key),
    });
    if let Some(license) = package["license"].as_str() {
        // Older packages write `/` for `OR`, which SPDX does not know.
        let expression = license.replace(" / ", " OR ").replace('/', " OR ");
        component["licenses"] = json!([{"expression": expression}]);
    }
    if let Some(checksum) = checksum {
        component["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
    }
    component
}

fn key(package: &Value) -> Option<PackageKey> {
    Some(format!("{} {}", package["name"].as_str()?, package["version"].as_str()?))
}

/// The package URL (<https://github.com/package-url/purl-spec>).
fn purl(key: &str) -> String {
    // `+` of a build number is not allowed in a URL of packages.
    format!("pkg:cargo/{}", key.replacen(' ', "@", 1).replace('+', "%2B"))
}

fn is_root(key: &str) -> bool {
    programs::PACKAGES.iter().any(|name| key.split(' ').next() == Some(name))
}

/// Whether a dependency in cargo's metadata is one at run time.
fn is_linked(dependency: &Value) -> bool {
    let kinds = dependency["dep_kinds"].as_array();
    kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"].is_null()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::source::Tree;
    use crate::image::source_date::SourceDate;

    const TITLE: Title<'_> = Title { name: "image", description: "" };

    #[allow(clippy::unwrap_used, reason = "part of the tests")]
    fn source() -> Source {
        let date = SourceDate::new(Some("0"), None).unwrap();
        Source { version: "1.0.0", commit: None, tree: Tree::Clean, date }
    }

    #[test]
    fn the_document_lists_what_is_linked_and_nothing_else() {
        let document = document(&TITLE, &source()).unwrap();
        let names: Vec<&str> = document["components"]
            .as_array()
            .unwrap()
            .iter()
            .map(|component| component["name"].as_str().unwrap())
            .collect();
        for linked in [
            "plugin",
            "tools",
            "discovery_dll",
            "win32",
            "tokio",
            "serde",
            "h2",
            "multicall",
            "directx_visible",
            "visibility_filter",
        ] {
            assert!(names.contains(&linked), "{linked}: {names:?}");
        }
        // A test dependency, a procedural macro, a build dependency, another system's crate
        // and this program.
        for other in ["insta", "serde_derive", "winresource", "inotify", "xtask"] {
            assert!(!names.contains(&other), "{other}");
        }
    }

    #[test]
    fn components_have_licences_and_digests_and_dependencies() {
        let metadata = json!({
            "packages": [
                {"id": "1", "name": "multicall", "version": "1.0.0", "license": "MIT"},
                {"id": "2", "name": "a", "version": "2.0.0+x", "license": "MIT/Apache-2.0"},
                {"id": "3", "name": "test", "version": "3.0.0", "license": "MIT"},
            ],
            "resolve": {"nodes": [
                {"id": "1", "deps": [
                    {"pkg": "2", "dep_kinds": [{"kind": null}]},
                    {"pkg": "3", "dep_kinds": [{"kind": "dev"}]},
                ]},
                {"id": "2", "deps": []},
                {"id": "3", "deps": []},
            ]},
        });
        let tree = ["a 2.0.0+x".to_owned(), "multicall 1.0.0".to_owned()];
        let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"2.0.0+x\"\n\
                    checksum = \"abc\"\n\n[[package]]\nname = \"multicall\"\nversion = \"1.0.0\"\n";
        let found = components(&TITLE, &source(), &tree, &metadata, &checksums(lock)).unwrap();
        let purl = "pkg:cargo/a@2.0.0%2Bx";
        let component = json!({
            "type": "library", "bom-ref": purl, "purl": purl, "name": "a", "version": "2.0.0+x",
            "licenses": [{"expression": "MIT OR Apache-2.0"}],
            "hashes": [{"alg": "SHA-256", "content": "abc"}],
        });
        assert_eq!(found["components"][0], component);
        assert_eq!(found["components"].as_array().unwrap().len(), 2);
        let dependencies = json!([
            {"ref": "image", "dependsOn": ["pkg:cargo/multicall@1.0.0"]},
            {"ref": purl, "dependsOn": []},
            {"ref": "pkg:cargo/multicall@1.0.0", "dependsOn": [purl]},
        ]);
        assert_eq!(found["dependencies"], dependencies);
        let missing = ["b 1.0.0".to_owned()];
        let error = components(&TITLE, &source(), &missing, &metadata, &BTreeMap::new());
        assert_eq!(error.unwrap_err().to_string(), "`cargo metadata` lacks the package `b 1.0.0`");
    }

    #[test]
    fn lines_of_cargo_tree() {
        let expected = Some("serde 1.0.228".to_owned());
        assert_eq!(package_key("serde v1.0.228 (*)"), expected);
        assert_eq!(package_key("plugin v0.1.0 (/a/b)"), Some("plugin 0.1.0".to_owned()));
        assert_eq!(package_key(""), None);
    }
}
