//! `directx-visible` on a host with three adapters: those of an inventory with two GPUs, and Wine's
//! own. The lists are those of Wine's win32u, whose code is that of Windows. Most tests run with
//! 64-bit and 32-bit programs.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use super::host::Host;
use super::output::{expect, output, text};
use super::paths::{
    FILTER, FILTER_32, copy, copy_filters, fixture, windows_32_build, windows_build, windows_path,
};

/// The LUIDs of the inventory's GPUs.
pub(crate) const SHOWN: &str = "7098126";
pub(crate) const HIDDEN: &str = "7048070";

pub(crate) const LISTS: [&str; 3] = ["gpu-lists", SHOWN, HIDDEN];

/// What `wine_bed` prints with [`LISTS`] in a filtered process.
pub(crate) const FILTERED: &str = "D3DKMTEnumAdapters 7098126\nD3DKMTEnumAdapters2 7098126 of 34\n\
    open 7098126 00000000 handle\nopen 7048070 C000000D -\n";

/// The start of [`FILTERED`], without what opens an adapter.
fn filtered_lists() -> &'static str {
    FILTERED.split("open").next().unwrap_or_default()
}

/// The launcher and its filters, alone in a folder.
pub(crate) struct Launcher {
    pub(crate) host: Host,
    pub(crate) folder: PathBuf,
}

impl Launcher {
    pub(crate) fn new() -> Launcher {
        let host = Host::of(&fixture("aws-t4-two"));
        let folder = host.empty_folder("visible");
        copy(&windows_build("directx-visible.exe"), &folder);
        copy_filters(&folder);
        Launcher { host, folder }
    }

    /// The launcher's path, as Windows spells it.
    pub(crate) fn program(&self) -> String {
        windows_path(&self.folder.join("directx-visible.exe"))
    }

    /// The launcher in a container that has [`SHOWN`].
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = self.host.command(self.program());
        command.args(words).env("DIRECTX_VISIBLE_DEVICES", SHOWN);
        command
    }

    pub(crate) fn output(&self, words: &[&str]) -> Output {
        output(&mut self.command(words))
    }

    /// Runs the `lines` of a script with cmd.exe, in a container that has [`SHOWN`].
    fn script(&self, lines: &str) -> Output {
        let script = self.folder.join("script.cmd");
        fs::write(&script, lines).unwrap();
        let mut command = self.host.command("cmd.exe");
        command.args(["/c", &windows_path(&script)]);
        output(command.env("DIRECTX_VISIBLE_DEVICES", SHOWN))
    }

    /// Runs the launcher with `wine_bed` as the program.
    pub(crate) fn run(&self, before: &[&str], words: &[&str]) -> Output {
        let bed = bed();
        self.output(&[&["--"], before, &[&*bed], words].concat())
    }

    /// `wine_bed` as a program of both architectures, with the filter for it.
    fn beds(&self) -> Vec<(String, &'static str)> {
        let bed_32 = windows_32_build("wine_bed.exe");
        if self.host.drive_c().join("windows/syswow64/ntdll.dll").exists() {
            return vec![(bed(), FILTER), (windows_path(&bed_32), FILTER_32)];
        }
        eprintln!("only 64-bit programs are tested: this Wine runs no 32-bit ones");
        vec![(bed(), FILTER)]
    }

    /// Copies a filter beside itself, and returns the path of the copy.
    fn copy(&self, filter: &str) -> String {
        let copy = self.folder.join("copy.dll");
        fs::copy(self.folder.join(filter), &copy).unwrap();
        windows_path(&copy)
    }
}

/// `wine_bed` as a 64-bit program.
pub(crate) fn bed() -> String {
    windows_path(&windows_build("wine_bed.exe"))
}

/// What `wine_bed` prints in a process that is not filtered.
#[track_caller]
pub(crate) fn expect_all(result: &Output) {
    let out = text(&result.stdout);
    assert!(out.contains(&format!("{HIDDEN},{SHOWN}")), "{out}{}", text(&result.stderr));
}

#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn only_the_allocated_adapter_is_listed_and_opened() {
    let launcher = Launcher::new();
    let own = bed();
    for (bed, _) in launcher.beds() {
        let unfiltered = output(launcher.host.command(&bed).args(LISTS));
        expect_all(&unfiltered);
        assert_eq!(text(&unfiltered.stdout).matches("00000000 handle").count(), 2);
        // The function is called by a program, and by a child of a program.
        for before in [
            &["--"][..],
            &["--require", "--"],
            &["--", "cmd.exe", "/c"],
            &["--", "cmd.exe", "/c", "start", "/wait", "/b"],
            &["--require", "--", &bed, "without-environment"],
            &["--", &own, "without-environment"],
        ] {
            let words = [before, &[&*bed], &LISTS].concat();
            expect(&launcher.output(&words), 0, FILTERED, &[]);
        }
        let words = ["--", &*bed, "children", "10", &bed, "exit", "0"];
        expect(&launcher.output(&words), 0, "gained 0 handles\n", &[]);
    }
}

