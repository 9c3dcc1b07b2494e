//! Measures the release program from outside, as a kubelet would use it, and compares the results
//! with budgets.
//!
//! Builds the release programs, prints a table and, with `--write`, writes
//! `docs/maintainers/benchmarks.md`.
//! `cargo xtask bench` runs it. It asserts nothing: people evaluate the results.

mod group;
mod machine;
mod measures;
mod minimal_kubelet;
mod node;
mod process;
mod programs;
mod raw_client;
mod report;
mod sample;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use strum::VariantArray as _;

use crate::group::Effort;
use crate::measures::Measure;

const USAGE: &str = "usage: bench [--quick] [--only GROUP] [--write FILE]";

/// The parsed command line.
#[derive(PartialEq, Eq, Debug)]
struct Request {
    effort: Effort,
    /// The groups, in the order in which they are measured.
    groups: Vec<Measure>,
    write: Option<PathBuf>,
}

fn main() -> ExitCode {
    let request = match parse(std::env::args_os().skip(1)) {
        Ok(request) => request,
        Err(error) => {
            eprintln!("error: {error:#}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match measure(&request) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn parse(mut arguments: impl Iterator<Item = OsString>) -> Result<Request> {
    let mut request =
        Request { effort: Effort::Full, groups: Measure::VARIANTS.to_vec(), write: None };
    while let Some(argument) = arguments.next() {
        match argument.to_string_lossy().as_ref() {
            "--quick" => request.effort = Effort::Quick,
            "--only" => {
                let name = arguments.next().context("`--only` requires a group")?;
                request.groups = vec![Measure::named(&name.to_string_lossy())?];
            }
            "--write" => {
                request.write = Some(arguments.next().context("`--write` requires a file")?.into());
            }
            other => bail!("unknown argument `{other}`"),
        }
    }
    Ok(request)
}

fn measure(request: &Request) -> Result<()> {
    // The client has one thread, so that on a machine with two cores client and program have one
    // core each.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the tokio runtime")?;
    let machine = machine::describe();
    let mut groups = Vec::new();
    for group in &request.groups {
        eprintln!("measuring: {}", <&str>::from(group));
        groups.push(runtime.block_on(group.run(request.effort))?);
    }
    print!("{}", report::text(&groups));
    if let Some(path) = &request.write {
        std::fs::write(path, report::markdown(&groups, &machine))
            .with_context(|| format!("cannot write `{}`", path.display()))?;
        println!("\nwritten to {}", path.display());
    }
    Ok(())
}
