//! Measures the release program from outside, as a kubelet would use it, and compares the results
//! with budgets.
//!
//! Input: the release program and how long to measure. Output: a table on standard output and, with
//! `--write`, `docs/benchmarks.md`. `cargo xtask bench` builds and runs it. It asserts nothing:
//! people judge the results.

mod measures;
mod report;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use crate::measures::{Effort, Measure, WindowsPrograms};

const USAGE: &str = "usage: bench PROGRAM [--quick] [--only GROUP] [--fleet FILE] \
    [--write FILE] [--windows FOLDER -- RUNNER [ARGUMENT]...]";

/// The parsed command line.
#[derive(PartialEq, Eq, Debug)]
struct Request {
    program: PathBuf,
    effort: Effort,
    /// The groups, in the order in which they are measured.
    groups: Vec<Measure>,
    /// The figures that the cluster's tests have written for simulated nodes.
    fleet: Option<PathBuf>,
    write: Option<PathBuf>,
    /// What [`Measure::Visible`] measures.
    windows: Option<WindowsPrograms>,
}

fn main() -> ExitCode {
    daemon_bed::run(USAGE, parse(std::env::args_os().skip(1)), measure)
}

fn parse(mut arguments: impl Iterator<Item = OsString>) -> Result<Request> {
    let mut request = Request {
        program: arguments.next().context("the path of the program is missing")?.into(),
        effort: Effort::Full,
        groups: Measure::ALL.to_vec(),
        fleet: None,
        write: None,
        windows: None,
    };
    while let Some(argument) = arguments.next() {
        match argument.to_string_lossy().as_ref() {
            "--quick" => request.effort = Effort::Quick,
            "--only" => {
                let name = arguments.next().context("`--only` requires a group")?;
                request.groups = vec![Measure::named(&name.to_string_lossy())?];
            }
            "--fleet" => {
                request.fleet = Some(arguments.next().context("`--fleet` requires a file")?.into());
            }
            "--write" => {
                request.write = Some(arguments.next().context("`--write` requires a file")?.into());
            }
            "--windows" => {
                let folder = arguments.next().context("`--windows` requires a folder")?.into();
                request.windows = Some(WindowsPrograms { folder, runner: Vec::new() });
            }
            "--" => {
                let windows = request.windows.as_mut().context("`--` requires `--windows`")?;
                windows.runner = arguments.map(|word| word.to_string_lossy().into()).collect();
                break;
            }
            other => bail!("unknown argument `{other}`"),
        }
    }
    Ok(request)
}

fn measure(request: &Request) -> Result<()> {
    // One thread, so that on a machine with two cores client and program have one core each.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the tokio runtime")?;
    let machine = daemon_bed::describe_machine();
    let mut groups = Vec::new();
    for group in &request.groups {
        eprintln!("measuring: {}", group.name());
        groups.push(runtime.block_on(group.run(
            &request.program,
            request.windows.as_ref(),
            request.fleet.as_deref(),
            request.effort,
        ))?);
    }
    print!("{}", report::text(&groups));
    if let Some(path) = &request.write {
        std::fs::write(path, report::markdown(&groups, &machine))
            .with_context(|| format!("cannot write `{}`", path.display()))?;
        println!("\nwritten to {}", path.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str]) -> Result<Request> {
        parse(arguments.iter().map(OsString::from))
    }

    #[test]
    fn requires_only_the_program() {
        let full = parsed(&["p"]).unwrap();
        assert_eq!((full.effort, full.write), (Effort::Full, None));
        assert_eq!(full.groups, Measure::ALL);
        assert_eq!(parsed(&["p", "--only", "calls"]).unwrap().groups, [Measure::Calls]);
        let quick = parsed(&["p", "--quick", "--write", "f"]).unwrap();
        assert_eq!((quick.effort, quick.write), (Effort::Quick, Some("f".into())));
        assert_eq!(parsed(&["p", "--fleet", "f"]).unwrap().fleet, Some("f".into()));
        for bad in [
            &[][..],
            &["p", "--write"],
            &["p", "--fleet"],
            &["p", "x"],
            &["p", "--only", "x"],
            &["p", "--", "x"],
        ] {
            assert!(parsed(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn windows_programs_have_a_folder_and_a_runner() {
        let found = parsed(&["p", "--quick", "--windows", "f", "--", "wine", "--quick"]).unwrap();
        let runner = vec!["wine".to_owned(), "--quick".to_owned()];
        assert_eq!(found.windows, Some(WindowsPrograms { folder: "f".into(), runner }));
    }
}
