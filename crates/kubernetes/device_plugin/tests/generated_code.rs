//! Checks that the generated Rust code matches the `.proto` files, and the README the example.
//!
//! `UPDATE_GENERATED=1 cargo test -p device-plugin --test generated_code` regenerates it.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::Path;

const UPDATE: &str = "UPDATE_GENERATED";

#[test]
fn the_code_matches_the_proto_files() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (proto, package) in [
        ("v1beta1", "v1beta1"),
        ("status", "io.crates.device_plugin.v1"),
        ("pod_resources", "v1"),
        ("pods", "v1alpha1"),
    ] {
        let generated = generate(&root.join("proto"), proto, package);
        let checked_in = root.join(format!("src/generated/{proto}.rs"));
        if std::env::var_os(UPDATE).is_some() {
            fs::write(&checked_in, &generated).unwrap();
        }
        let found = fs::read_to_string(&checked_in).unwrap_or_default();
        assert!(
            found == generated,
            "{} does not match proto/{proto}.proto; run the test with {UPDATE}=1 to regenerate it",
            checked_in.display()
        );
    }
}

#[test]
fn the_readme_shows_the_example() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |file: &str| fs::read_to_string(root.join(file)).unwrap();
    let example = read("examples/minimal.rs");
    let code = &example[example.find("use ").unwrap()..];
    assert!(read("README.md").contains(&format!("```rust,no_run\n{code}```\n")), "{code}");
}

fn generate(folder: &Path, proto: &str, package: &str) -> String {
    let out = tempfile::tempdir().unwrap();
    tonic_prost_build::configure()
        .build_transport(false)
        .btree_map(".")
        .out_dir(out.path())
        .compile_fds(protox::compile([format!("{proto}.proto")], [folder]).unwrap())
        .unwrap();
    fs::read_to_string(out.path().join(format!("{package}.rs"))).unwrap()
}
