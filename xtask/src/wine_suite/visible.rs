//! `directx-visible` on a host with three adapters: those of an inventory with two GPUs, and
//! Wine's own. The lists are those of Wine's win32u, whose code is that of Windows.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};

use super::programs::{Programs, output};
use super::test_case::TestCase;
use crate::visibility_filter::{FILTERS, Filter};
use crate::wine::windows_path;
use crate::workspace;

/// A host with two GPUs, and their LUIDs.
const INVENTORY: &str = "fixtures/inventories/aws-t4-two.yaml";
pub(super) const SHOWN: &str = "7098126";
pub(super) const HIDDEN: &str = "7048070";

pub(super) const LISTS: [&str; 3] = ["gpu-lists", SHOWN, HIDDEN];

/// What `wine_bed` prints with [`LISTS`] in a filtered process.
pub(super) const FILTERED: &str = "D3DKMTEnumAdapters 7098126\nD3DKMTEnumAdapters2 7098126 of 1\n\
    open 7098126 00000000 handle\nopen 7048070 C000000D -\n";

type Test = fn(&Programs) -> Result<()>;

pub(super) fn tests() -> Vec<TestCase> {
    let tests: [(&str, Test); 13] = [
        ("only the allocated adapter is listed and opened", lists),
        ("a child of cmd.exe", |p| through(p, &["cmd.exe", "/c"])),
        ("a child of `start`", |p| through(p, &["cmd.exe", "/c", "start", "/wait", "/b"])),
        ("a child with an empty environment", without_environment),
        ("nested launchers show what both allow", nested),
        ("exit codes are returned", exit_codes),
        ("the command line stays as it was written", command_line),
        ("a shutdown reaches the program", |p| shutdown(p, &bed())),
        ("a second filter chains to the first", |p| second_filter(p, &bed(), &FILTERS[0])),
        ("code that is not known is not changed", |p| unknown_code(p, &bed(), &FILTERS[0])),
        ("a missing and a damaged filter", bad_filter),
        ("bad variables and commands", bad_input),
        ("the check compares lists with the allocation", check),
    ];
    let tests = tests.into_iter();
    tests.map(|(name, test)| TestCase::new(format!("visible: {name}"), test)).collect()
}

/// The launcher and its filters, alone in a folder.
pub(super) struct Launcher<'a> {
    programs: &'a Programs<'a>,
    pub(super) folder: PathBuf,
}

impl Launcher<'_> {
    pub(super) fn new<'a>(programs: &'a Programs<'a>) -> Result<Launcher<'a>> {
        programs.host.set(&workspace::root().join(INVENTORY))?;
        let folder = workspace::target_dir().join("wine").join("visible");
        fs::create_dir_all(&folder)?;
        let launcher = Launcher { programs, folder };
        let program = workspace::windows_build("directx-visible.exe");
        fs::copy(&program, launcher.program())
            .with_context(|| format!("cannot copy {}", program.display()))?;
        for filter in &programs.filters {
            fs::copy(filter, launcher.folder.join(filter.file_name().unwrap_or_default()))?;
        }
        Ok(launcher)
    }

    pub(super) fn program(&self) -> PathBuf {
        self.folder.join("directx-visible.exe")
    }

    pub(super) fn filter(&self) -> PathBuf {
        self.folder.join(FILTERS[0].file)
    }

    pub(super) fn filter_32(&self) -> PathBuf {
        self.folder.join(FILTERS[1].file)
    }

    /// Copies a filter beside itself, and returns the path of the copy.
    fn copy(&self, filter: &Filter) -> Result<String> {
        let copy = self.folder.join("copy.dll");
        fs::copy(self.folder.join(filter.file), &copy)?;
        Ok(windows_path(&copy))
    }

    /// The launcher in a container that has [`SHOWN`].
    pub(super) fn command(&self, words: &[&str]) -> Command {
        let mut command = self.programs.host.command(&self.program());
        command.args(words).env("DIRECTX_VISIBLE_DEVICES", SHOWN);
        command
    }

    /// Runs the `lines` of a script with cmd.exe, in a container that has [`SHOWN`].
    fn script(&self, name: &str, lines: &str) -> Result<Output> {
        let script = self.folder.join(name);
        fs::write(&script, lines)?;
        let mut command = self.programs.host.command("cmd.exe".as_ref());
        command.args(["/c", &windows_path(&script)]);
        output(command.env("DIRECTX_VISIBLE_DEVICES", SHOWN))
    }

    /// Runs the launcher with `wine_bed` as the program.
    pub(super) fn run(&self, before: &[&str], words: &[&str]) -> Result<Output> {
        let bed = bed();
        let words = [&["--"], before, &[&*bed], words].concat();
        output(&mut self.command(&words))
    }
}