#[test]
#[ignore = "needs Wine with 32-bit programs: cargo xtask test wine-32"]
fn a_64_bit_child_of_a_32_bit_program_is_not_filtered() {
    let launcher = Launcher::new();
    let [(bed, _), (bed_32, _)] = &launcher.beds()[..] else {
        panic!("this Wine runs no 32-bit programs");
    };
    let why = "a 32-bit program starts a 64-bit one";
    let words = ["--", bed_32, "without-environment", bed, LISTS[0]];
    let warning = format!("directx-visible: a child process sees every GPU: {why}\n");
    for (verbose, expected) in [(&[][..], ""), (&["--verbose"], &warning)] {
        let result = launcher.output(&[verbose, &words].concat());
        expect_all(&result);
        assert_eq!((result.status.code(), &*text(&result.stderr)), (Some(0), expected));
    }
    let refused = format!("a child process was not started because of --require: {why}");
    expect(&launcher.output(&[&["--require"], &words[..]].concat()), 1, "", &[&refused]);
}

#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn nested_launchers_show_what_both_allow() {
    let launcher = Launcher::new();
    let own = launcher.program();
    let bed = bed();
    let inner = [&["--", &own, "--", &bed], &LISTS[..]].concat();
    expect(&launcher.output(&inner), 0, FILTERED, &[]);
    // The inner launcher is told of both GPUs, and the outer one of one.
    let set = format!("set DIRECTX_VISIBLE_DEVICES={HIDDEN},{SHOWN}&& {own} -- {bed} gpu-lists");
    let result = launcher.output(&["--", "cmd.exe", "/c", &set]);
    let warning = format!("devices of the container no longer exist: {HIDDEN}");
    expect(&result, 0, filtered_lists(), &[&warning]);
}

#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn exit_codes_are_returned() {
    let launcher = Launcher::new();
    for code in [0, 1, 42, 255] {
        expect(&launcher.run(&[], &["exit", &code.to_string()]), code, "", &[]);
    }
    // cmd.exe sees all 32 bits, and ends with the same code.
    let own = launcher.program();
    let bed = bed();
    let lines = format!("@{own} -- {bed} exit 3221225477\r\n@echo %errorlevel%\r\n");
    expect(&launcher.script(&lines), 5, "-1073741819\n", &[]);
}

#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn the_command_line_stays_as_it_was_written() {
    let launcher = Launcher::new();
    let own = launcher.program();
    let bed = bed();
    let raw = format!(r#"{bed} command-line  a "b  c" "d\"e" \\f\\ -- --check"#);
    let result = launcher.script(&format!("@{own} --require  --  {raw}\r\n"));
    expect(&result, 0, &format!("{raw}\n"), &[]);
}

#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn a_shutdown_reaches_the_program() {
    let launcher = Launcher::new();
    for (program, _) in launcher.beds() {
        let own = launcher.program();
        let bed = bed();
        let inner = launcher.folder.join("program.cmd");
        let log = launcher.folder.join("program.log");
        let lines = format!("@{own} -- {program} wait-for-shutdown\r\n@echo code %errorlevel%\r\n");
        fs::write(&inner, lines).unwrap();
        fs::write(&log, "").unwrap();
        let inner = windows_path(&inner);
        let log = windows_path(&log);
        let lines = format!(
            "@echo off\r\nstart /b cmd /c {inner} ^> {log}\r\n:ready\r\nfindstr ready {log} >nul || \
             goto ready\r\n{bed} send-shutdown directx-visible.exe\r\n:code\r\nfindstr code {log} \
             >nul || goto code\r\ntype {log}\r\n"
        );
        expect(&launcher.script(&lines), 0, "ready\ncode 7\n", &[]);
    }
}

/// A copy of the filter chains to the filter that is there.
#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn a_second_filter_chains_to_the_first() {
    let launcher = Launcher::new();
    for (program, filter) in launcher.beds() {
        let copy = launcher.copy(filter);
        let result = launcher.output(&["--", &program, "load-filter", &copy]);
        expect(&result, 0, filtered_lists(), &[]);
    }
}

