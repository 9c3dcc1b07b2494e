//! How `directx-visible` ends: Ctrl+C, and programs and filters that cannot be used.

use std::fs;

use super::output::{expect, output, text};
use super::paths::{FILTER, windows_build, windows_path};
use super::visible::{Launcher, SHOWN, bed, expect_all};

/// Offsets in a program's headers (winnt.h).
const MACHINE: usize = 4;
const CLR: usize = 24 + 112 + 14 * 8;

#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn ctrl_c_reaches_the_program_and_the_launcher_waits_for_it() {
    let launcher = Launcher::new();
    let own = launcher.program();
    let bed = bed();
    let mut command = launcher.host.command(&bed);
    command.args(["in-console", &bed, "interrupt", &own, "--", &bed, "wait-for-interrupt"]);
    expect(&output(command.env("DIRECTX_VISIBLE_DEVICES", SHOWN)), 0, "code 9\n", &[]);
}

#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn a_program_of_another_architecture() {
    let launcher = Launcher::new();
    // 0xAA64 is `IMAGE_FILE_MACHINE_ARM64`.
    let program = changed_bed(&launcher, "arm64.exe", MACHINE, &0xAA64_u16.to_le_bytes());
    let hint = "hint: the program must be one that this Windows can run";
    let result = launcher.output(&["--", &program]);
    expect(&result, 126, "", &["error: cannot run the program: ", hint]);
}

#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn a_program_that_cannot_be_filtered() {
    let launcher = Launcher::new();
    let clr = [0x1000_u32.to_le_bytes(), 72_u32.to_le_bytes()].concat();
    let program = changed_bed(&launcher, "managed.exe", CLR, &clr);
    let why = "it is a program of .NET Framework";
    let error = format!("error: the program would see every GPU: {why}");
    let hint = "hint: omit --require to run it anyway";
    let required = launcher.output(&["--require", "--", &program, "exit", "3"]);
    expect(&required, 123, "", &[&error, hint]);
    let result = launcher.output(&["--", &program, "gpu-lists"]);
    expect_all(&result);
    let warning = format!("directx-visible: the program sees every GPU: {why}\n");
    assert_eq!(text(&result.stderr), warning);
}

#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn a_filter_that_cannot_be_read() {
    let launcher = Launcher::new();
    // A folder exists as a file does, and nobody can read it as a library.
    let filter = launcher.folder.join(FILTER);
    fs::remove_file(&filter).unwrap();
    fs::create_dir(&filter).unwrap();
    let load = "cannot load the filter Z:";
    let required = launcher.output(&["--require", "--", &bed(), "exit", "3"]);
    expect(&required, 122, "", &["error: ", load, "hint: "]);
    let warning = "directx-visible: the program sees every GPU:";
    expect(&launcher.run(&[], &["exit", "3"]), 3, "", &[warning, load]);
}

/// `wine_bed` with other bytes in its headers, as Windows spells its path.
fn changed_bed(launcher: &Launcher, name: &str, at: usize, bytes: &[u8]) -> String {
    let mut program = fs::read(windows_build("wine_bed.exe")).unwrap();
    let headers = u32::from_le_bytes(program[0x3C..0x40].try_into().expect("four bytes"));
    let at = usize::try_from(headers).expect("it fits") + at;
    program[at..at + bytes.len()].copy_from_slice(bytes);
    let path = launcher.folder.join(name);
    fs::write(&path, program).unwrap();
    windows_path(&path)
}
