//! The clients of the library in C, C++ and Go, built for this machine. They find the same as
//! `test-device-discovery`: on Windows about the host, elsewhere, where the Go client does not run,
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

/// This project's client, and sources with the names of the earlier headers, with their compilers.
/// Compilers of Microsoft have C++14 as their default.
const CPP_CLIENT: [&str; 3] = ["c++", "-std=c++17", "cpp/test-device-discovery.cpp"];
const EARLIER_CLASSES: [&str; 3] = ["c++", "-std=c++14", "earlier/classes.cpp"];
#[cfg(not(windows))]
const EARLIER_FUNCTIONS: [&str; 3] = ["cc", "-std=c99", "earlier/functions.c"];

/// A compiler with the client as its source, if this machine has the compiler.
fn compiler([compiler, standard, client]: [&str; 3], program: &Path) -> Option<Command> {
    let compiler = match (compiler, cfg!(windows)) {
        ("c++", true) => "g++",
        ("cc", true) => "gcc",
        (compiler, _) => compiler,
    };
    Command::new(compiler).arg("--version").output().ok()?;
    let mut command = Command::new(compiler);
    command.args([standard, "-O1"]).args(STRICT).arg("-I").arg(root().join("include"));
    command.arg(root().join("crates/programs/discovery_dll/clients").join(client));
    command.arg("-o").arg(program);
    Some(command)
}

#[cfg(not(windows))]
#[test]
#[ignore = "needs a C++ compiler: cargo xtask test clients"]
fn the_c_and_cpp_clients_find_the_same_as_the_tool() {
    let library = built();
    let folder = tempfile::tempdir().unwrap();
    let build = |client: [&str; 3], name: &str| {
        let program = folder.path().join(name);
        let mut compiler = compiler(client, &program).expect("there is a compiler");
        run(compiler.arg("-L").arg(&library).arg("-ldirectx_device_discovery"));
        program
    };
    let client = build(CPP_CLIENT, "client");
    let earlier_classes = build(EARLIER_CLASSES, "classes");
    let earlier_functions = build(EARLIER_FUNCTIONS, "functions");

    let inventories = fs::read_dir(root().join("fixtures/inventories")).unwrap();
    let inventories = inventories.map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    for inventory in inventories {
        let tool = |filter: &str| {
            let mut tool = Command::new(library.join("test-device-discovery"));
            tool.args(["--filter", filter, "--inventory"]).arg(&inventory);
            String::from_utf8(run(&mut tool).stdout).unwrap()
        };
        let output = |program: &Path| {
            let mut client = Command::new(program);
            client.env("DIRECTX_DISCOVERY_INVENTORY", &inventory);
            // The variable for library folders on Linux and on macOS.
            client.env("LD_LIBRARY_PATH", &library).env("DYLD_LIBRARY_PATH", &library);
            String::from_utf8(run(&mut client).stdout).unwrap()
        };
        assert_eq!(output(&client), tool("all"), "{}", inventory.display());
        let compared = output(&earlier_classes);
        assert!(compared.starts_with("compared "), "{}: {compared}", inventory.display());
        for line in output(&earlier_functions).lines() {
            let (filter, count) = line.split_once(": ").unwrap();
            let expected = format!("Discovered {count} devices.");
            assert_eq!(tool(filter).lines().nth(1), Some(&*expected), "{}", inventory.display());
        }
    }
}

/// The functions of a 32-bit program have other addresses and another calling convention.
#[cfg(target_os = "linux")]
#[test]
#[ignore = "needs a C compiler: cargo xtask test clients"]
fn the_header_is_refused_on_windows_for_other_processors() {
    let header = root().join("include/DeviceDiscovery.h");
    let compile = |processor: &[&str]| {
        let mut compiler = Command::new("cc");
        compiler.args(["-x", "c", "-E", "-D_WIN32"]).args(processor).arg(&header);
        compiler.output().unwrap()
    };
    assert!(compile(&["-D__x86_64__"]).status.success());
    let refused = compile(&["-U__x86_64__"]);
    assert!(!refused.status.success());
    let error = String::from_utf8_lossy(&refused.stderr);
    assert!(error.contains("compile for x64"), "{error}");
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
    let earlier = folder.path().join("classes.exe");
    if let Some(compiler) = compiler(CPP_CLIENT, &program) {
        let imports = folder.path().join("libdirectx-device-discovery.dll.a");
        let definition = root().join("include/DeviceDiscovery.def");
        run(Command::new("dlltool").arg("-d").arg(definition).arg("-l").arg(&imports));
        let classes = self::compiler(EARLIER_CLASSES, &earlier).unwrap();
        for mut compiler in [compiler, classes] {
            run(compiler.arg("-static").arg(&imports));
        }
        clients.push(program);
        run(&mut Command::new(earlier));
    } else {
        eprintln!("the C++ clients are not tested: MinGW-w64 (g++) is not in PATH");
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