pub(super) fn bed() -> String {
    windows_path(&workspace::windows_build("wine_bed.exe"))
}

pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace("\r\n", "\n")
}

/// The command exits with `code`, prints `stdout`, and prints lines with each of `errors`.
pub(super) fn expect(result: &Output, code: i32, stdout: &str, errors: &[&str]) -> Result<()> {
    let (out, err) = (text(&result.stdout), text(&result.stderr));
    // Linux keeps the lower eight bits of an exit code.
    ensure!(result.status.code() == Some(code & 0xFF), "{}: {out}{err}", result.status);
    ensure!(out == stdout, "printed\n{out}{err}");
    ensure!(errors.iter().all(|error| err.contains(error)), "wrote\n{err}");
    ensure!(!errors.is_empty() || err.is_empty(), "wrote\n{err}");
    Ok(())
}

fn lists(programs: &Programs) -> Result<()> {
    let launcher = Launcher::new(programs)?;
    let mut unfiltered = programs.host.command(&workspace::windows_build("wine_bed.exe"));
    let all = text(&output(unfiltered.args(LISTS))?.stdout);
    let both_open = all.matches("00000000 handle").count() == 2;
    ensure!(all.contains(&format!("{HIDDEN},{SHOWN}")) && both_open, "unfiltered:\n{all}");
    expect(&launcher.run(&[], &LISTS)?, 0, FILTERED, &[])
}

fn through(programs: &Programs, before: &[&str]) -> Result<()> {
    expect(&Launcher::new(programs)?.run(before, &LISTS)?, 0, FILTERED, &[])
}

fn without_environment(programs: &Programs) -> Result<()> {
    let bed = bed();
    let before = [&*bed, "without-environment"];
    expect(&Launcher::new(programs)?.run(&before, &LISTS)?, 0, FILTERED, &[])
}

fn nested(programs: &Programs) -> Result<()> {
    let launcher = Launcher::new(programs)?;
    let (own, bed) = (windows_path(&launcher.program()), bed());
    let inner = [&["--", &own, "--", &bed], &LISTS[..]].concat();
    expect(&output(&mut launcher.command(&inner))?, 0, FILTERED, &[])?;
    // The inner launcher is told of both GPUs, and the outer one of one.
    let set = format!("set DIRECTX_VISIBLE_DEVICES={HIDDEN},{SHOWN}&& {own} -- {bed} gpu-lists");
    let result = output(&mut launcher.command(&["--", "cmd.exe", "/c", &set]))?;
    let start = FILTERED.split("open").next().unwrap_or_default();
    let warning = format!("devices of the container do not exist any more: {HIDDEN}");
    expect(&result, 0, start, &[&warning])
}

