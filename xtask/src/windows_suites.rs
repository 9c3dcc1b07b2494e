//! The steps that run Windows programs under Wine, and the clients of the discovery library.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process::{run, stdout};
use crate::visibility_filter;
use crate::workspace::{self, WINDOWS_32_TARGET, WINDOWS_TARGET, cargo, cargo_for, ignored_tests};

/// Packages whose own tests do not run under Wine, and why. Those of `feature_discovery` could be
/// left out, too, but the same command builds its program.
const NOT_UNDER_WINE: [(&str, &str); 15] = [
    ("bench", "measures the daemon on this machine"),
    ("cluster", "connects everything in memory, in the same way everywhere"),
    ("config", "decides, in the same way everywhere; `wine_suite` has the folder of Windows"),
    ("devices", "decides, in the same way everywhere"),
    ("doc_pages", "reads documents of the repository, in the same way everywhere"),
    ("fleet", "drives a cluster on Linux"),
    ("fuzz", "tests parsers, in the same way everywhere"),
    ("image_suite", "starts xtask"),
    ("kubelet-double", "connects everything in memory, in the same way everywhere"),
    ("node_walk", "connects everything in memory, in the same way everywhere"),
    ("release_suite", "starts xtask"),
    ("repository", "reads the repository, in the same way everywhere"),
    ("windows_report", "decides, in the same way everywhere"),
    ("wine_suite", "starts Wine itself"),
    ("xtask", "starts cargo and git"),
];

/// Tests of the other packages that do not run under Wine, because they connect everything in
/// memory, or compare files of the repository.
const TESTS_NOT_UNDER_WINE: [&str; 3] = ["campaign", "generated_code", "life"];

/// The script that runs Windows programs.
fn script() -> PathBuf {
    workspace::root().join("testing/wine/wine")
}

/// The step `wine`: the crates' own tests, and `wine_suite` without its tests with GPUs.
pub(crate) fn wine() -> Result<()> {
    build_programs()?;
    let mut runner = OsString::from(script());
    runner.push(" --inventory ");
    runner.push(workspace::root().join("fixtures/inventories/aws-t4-two.yaml"));
    let mut tests = for_windows("test")?;
    tests.arg("--no-fail-fast");
    // Without the variable, the snapshots' library asks cargo where the snapshots are.
    tests.env("INSTA_WORKSPACE_ROOT", workspace::root());
    run(tests.env("CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER", runner))?;
    let others = ["graphics", "device_manager", "32_bit", "third_party"];
    wine_suite(&others.map(|name| ["--skip", name]).concat())
}

/// The step `kubelet-windows`. Go compiles the kubelet once more for it.
pub(crate) fn device_manager() -> Result<()> {
    build_programs()?;
    let examples = ["--package", "device-plugin", "--examples", "--target", WINDOWS_TARGET];
    run(cargo().args(["build", "--quiet"]).args(examples))?;
    wine_suite(&["device_manager"])
}

/// The step `gpu`: `gpu-probe` on Linux, then Windows programs with GPUs.
pub(crate) fn gpu() -> Result<()> {
    run(&mut ignored_tests(&["--lib", "--test", "program"]))?;
    build_programs()?;
    wine_suite(&["graphics"])
}

/// The step `wine-programs`: programs that are not of this project.
pub(crate) fn programs() -> Result<()> {
    build_programs()?;
    wine_suite(&["third_party"])
}

/// The step `clients`: those for this machine.
pub(crate) fn clients() -> Result<()> {
    workspace::build()?;
    run(&mut ignored_tests(&["--test", "clients"]))
}

/// Calls the script to set something up. It prints what it does and the cause of a failure.
pub(crate) fn set_up_wine(option: &str) -> Result<()> {
    run(Command::new(script()).arg(option))
}

/// The step `wine-32`: tests only with 32-bit programs. Other tests have 32-bit programs, too,
/// where Wine runs them.
pub(crate) fn wine_32() -> Result<()> {
    build_programs()?;
    wine_suite(&["32_bit"])
}

fn build_programs() -> Result<()> {
    visibility_filter::build()?;
    workspace::build()?;
    build()?;
    let bed = ["--package", "wine_bed", "--target", WINDOWS_32_TARGET];
    run(cargo().args(["build", "--quiet"]).args(bed))
}

/// Builds all programs for Windows, with tests and with the flags of images.
pub(crate) fn build() -> Result<()> {
    run(&mut for_windows("build")?)
}

/// A command of cargo for everything that runs under Wine, with the flags of images, which then
/// are built from the same crates.
fn for_windows(word: &str) -> Result<Command> {
    let mut command = cargo_for(WINDOWS_TARGET);
    command.args([word, "--quiet", "--workspace", "--target", WINDOWS_TARGET]);
    command.args(NOT_UNDER_WINE.iter().flat_map(|(package, _)| ["--exclude", package]));
    command.args(["--lib", "--bins"]);
    for test in tests_under_wine()? {
        command.args(["--test", &test]);
    }
    Ok(command)
}

/// The names of the test programs that run under Wine.
fn tests_under_wine() -> Result<BTreeSet<String>> {
    let text = stdout(cargo().args(["metadata", "--format-version=1", "--no-deps"]));
    let metadata: Value = serde_json::from_str(&text.context("`cargo metadata` failed")?)?;
    let mut names = BTreeSet::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        if NOT_UNDER_WINE.iter().any(|(name, _)| package["name"] == *name) {
            continue;
        }
        for target in package["targets"].as_array().into_iter().flatten() {
            let name = target["name"].as_str().unwrap_or_default();
            if target["kind"][0] == "test" && !TESTS_NOT_UNDER_WINE.contains(&name) {
                names.insert(name.to_owned());
            }
        }
    }
    Ok(names)
}

/// Runs the tests of `wine_suite` that `filters` select, and stops the programs of every prefix.
fn wine_suite(filters: &[&str]) -> Result<()> {
    let result = run(ignored_tests(&["--test", "wine"]).args(filters));
    for prefix in ["prefix", "suite-1", "suite-2", "two-gpus"] {
        run(Command::new(script()).args(["--prefix", prefix, "--stop"]))?;
    }
    result
}