#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn code_that_is_not_known_is_not_changed() {
    let launcher = Launcher::new();
    for (program, filter) in launcher.beds() {
        let copy = launcher.copy(filter);
        // Each kind of hook is installed without the other.
        for (library, function, effect, hooks) in [
            ("win32u.dll", "NtGdiDdDDIEnumAdapters2", "this process sees", "hooks nothing"),
            ("ntdll.dll", "NtCreateUserProcess", "child processes see", "hooks lists"),
        ] {
            let words = ["--", &*program, "damage-and-load-filter", library, function, &copy];
            // The report has the code, so that the filter can learn it.
            let known = format!("the code of {function} is not known: ");
            let allowed = format!("directx-visible: {effect} every GPU: {known}");
            expect(&launcher.output(&words), 0, &format!("loaded, {hooks}\n"), &[&allowed]);
            let refused = format!("this process was not started because of --require: {known}");
            let words = [&["--require"], &words[..]].concat();
            let out = format!("refused, {hooks}\n");
            expect(&launcher.output(&words), 0, &out, &[&refused]);
        }
    }
}

/// A tool that replaces a program's imports after the launcher has, does not hide the allocation.
#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn moved_imports_do_not_disable_the_filter() {
    let launcher = Launcher::new();
    for (program, filter) in launcher.beds() {
        let words = ["--", &*program, "move-imports-and-load-filter", &launcher.copy(filter)];
        expect(&launcher.output(&words), 0, "loaded, hooks lists\n", &[]);
    }
}

/// The filter is missing, is not a library, is half of one, or has the other architecture.
#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn a_missing_and_a_damaged_filter() {
    let launcher = Launcher::new();
    let filter = launcher.folder.join(FILTER);
    let filter_32 = launcher.folder.join(FILTER_32);
    let whole = fs::read(&filter).unwrap();
    let whole_32 = fs::read(&filter_32).unwrap();
    let beds = launcher.beds();
    let bed = &beds[0].0;
    let load = "cannot load the filter Z:";
    for content in [None, Some(&b"no library"[..]), Some(&whole[..whole.len() / 2])] {
        fs::remove_file(&filter).unwrap();
        if let Some(content) = content {
            fs::write(&filter, content).unwrap();
        }
        let required = launcher.output(&["--require", "--", bed, "exit", "3"]);
        expect(&required, 122, "", &["error: ", load, "hint: "]);
        let warning = "directx-visible: the program sees every GPU:";
        expect(&launcher.run(&[], &["exit", "3"]), 3, "", &[warning, load]);
        fs::write(&filter, &whole).unwrap();
    }
    let Some((bed_32, _)) = beds.get(1) else {
        return;
    };
    let missing = "it is a 32-bit program, and their filter is missing";
    let half = &whole_32[..whole_32.len() / 2];
    for content in [None, Some(&b"no library"[..]), Some(half), Some(&whole)] {
        fs::remove_file(&filter_32).unwrap();
        if let Some(content) = content {
            fs::write(&filter_32, content).unwrap();
        }
        let damaged = ["32-bit programs see every GPU:", load];
        let damaged = if content.is_some() { &damaged[..] } else { &[] };
        let errors = [damaged, &[missing]].concat();
        let words = ["--require", "--", bed_32, "exit", "3"];
        expect(&launcher.output(&words), 123, "", &errors);
        expect(&launcher.output(&words[1..]), 3, "", &errors);
        // A 64-bit program is filtered all the same.
        expect(&launcher.run(&[], &LISTS), 0, FILTERED, damaged);
        fs::write(&filter_32, &whole_32).unwrap();
    }
}

/// A filter that disappears or becomes unreadable while the program runs does not stop its
/// children.
#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn a_filter_that_disappears() {
    let launcher = Launcher::new();
    let gone = launcher.folder.join("gone.dll");
    for (bed, filter) in launcher.beds() {
        let filter = launcher.folder.join(filter);
        let path = windows_path(&filter);
        // A folder exists as a file does, and nobody can read it as a library.
        for folder in ["", &format!("mkdir {path}& ")] {
            let command = format!("ren {path} gone.dll& {folder}{bed} gpu-lists");
            let result = launcher.output(&["--verbose", "--", "cmd.exe", "/c", &command]);
            expect_all(&result);
            let error = text(&result.stderr);
            let why = "a child process sees every GPU: the filter's file cannot be read";
            assert!(error.contains(&format!("directx-visible: {why}")), "{error}");
            let _ = fs::remove_dir(&filter);
            fs::rename(&gone, &filter).unwrap();
        }
    }
}