fn exit_codes(programs: &Programs) -> Result<()> {
    let launcher = Launcher::new(programs)?;
    for code in [0, 1, 42, 255] {
        expect(&launcher.run(&[], &["exit", &code.to_string()])?, code, "", &[])?;
    }
    // cmd.exe sees all 32 bits, and ends with the same code.
    let (own, bed) = (windows_path(&launcher.program()), bed());
    let lines = format!("@{own} -- {bed} exit 3221225477\r\n@echo %errorlevel%\r\n");
    let result = launcher.script("exit-code.cmd", &lines)?;
    expect(&result, 5, "-1073741819\n", &[])
}

fn command_line(programs: &Programs) -> Result<()> {
    let launcher = Launcher::new(programs)?;
    let (own, bed) = (windows_path(&launcher.program()), bed());
    let raw = format!(r#"{bed} command-line  a "b  c" "d\"e" \\f\\ -- --check"#);
    let result =
        launcher.script("command-line.cmd", &format!("@{own} --require  --  {raw}\r\n"))?;
    expect(&result, 0, &format!("{raw}\n"), &[])
}

/// A shutdown reaches `program`, which is `wine_bed`.
pub(super) fn shutdown(programs: &Programs, program: &str) -> Result<()> {
    let launcher = Launcher::new(programs)?;
    let (own, bed) = (windows_path(&launcher.program()), bed());
    let (inner, log) = (launcher.folder.join("program.cmd"), launcher.folder.join("program.log"));
    fs::write(
        &inner,
        format!("@{own} -- {program} wait-for-shutdown\r\n@echo code %errorlevel%\r\n"),
    )?;
    fs::write(&log, "")?;
    let (inner, log) = (windows_path(&inner), windows_path(&log));
    let lines = format!(
        "@echo off\r\nstart /b cmd /c {inner} ^> {log}\r\n:ready\r\nfindstr ready {log} >nul || goto \
         ready\r\n{bed} send-shutdown directx-visible.exe\r\n:code\r\nfindstr code {log} >nul || goto \
         code\r\ntype {log}\r\n"
    );
    let result = launcher.script("shutdown.cmd", &lines)?;
    expect(&result, 0, "ready\ncode 7\n", &[])
}

/// A copy of `filter` in `program`, which is `wine_bed`, chains to the filter that is there.
pub(super) fn second_filter(programs: &Programs, program: &str, filter: &Filter) -> Result<()> {
    let launcher = Launcher::new(programs)?;
    let copy = launcher.copy(filter)?;
    let start = FILTERED.split("open").next().unwrap_or_default();
    let mut command = launcher.command(&["--", program, "load-filter", &copy]);
    expect(&output(&mut command)?, 0, start, &[])
}

/// A copy of `filter` changes no code that it does not know in `program`, which is `wine_bed`.
pub(super) fn unknown_code(programs: &Programs, program: &str, filter: &Filter) -> Result<()> {
    let launcher = Launcher::new(programs)?;
    let copy = launcher.copy(filter)?;
    let run = |options: &[&str]| {
        let words = [options, &["--", program, "damage-and-load-filter", &copy]].concat();
        output(&mut launcher.command(&words))
    };
    let known = "the code of NtGdiDdDDIEnumAdapters2 is not known";
    let allowed = format!("directx-visible: this process sees every GPU: {known}");
    expect(&run(&[])?, 0, "loaded\n", &[&allowed])?;
    let refused = format!("this process was not started because of --require: {known}");
    expect(&run(&["--require"])?, 0, "refused\n", &[&refused])
}

fn bad_filter(programs: &Programs) -> Result<()> {
    let launcher = Launcher::new(programs)?;
    let whole = fs::read(launcher.filter())?;
    let cut = whole[..whole.len() / 2].to_vec();
    for content in [None, Some(&b"no library"[..]), Some(&cut)] {
        fs::remove_file(launcher.filter())?;
        if let Some(content) = content {
            fs::write(launcher.filter(), content)?;
        }
        let load = "cannot load the filter Z:";
        let bed = bed();
        let required = ["--require", "--", &*bed, "exit", "3"];
        expect(&output(&mut launcher.command(&required))?, 122, "", &["error: ", load, "hint: "])?;
        let allowed = launcher.run(&[], &["exit", "3"])?;
        expect(&allowed, 3, "", &["directx-visible: the program sees every GPU:", load])?;
        fs::write(launcher.filter(), "")?;
    }
    // A filter that disappears while the program runs does not stop its children.
    fs::write(launcher.filter(), &whole)?;
    let rename = format!("ren {} gone.dll& {} gpu-lists", windows_path(&launcher.filter()), bed());
    let _ = fs::remove_file(launcher.folder.join("gone.dll"));
    let result = output(&mut launcher.command(&["--", "cmd.exe", "/c", &rename]))?;
    let out = text(&result.stdout);
    ensure!(out.contains(HIDDEN), "{out}{}", text(&result.stderr));
    let why = "directx-visible: a child process sees every GPU: the filter's file cannot be read";
    ensure!(text(&result.stderr).contains(why), "{}", text(&result.stderr));
    Ok(())
}

fn bad_input(programs: &Programs) -> Result<()> {
    let launcher = Launcher::new(programs)?;
    let bed = bed();
    let words = ["--", &*bed, "exit", "3"];
    for (value, code, error) in [
        ("", 120, "DIRECTX_VISIBLE_DEVICES is"),
        ("all", 120, "DIRECTX_VISIBLE_DEVICES has `all`, which is not a LUID"),
        ("5,6", 121, "no adapter has the LUID 5, 6 of the container's devices"),
    ] {
        let mut command = launcher.command(&words);
        let result = output(command.env("DIRECTX_VISIBLE_DEVICES", value))?;
        expect(&result, code, "", &["error: ", error, "\nhint: "])?;
    }
    let result = output(launcher.command(&words).env_remove("DIRECTX_VISIBLE_DEVICES"))?;
    expect(&result, 120, "", &["error: DIRECTX_VISIBLE_DEVICES is not set\nhint: "])?;
    let not_a_program = launcher.folder.join("text.exe");
    fs::write(&not_a_program, "no program")?;
    for (words, code, error) in [
        (&["--", r"C:\missing.exe"][..], 127, "error: cannot find the program: "),
        (&["--", &windows_path(&not_a_program)], 126, "error: cannot run the program: "),
        (
            &["wine_bed.exe"],
            2,
            "error: unexpected argument `wine_bed.exe`\nhint: write the command",
        ),
    ] {
        expect(&output(&mut launcher.command(words))?, code, "", &[error])?;
    }
    Ok(())
}

/// The double of `DXCore` does not use D3DKMT, so it lists the hidden adapter.
fn check(programs: &Programs) -> Result<()> {
    let launcher = Launcher::new(programs)?;
    let result = output(&mut launcher.command(&["--check"]))?;
    let out = text(&result.stdout);
    let lines = [
        "allocated: 7098126\n",
        "ok        d3dkmt  D3DKMTEnumAdapters2: ",
        &format!("{HIDDEN}, {SHOWN} -> {SHOWN}\n"),
        "DIFFERENT dxcore  GetAdapterByLuid: ",
        "\nthe filter does not show exactly the container's devices\n",
    ];
    ensure!(
        lines.iter().all(|line| out.contains(line)),
        "lacks a line:\n{out}{}",
        text(&result.stderr)
    );
    ensure!(result.status.code() == Some(1), "{}: {out}", result.status);
    let mut without_double = launcher.command(&["--check", "--json"]);
    let json = output(without_double.env("WINEDLLOVERRIDES", "mscoree,mshtml=;dxcore="))?;
    let document: serde_json::Value = serde_json::from_slice(&json.stdout)?;
    ensure!(json.status.success() && document["isAsAllocated"] == true, "{document:#}");
    fs::remove_file(launcher.filter())?;
    let result = output(&mut launcher.command(&["--check"]))?;
    expect(&result, 122, "", &["error: cannot load the filter"])
}
