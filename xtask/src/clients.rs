//! Builds the discovery library's clients in other languages, and runs them on this machine.
//!
//! `programs/discovery_dll/clients/cpp` uses the classes of `include/DeviceDiscovery.h`.
//! `bindings/go` loads the library without cgo. Both print the same as
//! `test-device-discovery`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process::{line, run, stdout};
use crate::skipped_part::SkippedPart;
use crate::workspace::{self, cargo};
use crate::{imports, prerequisites};

/// The file name under which programs load the library.
const LIBRARY: &str = "directx-device-discovery.dll";

/// Warnings about the header and the client are errors.
const STRICT: [&str; 4] = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"];

const CPP_CLIENT: &str = "test-device-discovery-cpp.exe";
pub(crate) const GO_CLIENT: &str = "test-device-discovery-go.exe";

/// The clients for Windows, by their file names.
pub(crate) const WINDOWS_CLIENTS: [&str; 2] = [CPP_CLIENT, GO_CLIENT];

/// Builds the library, the tools and the clients for Windows, into one folder.
pub(crate) fn for_windows() -> Result<PathBuf> {
    let folder = library_for_windows()?;
    cpp_for_windows(&folder)?;
    go_for_windows(&folder)?;
    imports_of_clients(&folder, &WINDOWS_CLIENTS)?;
    Ok(folder)
}

/// Builds the library and the tools for Windows, and returns a folder with the library.
fn library_for_windows() -> Result<PathBuf> {
    prerequisites::for_windows_builds()?;
    let mut build = cargo();
    build.args(["build", "--quiet", "-p", "discovery_dll", "-p", "tools"]);
    run(workspace::for_windows(&mut build))?;
    let folder = workspace::target_dir().join("clients");
    fs::create_dir_all(&folder)?;
    let library = workspace::windows_build("directx_device_discovery.dll");
    fs::copy(&library, folder.join(LIBRARY))
        .with_context(|| format!("cannot copy {}", library.display()))?;
    Ok(folder)
}

fn imports_of_clients(folder: &Path, names: &[&str]) -> Result<()> {
    let files = names.iter().map(|name| ((*name).to_owned(), folder.join(name)));
    imports::check(&files.collect::<Vec<_>>())
}

/// A tool of MinGW-w64, which has a prefix where it makes programs for another system.
fn mingw(tool: &str) -> Command {
    let prefix = if cfg!(windows) { "" } else { "x86_64-w64-mingw32-" };
    Command::new(format!("{prefix}{tool}"))
}

fn cpp_for_windows(folder: &Path) -> Result<()> {
    let imports = folder.join("libdirectx-device-discovery.dll.a");
    let mut dlltool = mingw("dlltool");
    run(dlltool.arg("-d").arg(include().join("DeviceDiscovery.def")).arg("-l").arg(&imports))?;
    let mut compiler = mingw("g++");
    let program = folder.join(CPP_CLIENT);
    run(cpp(&mut compiler).arg("-static").arg("-o").arg(program).arg(&imports))
}

fn go_for_windows(folder: &Path) -> Result<()> {
    let source = workspace::root().join("bindings/go");
    let go = |words: &[&str]| {
        let mut go = Command::new("go");
        go.current_dir(&source).args(words);
        go.env("GOOS", "windows").env("GOARCH", "amd64").env("CGO_ENABLED", "0");
        go
    };
    prerequisites::require_go("a client of the discovery library", "1.21")?;
    match stdout(Command::new("gofmt").arg("-l").arg(&source)) {
        Some(files) if files.is_empty() => {}
        Some(files) => bail!("unformatted files: {}\nhint: run `gofmt -w`", files.trim_end()),
        None => bail!("`gofmt -l {}` failed", source.display()),
    }
    run(&mut go(&["vet", "./..."]))?;
    let program = folder.join(GO_CLIENT);
    run(go(&["build", "-o"]).arg(program).arg("./cmd/test-device-discovery-go"))
}

/// Adds the arguments of every build of the C++ client.
fn cpp(compiler: &mut Command) -> &mut Command {
    let source = "programs/discovery_dll/clients/cpp/test-device-discovery.cpp";
    compiler.args(["-std=c++17", "-O1"]).args(STRICT).arg("-I").arg(include());
    compiler.arg(workspace::root().join(source))
}

fn include() -> PathBuf {
    workspace::root().join("include")
}

/// Builds all clients, and runs those for this machine.
pub(crate) fn check() -> Result<Vec<SkippedPart>> {
    if cfg!(windows) { on_windows() } else { elsewhere().map(|()| Vec::new()) }
}

/// On Windows the library reads the host, and the clients must print the same about it as
/// `test-device-discovery`.
fn on_windows() -> Result<Vec<SkippedPart>> {
    let folder = library_for_windows()?;
    go_for_windows(&folder)?;
    let (mut clients, mut skipped) = (vec![GO_CLIENT], Vec::new());
    if stdout(mingw("g++").arg("--version")).is_some() {
        cpp_for_windows(&folder)?;
        clients.push(CPP_CLIENT);
    } else {
        skipped.push(SkippedPart::new("the C++ client", "MinGW-w64 (g++) is not in PATH"));
    }
    imports_of_clients(&folder, &clients)?;
    let result = |program: PathBuf| {
        let mut command = Command::new(program);
        let output = command.output().with_context(|| format!("cannot run {}", line(&command)))?;
        anyhow::Ok((output.status, output.stdout))
    };
    let expected = result(workspace::native_program("test-device-discovery"))?;
    for client in clients {
        if result(folder.join(client))? != expected {
            bail!("{client} and test-device-discovery print different texts for this host");
        }
    }
    Ok(skipped)
}

/// On other systems the library reads inventories, and the C++ client must print the same
/// as `test-device-discovery` for each of them.
fn elsewhere() -> Result<()> {
    let folder = for_windows()?;
    header_is_c(&folder)?;
    run(cargo().args(["build", "--quiet", "-p", "discovery_dll", "-p", "tools"]))?;
    let library = workspace::native_build("");
    let program = folder.join("test-device-discovery-cpp");
    let mut compiler = Command::new("c++");
    cpp(&mut compiler).arg("-o").arg(&program).arg("-L").arg(&library);
    run(compiler.arg("-ldirectx_device_discovery"))?;
    for inventory in inventories()? {
        let mut tool = Command::new(workspace::native_program("test-device-discovery"));
        let expected = client_output(tool.arg("--inventory").arg(&inventory))?;
        let mut client = Command::new(&program);
        client.env("DIRECTX_DISCOVERY_INVENTORY", &inventory);
        // The variable for library folders on Linux and on macOS.
        client.env("LD_LIBRARY_PATH", &library).env("DYLD_LIBRARY_PATH", &library);
        if client_output(&mut client)? != expected {
            bail!("the C++ client and the tool print different texts for {}", inventory.display());
        }
    }
    Ok(())
}

/// C programs can use the header as well.
fn header_is_c(folder: &Path) -> Result<()> {
    let source = folder.join("header.c");
    fs::write(&source, "#include \"DeviceDiscovery.h\"\nextern int nothing;\n")?;
    let mut compiler = Command::new("cc");
    compiler.args(["-std=c99", "-fsyntax-only"]).args(STRICT).arg("-I").arg(include());
    run(compiler.arg(source))
}

/// The inventories in `fixtures`.
pub(crate) fn inventories() -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(workspace::root().join("fixtures/inventories"))?;
    let mut files = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<PathBuf>>>()?;
    files.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    Ok(files)
}

fn client_output(command: &mut Command) -> Result<String> {
    stdout(command).with_context(|| format!("{} failed", line(command)))
}
