//! Checks whose tools are built from source, or that find more the longer they run.

use std::fs;
use std::ops::RangeInclusive;
use std::process::Command;

use anyhow::{Context, Result};

use crate::prerequisites::tool;
use crate::process::{run, stdout};
use crate::workspace::{self, cargo};

/// How libFuzzer runs each target: for a minute.
const LIBFUZZER: &str =
    "-- -max_total_time=60 -timeout=60 -rss_limit_mb=2048 -verbosity=0 -print_funcs=0";

/// The seeds of the fault campaign. Each release of the kubelet has two of them.
const CAMPAIGN_SEEDS: RangeInclusive<u32> = 1..=6;
const CAMPAIGN_ROUNDS: &str = "200";

/// Checks licenses, sources and advisories of all dependencies against `deny.toml`.
pub(crate) fn deny() -> Result<()> {
    let mut check = cargo_deny()?;
    check.args(["--log-level", "error", "check", "--hide-inclusion-graph"]);
    check.args(["bans", "licenses", "sources"]);
    match run(cargo_deny()?.args(["--log-level", "error", "fetch", "db"])) {
        Ok(()) => drop(check.arg("advisories")),
        Err(error) => println!("skipping advisories, their database is not available: {error:#}"),
    }
    run(&mut check)
}

/// Runs every fuzz target with libFuzzer. What it discovers stays in the target folder.
pub(crate) fn fuzz() -> Result<()> {
    let folder = workspace::root().join("testing/fuzz");
    for program in fs::read_dir(folder.join("src/bin"))? {
        let program = program?.path();
        let name = program.file_stem().context("a target has a name")?;
        let corpus = workspace::target_dir().join("fuzz").join(name);
        fs::create_dir_all(&corpus)?;
        let seeds =
            [folder.join("seeds").join(name), workspace::root().join("fixtures/inventories")];
        let seeds = seeds.iter().take(1 + usize::from(name == "inventories"));
        let mut fuzz = cargo_fuzz()?;
        fuzz.args(["run", "--fuzz-dir", "testing/fuzz", "--features", "libfuzzer"]);
        // Only sanitizers need a nightly compiler. They find errors in unsafe code, and no target
        // runs any.
        fuzz.args(["--sanitizer", "none", "--dev"]).env("CARGO_PROFILE_DEV_OPT_LEVEL", "2");
        fuzz.arg(name).arg(corpus).args(seeds.filter(|folder| folder.is_dir()));
        run(fuzz.args(LIBFUZZER.split(' ')))?;
    }
    Ok(())
}

/// How many random walks of a whole node there are.
const WALKS: &str = "300";

/// Runs the fault campaign of `device-plugin`, and the walks of a whole node, longer than
/// `cargo test` does.
pub(crate) fn campaign() -> Result<()> {
    let mut walks = cargo();
    walks.args(["test", "--quiet", "--release", "--package", "node_walk"]);
    run(walks.env("NODE_WALK_SEEDS", WALKS))?;
    for seed in CAMPAIGN_SEEDS {
        let mut test = cargo();
        test.args(["test", "--quiet", "--package", "device-plugin", "--test", "campaign"]);
        test.env("CAMPAIGN_SEED", seed.to_string()).env("CAMPAIGN_ROUNDS", CAMPAIGN_ROUNDS);
        run(&mut test)?;
    }
    Ok(())
}

/// Looks for code of the last day that can be changed without a test that fails.
pub(crate) fn mutants() -> Result<()> {
    let git = |arguments: &[&str]| {
        stdout(Command::new("git").args(arguments).current_dir(workspace::root()))
            .with_context(|| format!("git {} failed", arguments.join(" ")))
    };
    let commits = git(&["rev-list", "--since=1.day", "HEAD"])?;
    let Some(first) = commits.lines().last() else {
        println!("nothing has changed in the last day");
        return Ok(());
    };
    let diff = workspace::target_dir().join("last-day.diff");
    fs::write(&diff, git(&["diff", &format!("{first}~1"), "HEAD", "--", "crates"])?)?;
    run(cargo_mutants()?.arg("mutants").arg("--in-diff").arg(diff))
}

pub(crate) fn cargo_mutants() -> Result<Command> {
    tool("cargo-mutants", "27.1.0")
}

pub(crate) fn cargo_deny() -> Result<Command> {
    tool("cargo-deny", "0.20.2")
}

pub(crate) fn cargo_fuzz() -> Result<Command> {
    tool("cargo-fuzz", "0.13.2")
}
