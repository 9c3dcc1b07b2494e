//! The clients of the library in C++ and Go, built for this machine. They print the same as
//! `test-device-discovery`: on Windows about the host, elsewhere, where only the C++ client runs,
//! for every inventory.
#![allow(clippy::unwrap_used, reason = "a test fails with a panic")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

/// Warnings about the header and the client are errors.
const STRICT: [&str; 4] = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// The folder with the library and the tool, which `cargo xtask test clients` builds.
fn built() -> PathBuf {
    let test = env::current_exe().unwrap();
    test.ancestors().nth(2).expect("tests are in `deps` of that folder").to_owned()
}

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

/// A C++ compiler with the client as its source, if this machine has one.
fn cpp(compiler: &str, program: &Path) -> Option<Command> {
    Command::new(compiler).arg("--version").output().ok()?;
    let mut command = Command::new(compiler);
    command.args(["-std=c++17", "-O1"]).args(STRICT).arg("-I").arg(root().join("include"));
    command.arg(root().join("crates/programs/discovery_dll/clients/cpp/test-device-discovery.cpp"));
    command.arg("-o").arg(program);
    Some(command)
}

#[cfg(not(windows))]
#[test]
#[ignore = "needs a C++ compiler: cargo xtask test clients"]
fn the_cpp_client_prints_the_same_as_the_tool() {
    let library = built();
    let folder = tempfile::tempdir().unwrap();
    // C programs can use the header as well.
    let source = folder.path().join("header.c");
    fs::write(&source, "#include \"DeviceDiscovery.h\"\nextern int nothing;\n").unwrap();
    let mut c = Command::new("cc");
    c.args(["-std=c99", "-fsyntax-only"]).args(STRICT).arg("-I").arg(root().join("include"));
    run(c.arg(source));

    let program = folder.path().join("client");
    let mut compiler = cpp("c++", &program).expect("there is a C++ compiler");
    run(compiler.arg("-L").arg(&library).arg("-ldirectx_device_discovery"));
    let inventories = fs::read_dir(root().join("fixtures/inventories")).unwrap();
    let inventories = inventories.map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    for inventory in inventories {
        let mut tool = Command::new(library.join("test-device-discovery"));
        let expected = run(tool.arg("--inventory").arg(&inventory)).stdout;
        let mut client = Command::new(&program);
        client.env("DIRECTX_DISCOVERY_INVENTORY", &inventory);
        // The variable for library folders on Linux and on macOS.
        client.env("LD_LIBRARY_PATH", &library).env("DYLD_LIBRARY_PATH", &library);
        assert_eq!(run(&mut client).stdout, expected, "{}", inventory.display());
    }
}

#[cfg(windows)]
#[test]
#[ignore = "needs Go: cargo xtask test clients"]
fn clients_print_the_same_as_the_tool() {
    let library = built();
    let folder = tempfile::tempdir().unwrap();
    let dll = folder.path().join("directx-device-discovery.dll");
    fs::copy(library.join("directx_device_discovery.dll"), dll).unwrap();
    let go = folder.path().join("go-client.exe");
    let mut build = Command::new("go");
    build.current_dir(root().join("bindings/go")).args(["build", "-o"]).arg(&go);
    run(build.arg("./cmd/test-device-discovery-go"));
    let mut clients = vec![go];
    let program = folder.path().join("cpp-client.exe");
    if let Some(mut compiler) = cpp("g++", &program) {
        let imports = folder.path().join("libdirectx-device-discovery.dll.a");
        let definition = root().join("include/DeviceDiscovery.def");
        run(Command::new("dlltool").arg("-d").arg(definition).arg("-l").arg(&imports));
        run(compiler.arg("-static").arg(&imports));
        clients.push(program);
    } else {
        eprintln!("the C++ client is not tested: MinGW-w64 (g++) is not in PATH");
    }
    // The host may have no devices, which is an error of the same kind in each.
    let result = |program: &Path| {
        let output = Command::new(program).output().unwrap();
        (output.status, output.stdout)
    };
    let expected = result(&library.join("test-device-discovery.exe"));
    for client in clients {
        assert_eq!(result(&client), expected, "{}", client.display());
    }
}

/// The Go client is formatted, and correct in the eyes of `go vet`.
#[test]
#[ignore = "needs Go: cargo xtask test clients"]
fn the_go_client_is_vetted() {
    let go = |words: &[&str]| {
        let mut go = Command::new(words[0]);
        go.current_dir(root().join("bindings/go")).args(&words[1..]);
        run(go.env("GOOS", "windows").env("GOARCH", "amd64").env("CGO_ENABLED", "0"))
    };
    assert_eq!(String::from_utf8_lossy(&go(&["gofmt", "-l", "."]).stdout), "");
    go(&["go", "vet", "./..."]);
}
