//! Measures the program against its budgets, from outside, as a kubelet meets it.
//!
//! In come the release program and how long to measure; out goes a table on standard
//! output and, where asked for, `docs/benchmarks.md`. `cargo xtask bench` builds and
//! runs it. Nothing here is asserted: figures are for people to judge.

mod kubelet_side;
mod machine;
mod measures;
mod node;
mod program;
mod raw;
mod report;
mod sample;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use crate::measures::{Effort, Measure};

const USAGE: &str = "usage: bench PROGRAM [--quick] [--only GROUP] [--write FILE]";

/// What the command line asks for.
#[derive(PartialEq, Eq, Debug)]
struct Request {
    program: PathBuf,
    effort: Effort,
    /// The groups, in the order they are measured.
    groups: Vec<Measure>,
    write: Option<PathBuf>,
}

fn main() -> ExitCode {
    let request = match request(std::env::args_os().skip(1)) {
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

fn request(mut words: impl Iterator<Item = OsString>) -> Result<Request> {
    let mut request = Request {
        program: words.next().context("which program?")?.into(),
        effort: Effort::Full,
        groups: Measure::ALL.to_vec(),
        write: None,
    };
    while let Some(word) = words.next() {
        match word.to_string_lossy().as_ref() {
            "--quick" => request.effort = Effort::Quick,
            "--only" => {
                let name = words.next().context("`--only` needs a group")?;
                request.groups = vec![Measure::named(&name.to_string_lossy())?];
            }
            "--write" => {
                request.write = Some(words.next().context("`--write` needs a file")?.into());
            }
            other => bail!("`{other}` is no argument"),
        }
    }
    Ok(request)
}

fn measure(request: &Request) -> Result<()> {
    // One thread, so that client and program have a core each on the smallest machine.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("the event loop cannot be started")?;
    let machine = machine::describe();
    let mut groups = Vec::new();
    for group in &request.groups {
        eprintln!("measuring: {}", group.name());
        groups.push(runtime.block_on(group.run(&request.program, request.effort))?);
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

    fn asked(words: &[&str]) -> Result<Request> {
        request(words.iter().map(OsString::from))
    }

    #[test]
    fn a_program_is_needed_and_the_rest_is_not() {
        let full = asked(&["p"]).unwrap();
        assert_eq!((full.effort, full.write), (Effort::Full, None));
        assert_eq!(full.groups, Measure::ALL);
        assert_eq!(asked(&["p", "--only", "calls"]).unwrap().groups, [Measure::Calls]);
        let quick = asked(&["p", "--quick", "--write", "f"]).unwrap();
        assert_eq!((quick.effort, quick.write), (Effort::Quick, Some("f".into())));
        for bad in [&[][..], &["p", "--write"], &["p", "x"], &["p", "--only", "x"]] {
            assert!(asked(bad).is_err(), "{bad:?}");
        }
    }
}
