//! Modules of a crate do not use each other in circles, so that each can be read without those that
//! use it.
//!
//! Inside a module, its child modules are the points of a graph. An edge leads from one to another if
//! code in the first, or in a module inside it, names something that the second, or a module inside
//! it, defines: in a `use`, or in a path in code, types, macros or attributes. A name that another
//! module re-exports (`pub use`) counts as a name of the module that defines it. A module and those
//! inside it are one: a child may use the items of its parent, and a parent those of its children.
//! What is compiled only for tests does not count.

#![allow(clippy::unwrap_used, reason = "part of the tests")]

mod source_tree;

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use source_tree::SourceTree;

/// Crates that have circles, and why.
const KNOWN: [(&str, &str); 1] =
    [("device-plugin", "a resource, its sockets and its readiness are one state machine")];

#[test]
fn modules_of_a_crate_have_no_circles() {
    let mut metadata = Command::new(env!("CARGO"));
    metadata.args(["metadata", "--format-version=1", "--no-deps"]);
    let metadata: Value = serde_json::from_slice(&metadata.output().unwrap().stdout).unwrap();
    let root = Path::new(metadata["workspace_root"].as_str().unwrap());
    let mut known: Vec<_> = KNOWN.iter().map(|(name, _)| *name).collect();
    let mut message = String::new();
    for package in metadata["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        let mut has_circles = false;
        for target in
            package["targets"].as_array().unwrap().iter().filter(|target| is_built(target))
        {
            let source = Path::new(target["src_path"].as_str().unwrap());
            for circle in SourceTree::read(source).circles() {
                has_circles = true;
                if !KNOWN.iter().any(|(known, _)| *known == name) {
                    message += &format!("`{name}`:\n{circle}")
                        .replace(&format!("{}/", root.display()), "");
                }
            }
        }
        if has_circles {
            known.retain(|known| *known != name);
        }
    }
    assert!(message.is_empty(), "modules use each other in circles\n{message}");
    assert!(known.is_empty(), "{known:?} have no circles: remove them from KNOWN");
}

/// Whether a target is a library or a program, not a test, an example or a build script.
fn is_built(target: &Value) -> bool {
    let kinds = target["kind"].as_array().unwrap();
    kinds.iter().filter_map(Value::as_str).any(|kind| kind.ends_with("lib") || kind == "bin")
}

/// The circles of a crate with these files.
fn circles(files: &[(&str, &str)]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let circles = SourceTree::read(&folder.path().join("lib.rs")).circles();
    let root = format!("{}{}", folder.path().display(), std::path::MAIN_SEPARATOR);
    circles.iter().map(|circle| circle.to_string().replace(&root, "").replace('\\', "/")).collect()
}

#[test]
fn a_circle_through_a_facade_is_found() {
    let root = "mod read; mod offer; mod plan; pub use read::*; pub use offer::*; pub use plan::{Plan, plan};";
    let files = [
        ("lib.rs", root),
        ("read.rs", "pub struct Host(pub crate::Files);"),
        ("offer.rs", "mod files;\npub use files::{Files, Rule};"),
        ("offer/files.rs", "pub struct Files; pub struct Rule;"),
        ("plan.rs", "pub struct Plan;\nuse crate::{Host, Rule};\npub fn plan(_: Host, _: Rule) {}"),
    ];
    assert_eq!(circles(&files), [""; 0]);

    let uses_plan = ("offer/files.rs", "pub struct Files;\npub struct Rule(crate::Plan);");
    assert_eq!(
        circles(&[files[0], files[1], files[2], uses_plan, files[4]]),
        ["  crate::read -> crate::offer: `crate::Files` at read.rs:1\n  \
          crate::offer -> crate::plan: `crate::Plan` at offer/files.rs:2\n  \
          crate::plan -> crate::read: `crate::Host` at plan.rs:2 and 1 more\n  \
          crate::plan -> crate::offer: `crate::Rule` at plan.rs:2 and 1 more\n"]
    );
}

#[test]
fn a_name_counts_wherever_it_is() {
    for code in [
        "use crate::b::B as Other;",
        "use super::b;",
        "pub struct A(Vec<super::b::B>);",
        "mod inside { use super::super::b::*; }",
        "fn a() { println!(\"{}\", crate::b::f()); }",
        "macro_rules! a { () => { $crate::b::f() } }",
        "#[serde(with = \"crate::b\")] struct A;",
        "impl A { #[cfg(windows)] fn a() { use crate::b::f; } }",
        "#[cfg(any(test, windows))] use crate::b::B;",
    ] {
        let root =
            "#[path = \"first.rs\"] mod a; mod b { use crate::a; pub struct B; pub fn f() {} }";
        let found = circles(&[("lib.rs", root), ("first.rs", code)]);
        assert_eq!(found.len(), 1, "{code}: {found:?}");
    }
}

#[test]
fn parents_and_tests_are_no_circles() {
    let root = "mod a; mod b; pub struct Root; fn root() -> a::A { b::b() }";
    let a = "mod inside { use super::A; use crate::Root; } pub struct A(inside::Inside);
        impl A { #[cfg(test)] fn a() { crate::b::b(); } }
        #[cfg(all(test, windows))] use crate::b;
        #[cfg(test)] mod tests { use crate::b::*; }";
    assert_eq!(circles(&[("lib.rs", root), ("a.rs", a), ("b.rs", "use crate::a::A;")]), [""; 0]);
}
