//! The folders of `crates`, then `testing` and `xtask`, are layers: a crate uses only crates in its
//! own folder or in an earlier one, so every decision can be tested without the layers that run it.
//! A program uses no other program.

#![allow(clippy::unwrap_used, reason = "part of the tests")]

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use walkdir::WalkDir;

/// The layers, from the lowest to the highest.
const FOLDERS: [&str; 8] =
    ["core", "windows", "containers", "kubernetes", "application", "programs", "testing", "xtask"];

/// The folders of a node's programs, which use nothing of what runs in a workload's container.
const NODE: [&str; 3] = ["kubernetes", "application", "programs"];

/// What crates of `core` may use in addition: nothing that reads, waits or logs.
const PURE: [&str; 9] = [
    "encoding_rs",
    "regex-lite",
    "serde",
    "serde-saphyr",
    "serde_json",
    "serde_path_to_error",
    "strsim",
    "strum",
    "thiserror",
];

#[test]
fn crates_use_only_crates_of_their_own_or_earlier_folders() {
    let mut metadata = Command::new(env!("CARGO"));
    metadata.args(["metadata", "--format-version=1", "--no-deps"]);
    let metadata: Value = serde_json::from_slice(&metadata.output().unwrap().stdout).unwrap();
    let root = Path::new(metadata["workspace_root"].as_str().unwrap());
    let packages = metadata["packages"].as_array().unwrap();
    let name = |value: &Value| value["name"].as_str().unwrap().to_owned();
    let layer = |package: &Value| {
        let path = Path::new(package["manifest_path"].as_str().unwrap());
        let path = path.strip_prefix(root).unwrap();
        let folder = path.strip_prefix("crates").unwrap_or(path).iter().next().unwrap();
        FOLDERS.iter().position(|known| folder == *known).expect("a crate lies in a known folder")
    };
    let layers: HashMap<_, _> = packages.iter().map(|p| (name(p), layer(p))).collect();
    for package in packages {
        let owner = name(package);
        let own_layer = layer(package);
        let manifest = std::fs::read_to_string(package["manifest_path"].as_str().unwrap()).unwrap();
        assert!(manifest.contains("\n[lints]\nworkspace = true\n"), "`{owner}` has other lints");
        let dependencies = package["dependencies"].as_array().unwrap().iter();
        // What builds or tests a crate is not a part of it.
        for used in dependencies.filter(|used| used["kind"].is_null()).map(name) {
            let is_allowed = match layers.get(&used) {
                Some(layer) if FOLDERS[*layer] == "containers" => {
                    !NODE.contains(&FOLDERS[own_layer]) && *layer <= own_layer
                }
                // A program is what users run, not a part of another program.
                Some(layer) if FOLDERS[own_layer] == "programs" => *layer < own_layer,
                Some(layer) => *layer <= own_layer,
                None => own_layer > 0 || PURE.contains(&&*used),
            };
            assert!(is_allowed, "`{owner}` ({}) may not use `{used}`", FOLDERS[own_layer]);
        }
    }
}

#[test]
fn unsafe_code_is_only_where_other_code_is_called() {
    let allowed =
        ["crates/programs/discovery_dll/src", "crates/kubernetes/device_plugin/src/unix_sockets"];
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for folder in
        ["crates/core", "crates/kubernetes", "crates/application", "crates/programs", "xtask"]
    {
        for file in WalkDir::new(root.join(folder)).into_iter().map(Result::unwrap) {
            let path = file.path().strip_prefix(&root).unwrap();
            let is_source = path.iter().any(|part| part == "src");
            if is_source && !allowed.iter().any(|allowed| path.starts_with(allowed)) {
                let text = std::fs::read_to_string(file.path()).unwrap_or_default();
                assert!(!text.contains("unsafe_code"), "{} allows unsafe code", path.display());
            }
        }
    }
}
