//! How `directx-visible` ends: Ctrl+C, exit codes, and programs and filters that cannot be
//! used.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use super::programs::{Programs, output};
use super::test_case::TestCase;
use super::visible::{FILTERED, HIDDEN, LISTS, Launcher, SHOWN, bed, expect, text};
use crate::visibility_filter::FILTERS;
use crate::wine::windows_path;
use crate::workspace;

/// Offsets in a program's headers (winnt.h).
const MACHINE: usize = 4;
const CLR: usize = 24 + 112 + 14 * 8;

type Test = fn(&Programs) -> Result<()>;

pub(super) fn tests() -> Vec<TestCase> {
    let tests: [(&str, Test); 5] = [
        ("Ctrl+C reaches the program, and the launcher waits for it", interrupt),
        ("a program of another architecture", other_architecture),
        ("a program that cannot be filtered", not_filtered),
        ("a filter that cannot be read", unreadable_filter),
        ("--com filters too, and needs its own library", missing_com_filter),
    ];
    let tests = tests.into_iter();
    tests.map(|(name, test)| TestCase::new(format!("visible: {name}"), test)).collect()
}

fn interrupt(programs: &Programs) -> Result<()> {
    let launcher = Launcher::new(programs)?;
    let (own, bed) = (windows_path(&launcher.program()), bed());
    let mut command = programs.host.command(&workspace::windows_build("wine_bed.exe"));
    command.args(["in-console", &bed, "interrupt", &own, "--", &bed, "wait-for-interrupt"]);
    let result = output(command.env("DIRECTX_VISIBLE_DEVICES", SHOWN))?;
    expect(&result, 0, "code 9\n", &[])
}

fn other_architecture(programs: &Programs) -> Result<()> {
    let launcher = Launcher::new(programs)?;
    // IMAGE_FILE_MACHINE_ARM64.
    let program = changed_bed(&launcher, "arm64.exe", MACHINE, &0xAA64_u16.to_le_bytes())?;
    let result = output(&mut launcher.command(&["--", &windows_path(&program)]))?;
    let hint = "hint: the program must be one that this Windows can run";
    expect(&result, 126, "", &["error: cannot run the program: ", hint])
}

fn not_filtered(programs: &Programs) -> Result<()> {
    let launcher = Launcher::new(programs)?;
    let clr = [0x1000_u32.to_le_bytes(), 72_u32.to_le_bytes()].concat();
    let program = windows_path(&changed_bed(&launcher, "managed.exe", CLR, &clr)?);
    let why = "it is a program of .NET Framework";
    let required = ["--require", "--", &program, "exit", "3"];
    let error = format!("error: the program would see every GPU: {why}");
    let hint = "hint: omit --require to run it nevertheless";
    expect(&output(&mut launcher.command(&required))?, 123, "", &[&error, hint])?;
    let warning = format!("directx-visible: the program sees every GPU: {why}\n");
    let words = ["--", &*program, "gpu-lists"];
    let result = output(&mut launcher.command(&words))?;
    ensure!(text(&result.stdout).contains(HIDDEN), "{}", text(&result.stdout));
    ensure!(text(&result.stderr) == warning, "{}", text(&result.stderr));
    Ok(())
}

fn missing_com_filter(programs: &Programs) -> Result<()> {
    let launcher = Launcher::new(programs)?;
    let bed = bed();
    // Where no library of DXGI can list adapters, the option changes nothing.
    let words = [&["--com", "--require", "--", &*bed], &LISTS[..]].concat();
    expect(&output(&mut launcher.command(&words))?, 0, FILTERED, &[])?;
    fs::remove_file(launcher.folder.join(FILTERS[2].file))?;
    let required = ["--com", "--require", "--", &*bed, "exit", "3"];
    let load = r"visible\directx-visible-com.dll: ";
    let result = output(&mut launcher.command(&required))?;
    expect(
        &result,
        122,
        "",
        &["error: cannot load the filter Z:", load, "hint: restore the file"],
    )?;
    let words = ["--com", "--", &*bed, "exit", "3"];
    let result = output(&mut launcher.command(&words))?;
    expect(&result, 3, "", &["directx-visible: the program sees every GPU:", load])
}

/// `wine_bed` with other bytes in its headers.
fn changed_bed(launcher: &Launcher, name: &str, at: usize, bytes: &[u8]) -> Result<PathBuf> {
    let mut program = fs::read(workspace::windows_build("wine_bed.exe"))?;
    let start = program.get(0x3C..0x40).context("no headers")?.try_into()?;
    let at = usize::try_from(u32::from_le_bytes(start))? + at;
    let place = program.get_mut(at..at + bytes.len()).context("no headers")?;
    place.copy_from_slice(bytes);
    let path = launcher.folder.join(name);
    fs::write(&path, program)?;
    Ok(path)
}

fn unreadable_filter(programs: &Programs) -> Result<()> {
    let launcher = Launcher::new(programs)?;
    let filter = launcher.filter();
    let (bed, path) = (bed(), windows_path(&filter));
    // A folder exists as a file does, and nobody can read it as a library.
    let whole = fs::read(&filter)?;
    fs::remove_file(&filter)?;
    fs::create_dir_all(&filter)?;
    let required = ["--require", "--", &*bed, "exit", "3"];
    let load = "cannot load the filter Z:";
    let refused = output(&mut launcher.command(&required));
    let allowed = launcher.run(&[], &["exit", "3"]);
    fs::remove_dir(&filter)?;
    expect(&refused?, 122, "", &["error: ", load, "hint: "])?;
    expect(&allowed?, 3, "", &["directx-visible: the program sees every GPU:", load])?;
    // One that becomes unreadable while the program runs does not stop its children.
    fs::write(&filter, whole)?;
    let _ = fs::remove_file(launcher.folder.join("gone.dll"));
    let change = format!("ren {path} gone.dll& mkdir {path}& {bed} gpu-lists");
    let result = output(&mut launcher.command(&["--", "cmd.exe", "/c", &change]));
    fs::remove_dir(&filter)?;
    let result = result?;
    let (out, err) = (text(&result.stdout), text(&result.stderr));
    ensure!(out.contains(HIDDEN), "{out}{err}");
    let why = "directx-visible: a child process sees every GPU: the filter's file cannot be read";
    ensure!(err.contains(why), "{err}");
    Ok(())
}
