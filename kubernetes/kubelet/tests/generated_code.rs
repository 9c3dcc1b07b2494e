//! Checks that the generated Rust code of the device plugin API matches its `.proto`.
//!
//! `UPDATE_GENERATED=1 cargo test -p kubelet --test generated_code` regenerates it.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::Path;

const PROTO: &str = "proto/v1beta1.proto";
const UPDATE: &str = "UPDATE_GENERATED";

/// Which program the code is generated for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Plugin,
    Kubelet,
}

#[test]
fn code_of_the_plugin_matches_the_proto() {
    compare(Side::Plugin, Path::new("src/generated/v1beta1.rs"));
}

#[test]
fn code_of_the_kubelet_double_matches_the_proto() {
    compare(Side::Kubelet, Path::new("../kubelet_double/src/generated/v1beta1.rs"));
}

fn compare(side: Side, checked_in: &Path) {
    let checked_in = Path::new(env!("CARGO_MANIFEST_DIR")).join(checked_in);
    let generated = generate(side);
    if std::env::var_os(UPDATE).is_some() {
        fs::write(&checked_in, &generated).unwrap();
    }
    let found = fs::read_to_string(&checked_in).unwrap_or_default();
    assert!(
        found == generated,
        "{} does not match {PROTO}; run the test with {UPDATE}=1 to regenerate it",
        checked_in.display()
    );
}

/// Generates the code of one side. The plugin calls `Registration`, and `src/service.rs` serves
/// `DevicePlugin`; the kubelet serves `Registration` and calls `DevicePlugin`.
fn generate(side: Side) -> String {
    let proto = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(PROTO)).unwrap();
    match side {
        Side::Plugin => compile(&without_service(&proto, "DevicePlugin"), Half::Client),
        Side::Kubelet => {
            let server = without_service(&proto, "DevicePlugin");
            with_client(&compile(&server, Half::Server), &without_service(&proto, "Registration"))
        }
    }
}

/// Whether to generate a service's server or its client.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Half {
    Server,
    Client,
}

/// Appends the client of `proto` to `server`, which already contains the messages.
fn with_client(server: &str, proto: &str) -> String {
    const START: &str = "/// Generated client implementations.";
    let client = compile(proto, Half::Client);
    let (_messages, module) = client.split_once(START).unwrap();
    format!("{server}{START}{module}")
}

fn compile(proto: &str, half: Half) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("v1beta1.proto");
    fs::write(&file, proto).unwrap();
    tonic_prost_build::configure()
        .build_server(half == Half::Server)
        .build_client(half == Half::Client)
        .build_transport(false)
        .btree_map(".")
        .out_dir(folder.path())
        .compile_fds(protox::compile([&file], [folder.path()]).unwrap())
        .unwrap();
    fs::read_to_string(folder.path().join("v1beta1.rs")).unwrap()
}

fn without_service(proto: &str, name: &str) -> String {
    let (before, rest) = proto.split_once(&format!("service {name} {{")).unwrap();
    let (_service, after) = rest.split_once("\n}\n").unwrap();
    let (before, _comment) = before.trim_end().rsplit_once('\n').unwrap();
    format!("{before}\n{after}")
}
