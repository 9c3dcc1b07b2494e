//! The discovery library's clients in C, C++ and Go, built for Windows. They find the same as
//! `test-device-discovery`. `discovery_dll` tests those for this machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::compare::{compare, without_order};
use super::host::Host;
use super::output::{native, stdout};
use super::paths::{inventories, root, windows_build};

const CPP_CLIENT: &str = "test-device-discovery-cpp.exe";
/// The programs with the names of the earlier headers.
const EARLIER_CLASSES: &str = "classes.exe";
const EARLIER_FUNCTIONS: &str = "functions.exe";
pub(crate) const GO_CLIENT: &str = "test-device-discovery-go.exe";

#[test]
#[ignore = "needs Wine, Go and MinGW-w64: cargo xtask test wine"]
fn clients_print_the_same_as_the_tool() {
    let host = Host::take();
    let folder = windows_clients(&host);
    let check = |what: &str| {
        let tool = stdout(&mut host.command(windows_build("test-device-discovery.exe")));
        for client in [CPP_CLIENT, GO_CLIENT] {
            let found = stdout(&mut host.command(folder.join(client)));
            compare(&format!("{client} with {what}"), &tool, &found);
        }
        tool
    };
    for inventory in inventories("fixtures/inventories") {
        host.set(&inventory);
        let tool = check(&inventory.display().to_string());
        let expected = stdout(&mut native("test-device-discovery", &[], &inventory));
        compare("the tool", &without_order(&expected), &without_order(&tool));
    }
    // They use the same functions, so one host is enough.
    host.set(&root().join("fixtures/inventories/aws-t4-two.yaml"));
    let compared = stdout(&mut host.command(folder.join(EARLIER_CLASSES)));
    assert_eq!(compared.trim_end(), "compared 2 devices");
    let counted = stdout(&mut host.command(folder.join(EARLIER_FUNCTIONS)));
    assert_eq!(counted.lines().next(), Some("all: 2"));
    host.install(&[]);
    let tool = check("no dxcore.dll");
    assert!(tool.contains("Discovered "), "{tool}");
}

/// Builds the clients into a folder that has the library.
pub(crate) fn windows_clients(host: &Host) -> PathBuf {
    let folder = host.empty_folder("clients");
    let library = folder.join("directx-device-discovery.dll");
    fs::copy(windows_build("directx_device_discovery.dll"), library).unwrap();
    cpp(&folder);
    let mut go = Command::new("go");
    go.env("GOOS", "windows").env("GOARCH", "amd64").env("CGO_ENABLED", "0");
    go.current_dir(root().join("bindings/go")).args(["build", "-o"]).arg(folder.join(GO_CLIENT));
    stdout(go.arg("./cmd/test-device-discovery-go"));
    folder
}

/// The clients in C and C++.
fn cpp(folder: &Path) {
    let include = root().join("include");
    let imports = folder.join("libdirectx-device-discovery.dll.a");
    let mut dlltool = Command::new("x86_64-w64-mingw32-dlltool");
    dlltool.arg("-d").arg(include.join("DeviceDiscovery.def")).arg("-l").arg(&imports);
    stdout(&mut dlltool);
    for (compiler, standard, source, program) in [
        ("g++", "-std=c++17", "cpp/test-device-discovery.cpp", CPP_CLIENT),
        ("g++", "-std=c++14", "earlier/classes.cpp", EARLIER_CLASSES),
        ("gcc", "-std=c99", "earlier/functions.c", EARLIER_FUNCTIONS),
    ] {
        let mut compiler = Command::new(format!("x86_64-w64-mingw32-{compiler}"));
        compiler.args([standard, "-O1", "-static", "-I"]).arg(&include);
        compiler.arg(root().join("crates/programs/discovery_dll/clients").join(source));
        stdout(compiler.arg("-o").arg(folder.join(program)).arg(&imports));
    }
}
