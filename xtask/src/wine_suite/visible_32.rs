//! `directx-visible` with 32-bit programs, on the host of the other tests.

use std::fs;

use anyhow::{Result, ensure};

use super::programs::{Programs, output};
use super::test_case::TestCase;
use super::visible::{
    FILTERED, HIDDEN, LISTS, Launcher, SHOWN, bed, expect, second_filter, shutdown, text,
    unknown_code,
};
use crate::visibility_filter::FILTERS;
use crate::wine::windows_path;
use crate::workspace;

type Test = fn(&Programs) -> Result<()>;

pub(super) fn tests() -> Vec<TestCase> {
    let tests: [(&str, Test); 7] = [
        ("a program, and a child of a 64-bit program", lists),
        ("a child of a 32-bit program", child_of_32_bit),
        ("a 64-bit child is not filtered", child_of_64_bit),
        ("a shutdown reaches the program", |programs| shutdown(programs, &bed_32())),
        ("a second filter chains to the first", |programs| {
            second_filter(programs, &bed_32(), &FILTERS[1])
        }),
        ("code that is not known is not changed", |programs| {
            unknown_code(programs, &bed_32(), &FILTERS[1])
        }),
        ("a missing and a damaged filter", bad_filter),
    ];
    let test = |(name, test)| TestCase::new(format!("visible, 32-bit: {name}"), test);
    tests.into_iter().map(test).map(TestCase::needs_32_bit).collect()
}

/// Whether Wine runs 32-bit programs.
pub(super) fn can_run(programs: &Programs) -> Result<bool> {
    let program = workspace::windows_32_build("wine_bed.exe");
    let result = output(programs.host.command(&program).args(["exit", "3"]))?;
    Ok(result.status.code() == Some(3))
}

/// `wine_bed` as a 32-bit program.
fn bed_32() -> String {
    windows_path(&workspace::windows_32_build("wine_bed.exe"))
}

/// Runs the launcher with the 32-bit `wine_bed` as the program, and with `before` before it.
fn run(launcher: &Launcher, before: &[&str], words: &[&str]) -> Result<std::process::Output> {
    let bed = bed_32();
    output(&mut launcher.command(&[before, &[&*bed], words].concat()))
}

fn lists(programs: &Programs) -> Result<()> {
    let launcher = Launcher::new(programs)?;
    let mut unfiltered = programs.host.command(&workspace::windows_32_build("wine_bed.exe"));
    let all = text(&output(unfiltered.args(LISTS))?.stdout);
    let both_open = all.matches("00000000 handle").count() == 2;
    ensure!(all.contains(&format!("{HIDDEN},{SHOWN}")) && both_open, "unfiltered:\n{all}");
    let bed = bed();
    for before in [&["--"][..], &["--", &bed, "without-environment"], &["--", "cmd.exe", "/c"]] {
        expect(&run(&launcher, before, &LISTS)?, 0, FILTERED, &[])?;
    }
    Ok(())
}

fn child_of_32_bit(programs: &Programs) -> Result<()> {
    let launcher = Launcher::new(programs)?;
    let parent = bed_32();
    let before = ["--require", "--", &*parent, "without-environment"];
    expect(&run(&launcher, &before, &LISTS)?, 0, FILTERED, &[])?;
    let before = ["--", &*parent, "children", "10"];
    expect(&run(&launcher, &before, &["exit", "0"])?, 0, "gained 0 handles\n", &[])
}

fn child_of_64_bit(programs: &Programs) -> Result<()> {
    let launcher = Launcher::new(programs)?;
    let bed = bed();
    let why = "a 32-bit program starts a 64-bit one";
    let words = ["without-environment", &*bed, LISTS[0]];
    let result = run(&launcher, &["--"], &words)?;
    let shown = text(&result.stdout).contains(&format!("{HIDDEN},{SHOWN}"));
    let warning = format!("directx-visible: a child process sees every GPU: {why}");
    let error = text(&result.stderr);
    ensure!(result.status.success() && shown && error.contains(&warning), "{error}");
    let refused = format!("a child process was not started because of --require: {why}");
    expect(&run(&launcher, &["--require", "--"], &words)?, 1, "", &[&refused])
}

fn bad_filter(programs: &Programs) -> Result<()> {
    let launcher = Launcher::new(programs)?;
    let whole = fs::read(launcher.filter_32())?;
    let cut = whole[..whole.len() / 2].to_vec();
    let other = fs::read(launcher.filter())?;
    let missing = "it is a 32-bit program, and their filter is missing";
    for content in [None, Some(&b"no library"[..]), Some(&cut), Some(&other)] {
        fs::remove_file(launcher.filter_32())?;
        if let Some(content) = content {
            fs::write(launcher.filter_32(), content)?;
        }
        let damaged = ["32-bit programs see every GPU:", "cannot load the filter Z:"];
        let damaged = if content.is_some() { &damaged[..] } else { &[] };
        let required = run(&launcher, &["--require", "--"], &["exit", "3"])?;
        expect(&required, 123, "", &[damaged, &[missing]].concat())?;
        let allowed = run(&launcher, &["--"], &["exit", "3"])?;
        expect(&allowed, 3, "", &[damaged, &[missing]].concat())?;
        // A 64-bit program is filtered all the same.
        expect(&launcher.run(&[], &LISTS)?, 0, FILTERED, damaged)?;
        fs::write(launcher.filter_32(), "")?;
    }
    // A filter that disappears while the program runs does not stop its 32-bit children.
    fs::write(launcher.filter_32(), &whole)?;
    let _ = fs::remove_file(launcher.folder.join("gone.dll"));
    let file = windows_path(&launcher.filter_32());
    let rename = format!("ren {file} gone.dll& {} gpu-lists", bed_32());
    let result = output(&mut launcher.command(&["--", "cmd.exe", "/c", &rename]))?;
    let why = "directx-visible: a child process sees every GPU: the filter's file cannot be read";
    ensure!(text(&result.stdout).contains(HIDDEN), "{}", text(&result.stdout));
    ensure!(text(&result.stderr).contains(why), "{}", text(&result.stderr));
    Ok(())
}
