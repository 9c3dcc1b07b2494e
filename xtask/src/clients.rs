//! The discovery library's clients in other languages: built, and run where they can.
//!
//! `programs/discovery_dll/clients/cpp` uses the classes of `include/DeviceDiscovery.h`,
//! `bindings/go` loads the library without cgo. Both print what
//! `test-device-discovery` prints.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process::{answer, run};
use crate::setup;
use crate::workspace::{self, cargo};

/// The library as programs look for it.
const LIBRARY: &str = "directx-device-discovery.dll";

/// Warnings that C and C++ compilers give for the header and the client are errors.
const STRICT: [&str; 4] = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"];

/// Builds the library, the tools and the clients for Windows, into one folder.
pub(crate) fn for_windows() -> Result<PathBuf> {
    setup::for_windows_builds()?;
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
    if answer(Command::new("go").arg("version")).is_none() {
        bail!(
            "Go is missing, which builds a client of the discovery library\n\
             hint: install Go 1.21 or newer from https://go.dev/dl"
        );
    }
    match answer(Command::new("gofmt").arg("-l").arg(&source)) {
        Some(files) if files.is_empty() => {}
        Some(files) => bail!("not formatted: {}\nhint: run `gofmt -w`", files.trim_end()),
        None => bail!("`gofmt -l {}` fails", source.display()),
    }
    run(&mut go(&["vet", "./..."]))?;
    let program = folder.join("test-device-discovery-go.exe");
    run(go(&["build", "-o"]).arg(program).arg("./cmd/test-device-discovery-go"))
}

/// Adds what every build of the C++ client is told.
fn cpp(compiler: &mut Command) -> &mut Command {
    let source = "programs/discovery_dll/clients/cpp/test-device-discovery.cpp";
    compiler.args(["-std=c++17", "-O1"]).args(STRICT).arg("-I").arg(include());
    compiler.arg(workspace::root().join(source))
}

fn include() -> PathBuf {
    workspace::root().join("include")
}

/// Builds everything, and runs the C++ client of this machine against the library of
/// this machine, which reads recorded hosts here.
pub(crate) fn perform() -> Result<()> {
    let folder = for_windows()?;
    if cfg!(windows) {
        return Ok(());
    }
    header_is_c(&folder)?;
    run(cargo().args(["build", "--quiet", "-p", "discovery_dll", "-p", "tools"]))?;
    let library = workspace::own_build("");
    let program = folder.join("test-device-discovery-cpp");
    let mut compiler = Command::new("c++");
    cpp(&mut compiler).arg("-o").arg(&program).arg("-L").arg(&library);
    run(compiler.arg("-ldirectx_device_discovery"))?;
    for inventory in inventories()? {
        let mut tool = Command::new(workspace::own_build("test-device-discovery"));
        let expected = said(tool.arg("--inventory").arg(&inventory))?;
        let mut client = Command::new(&program);
        client.env("DIRECTX_DISCOVERY_INVENTORY", &inventory);
        // Both names of the variable that tells where libraries are.
        client.env("LD_LIBRARY_PATH", &library).env("DYLD_LIBRARY_PATH", &library);
        if said(&mut client)? != expected {
            bail!("the C++ client and the tool differ on {}", inventory.display());
        }
    }
    Ok(())
}

/// C programs may use the header as well.
fn header_is_c(folder: &Path) -> Result<()> {
    let source = folder.join("header.c");
    fs::write(&source, "#include \"DeviceDiscovery.h\"\nextern int nothing;\n")?;
    let mut compiler = Command::new("cc");
    compiler.args(["-std=c99", "-fsyntax-only"]).args(STRICT).arg("-I").arg(include());
    run(compiler.arg(source))
}

/// The recorded hosts of the fixtures.
pub(crate) fn inventories() -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(workspace::root().join("fixtures/inventories"))?;
    let mut files = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<PathBuf>>>()?;
    files.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    Ok(files)
}

fn said(command: &mut Command) -> Result<String> {
    answer(command).with_context(|| format!("{} fails", crate::process::line(command)))
}
