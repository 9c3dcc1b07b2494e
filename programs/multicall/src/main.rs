//! `directx-programs`: every program of this project in one file.
//!
//! The programs share most of their code, so a container image contains this file once and
//! a hard link for each program: less than half of the separate programs. The name of the
//! file that is run selects the program.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use devices::DriverModel;

/// The main function of a program.
type Main = fn() -> ExitCode;

/// The names, and what runs under them. The clients in C++ and in Go print the same as
/// `test-device-discovery`.
const PROGRAMS: [(&str, Main); 9] = [
    ("directx-device-plugin", plugin::main),
    ("device-plugin-wddm", || plugin::main_for(DriverModel::Wddm)),
    ("device-plugin-mcdm", || plugin::main_for(DriverModel::Mcdm)),
    ("directx-feature-discovery", feature_discovery::main),
    ("gen-device-mounts", tools::mounts::main),
    ("query-hcs-capabilities", tools::hcs::main),
    ("test-device-discovery", tools::discovery::main),
    ("test-device-discovery-cpp", tools::discovery::main),
    ("test-device-discovery-go", tools::discovery::main),
];

/// The exit status for wrong usage, as in all programs.
const WRONG_USAGE: u8 = 2;

fn main() -> ExitCode {
    let path = env::args_os().next().unwrap_or_default();
    if let Some(main) = program(&path) {
        return main();
    }
    let names = PROGRAMS.map(|(name, _)| name).join(", ");
    // `eprintln!` panics if standard error is closed.
    let _ = writeln!(
        std::io::stderr(),
        "error: no program is called `{}`\nhint: run this file under one of the names {names}",
        path.display()
    );
    ExitCode::from(WRONG_USAGE)
}

/// The program that a file at `path` runs. Windows ignores case and may leave out `.exe`.
fn program(path: &OsString) -> Option<Main> {
    let path = Path::new(path);
    let is_windows_program = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("exe"));
    let name = if is_windows_program { path.file_stem() } else { path.file_name() };
    let name = name.and_then(OsStr::to_str)?;
    let found = PROGRAMS.iter().find(|(program, _)| name.eq_ignore_ascii_case(program));
    found.map(|(_, main)| *main)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_selects_the_program() {
        for path in [
            "gen-device-mounts",
            "/a/b/gen-device-mounts",
            "GEN-DEVICE-MOUNTS.EXE",
            "./gen-device-mounts.exe",
        ] {
            assert!(program(&path.into()).is_some(), "{path}");
        }
        for path in ["", "/", "directx-programs", "gen-device-mounts.bak", "gen-device-mounts/.."] {
            assert!(program(&path.into()).is_none(), "{path}");
        }
    }
}
