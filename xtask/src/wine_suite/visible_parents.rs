//! Child processes of filtered programs that other compilers made, and many of them; and
//! what a filtered process leaves open.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::programs::{Programs, output};
use super::test_case::TestCase;
use super::visible::{FILTERED, HIDDEN, LISTS, Launcher, bed, expect, text};
use crate::cache::Cache;
use crate::prerequisites;
use crate::process::{output_within, run, run_logged};
use crate::wine::windows_path;
use crate::workspace;

/// A program that Microsoft's compiler built, from the Python Package Index, and the
/// SHA-256 digest of its package.
const NINJA: &str = "ninja==1.13.2";
const NINJA_DIGEST: &str = "1293f4078278b70d0ee4b6cc8f3a9e030656c9b2f59909970343c4fe76070118";

/// Longer than 1,000 processes take on a slow machine.
const MANY_CHILDREN: Duration = Duration::from_secs(600);

/// The entry's name in the cache.
const ENTRY: &str = "ninja-windows";

type Test = fn(&Programs) -> Result<()>;

pub(super) fn tests() -> Vec<TestCase> {
    let tests: [(&str, Test); 4] = [
        ("a child of a program built by Go, with an empty environment", go_parent),
        ("a child of a program built by Microsoft's compiler", msvc_parent),
        ("1,000 children leave no handles", many_children),
        ("no handle of a hidden adapter stays open", adapter_handles),
    ];
    let tests = tests.into_iter();
    tests.map(|(name, test)| TestCase::new(format!("visible: {name}"), test)).collect()
}

fn go_parent(programs: &Programs) -> Result<()> {
    let launcher = Launcher::new(programs)?;
    let parent = launcher.folder.join("parent.exe");
    prerequisites::require_go("a parent process", "1.21")?;
    let mut go = Command::new("go");
    go.env("GOOS", "windows").env("GOARCH", "amd64").env("CGO_ENABLED", "0");
    go.args(["build", "-o"]).arg(&parent);
    run(go.arg(workspace::root().join("testing/wine_bed/parents/parent.go")))?;
    expect(&launcher.run(&[&windows_path(&parent)], &LISTS)?, 0, FILTERED, &[])
}

fn msvc_parent(programs: &Programs) -> Result<()> {
    let launcher = Launcher::new(programs)?;
    // Wine sees the workspace and not the cache.
    let ninja = launcher.folder.join("ninja.exe");
    fs::copy(cached_ninja()?, &ninja)?;
    let build = launcher.folder.join("build.ninja");
    let lists = LISTS.join(" ");
    let rule = format!("rule list\n  command = {} {lists}\nbuild lists: list\n", bed());
    fs::write(&build, rule)?;
    let words = ["--", &windows_path(&ninja), "--quiet", "-f", &windows_path(&build)];
    let result = output(launcher.command(&words).current_dir(&launcher.folder))?;
    expect(&result, 0, FILTERED, &[])
}

/// The program, unpacked into the cache.
fn cached_ninja() -> Result<PathBuf> {
    let cache = Cache::open()?;
    let folder = cache.entry(ENTRY, &[NINJA, NINJA_DIGEST], |folder| {
        prerequisites::for_python_packages()?;
        eprintln!("downloading {NINJA} for Windows");
        download(folder, &cache.log(ENTRY)?)
            .with_context(|| format!("cannot download {NINJA} for Windows"))
    })?;
    Ok(folder.join("ninja-1.13.2.data").join("scripts").join("ninja.exe"))
}

fn download(folder: &Path, log: &Path) -> Result<()> {
    let list = folder.join("requirements.txt");
    fs::write(&list, format!("{NINJA} --hash=sha256:{NINJA_DIGEST}\n"))?;
    let mut pip = Command::new("pip3");
    pip.args(["download", "--no-deps", "--require-hashes", "--only-binary=:all:"]);
    pip.args(["--platform", "win_amd64", "--dest"]).arg(folder).arg("--requirement").arg(list);
    run_logged(&mut pip, log)?;
    let mut unpack = Command::new("python3");
    unpack.args(["-m", "zipfile", "--extract"]);
    unpack.arg(folder.join("ninja-1.13.2-py3-none-win_amd64.whl")).arg(folder);
    run_logged(&mut unpack, log)
}

fn many_children(programs: &Programs) -> Result<()> {
    let bed = bed();
    let words = ["--", &*bed, "children", "1000", &bed, "exit", "0"];
    let launcher = Launcher::new(programs)?;
    let result = output_within(MANY_CHILDREN, &mut launcher.command(&words))?;
    expect(&result, 0, "gained 0 handles\n", &[])
}

fn adapter_handles(programs: &Programs) -> Result<()> {
    let launcher = Launcher::new(programs)?;
    let words = ["open-adapters", HIDDEN];
    let mut unfiltered = programs.host.command(&workspace::windows_build("wine_bed.exe"));
    let all = text(&output(unfiltered.args(words))?.stdout);
    ensure!(all == "70 handles returned, 70 open\n", "unfiltered: {all}");
    expect(&launcher.run(&[], &words)?, 0, "20 handles returned, 20 open\n", &[])
}