#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn bad_variables_and_commands() {
    let launcher = Launcher::new();
    let bed = bed();
    let words = ["--", &*bed, "exit", "3"];
    for (value, code, error) in [
        ("", 120, "DIRECTX_VISIBLE_DEVICES is"),
        ("all", 120, "DIRECTX_VISIBLE_DEVICES has `all`, which is not a LUID"),
        ("5,6", 121, "no adapter has the LUID 5, 6 of the container's devices"),
    ] {
        let mut command = launcher.command(&words);
        let result = output(command.env("DIRECTX_VISIBLE_DEVICES", value));
        expect(&result, code, "", &["error: ", error, "\nhint: "]);
    }
    let result = output(launcher.command(&words).env_remove("DIRECTX_VISIBLE_DEVICES"));
    expect(&result, 120, "", &["error: DIRECTX_VISIBLE_DEVICES is not set\nhint: "]);
    let not_a_program = launcher.folder.join("text.exe");
    fs::write(&not_a_program, "no program").unwrap();
    let unexpected = "error: unexpected argument `wine_bed.exe`\nhint: write the command";
    for (words, code, error) in [
        (&["--", r"C:\missing.exe"][..], 127, "error: cannot find the program: "),
        (&["--", &windows_path(&not_a_program)], 126, "error: cannot run the program: "),
        (&["wine_bed.exe"], 2, unexpected),
    ] {
        expect(&launcher.output(words), code, "", &[error]);
    }
}

/// The double of `DXCore` does not use D3DKMT, so it lists the hidden adapter.
#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn the_check_compares_lists_with_the_allocation() {
    let launcher = Launcher::new();
    let result = launcher.output(&["--check"]);
    let out = text(&result.stdout);
    let lines = [
        "allocated: 7098126\n",
        "ok        d3dkmt  D3DKMTEnumAdapters2: ",
        &format!("{HIDDEN}, {SHOWN} -> {SHOWN}\n"),
        "DIFFERENT dxcore  GetAdapterByLuid: ",
        "\nthe filter does not show exactly the container's devices\n",
    ];
    assert!(lines.iter().all(|line| out.contains(line)), "{out}{}", text(&result.stderr));
    assert_eq!(result.status.code(), Some(1), "{out}");
    let mut without_double = launcher.command(&["--check", "--output", "json"]);
    let json = output(without_double.env("WINEDLLOVERRIDES", "mscoree,mshtml=;dxcore="));
    let document: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert!(json.status.success() && document["isAsAllocated"] == true, "{document:#}");
    let child = |parent: &str| {
        let rows = document["apis"].as_array().expect("there are rows").iter();
        let row = rows.filter(|row| row["api"] == "child").find(|row| row["call"] == parent);
        row.unwrap_or_else(|| panic!("no row of {parent}: {document:#}"))
    };
    let shown: i64 = SHOWN.parse().expect("a number");
    let row = child("cmd.exe");
    assert!(row["verdict"] == "ok", "{row:#}");
    assert_eq!(row["filtered"]["devices"]["luids"], serde_json::json!([shown]), "{row:#}");
    // Wine has the file, but no PowerShell.
    assert_eq!(child("powershell.exe (.NET)")["verdict"], "failed", "{document:#}");
    assert_eq!(child("pwsh.exe (.NET)")["verdict"], "absent", "{document:#}");
    assert_eq!(child("cmd.exe (32-bit)")["verdict"], "absent", "{document:#}");
    fs::remove_file(launcher.folder.join(FILTER)).unwrap();
    expect(&launcher.output(&["--check"]), 122, "", &["error: cannot load the filter"]);
}

/// A 32-bit program in the place of the 32-bit cmd.exe, which Wine in Debian lacks.
#[test]
#[ignore = "needs Wine with 32-bit programs: cargo xtask test wine-32"]
fn the_check_runs_a_32_bit_child_of_a_32_bit_program() {
    let launcher = Launcher::new();
    let cmd = launcher.host.drive_c().join("windows/syswow64/cmd.exe");
    fs::copy(windows_32_build("wine_bed.exe"), &cmd).unwrap();
    let check = || text(&launcher.output(&["--check"]).stdout);
    let filtered = check();
    fs::remove_file(launcher.folder.join(FILTER_32)).unwrap();
    let without_filter = check();
    fs::remove_file(&cmd).unwrap();
    assert!(filtered.contains("\nok        child   cmd.exe (32-bit): none\n"), "{filtered}");
    let why = "it is a 32-bit program, and their filter is missing";
    let expected = format!("\nDIFFERENT child   cmd.exe (32-bit): none -> failed ({why})\n");
    assert!(without_filter.contains(&expected), "{without_filter}");
}
