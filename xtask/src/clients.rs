//! Builds the discovery library's clients in other languages, and runs the C++ client on
//! this machine.
//!
//! `programs/discovery_dll/clients/cpp` uses the classes of `include/DeviceDiscovery.h`.
//! `bindings/go` loads the library without cgo. Both print the same as
//! `test-device-discovery`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::prerequisites;
use crate::process::{line, run, stdout};
use crate::workspace::{self, cargo};

/// The file name under which programs load the library.
const LIBRARY: &str = "directx-device-discovery.dll";

/// Warnings about the header and the client are errors.
const STRICT: [&str; 4] = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"];

/// Builds the library, the tools and the clients for Windows, into one folder.
pub(crate) fn for_windows() -> Result<PathBuf> {
    prerequisites::for_windows_builds()?;
    let target = ["--target", workspace::WINDOWS_TARGET];
    run(cargo().args(["build", "--quiet", "-p", "discovery_dll", "-p", "tools"]).args(target))?;
    let folder = workspace::target_dir().join("clients");
    fs::create_dir_all(&folder)?;
    let library = workspace::windows_build("directx_device_discovery.dll");
    fs::copy(&library, folder.join(LIBRARY))
        .with_context(|| format!("cannot copy {}", library.display()))?;
    cpp_for_windows(&folder)?;
    go_for_windows(&folder)?;
    Ok(folder)
}

fn cpp_for_windows(folder: &Path) -> Result<()> {
    let imports = folder.join("libdirectx-device-discovery.dll.a");
    let mut dlltool = Command::new("x86_64-w64-mingw32-dlltool");
    run(dlltool.arg("-d").arg(include().join("DeviceDiscovery.def")).arg("-l").arg(&imports))?;
    let mut compiler = Command::new("x86_64-w64-mingw32-g++");
    let program = folder.join("test-device-discovery-cpp.exe");
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
    let program = folder.join("test-device-discovery-go.exe");
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

/// Builds all clients. On this machine the library reads inventories, and the C++ client
/// must print the same as `test-device-discovery` for each of them.
pub(crate) fn check() -> Result<()> {
    let folder = for_windows()?;
    if cfg!(windows) {
        return Ok(());
    }
    header_is_c(&folder)?;
    run(cargo().args(["build", "--quiet", "-p", "discovery_dll", "-p", "tools"]))?;
    let library = workspace::native_build("");
    let program = folder.join("test-device-discovery-cpp");
    let mut compiler = Command::new("c++");
    cpp(&mut compiler).arg("-o").arg(&program).arg("-L").arg(&library);
    run(compiler.arg("-ldirectx_device_discovery"))?;
    for inventory in inventories()? {
        let mut tool = Command::new(workspace::native_build("test-device-discovery"));
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
