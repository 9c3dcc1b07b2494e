//! Finds what is wrong with a node, and says how to fix it.
//!
//! `doctor` changes nothing: `collect` gathers plain values from this machine or an inventory,
//! and `evaluate` is a pure function from those values to findings. `verify` also tries what
//! the daemon needs, step by step; each step has a time limit, and removes what it created, also
//! after an interruption.

mod aging_facts;
mod attempt;
mod collect;
mod evaluate;
mod facts;
mod finding;
mod image;
mod output;
mod problem_codes;
mod request;
mod step;
mod stop;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use anyhow::anyhow;
use command_line::Failure;
use process::{event_loop, signals};

#[cfg(windows)]
pub use crate::collect::node_software;
pub use crate::evaluate::advice;
use crate::output::Report;
pub use crate::request::{DOCTOR_EXAMPLES, Request, VERIFY_EXAMPLES};
use crate::stop::PANICKED;

/// Runs `doctor`, or `verify`, which `tries` what the daemon needs.
///
/// # Errors
/// The inventory cannot be read, or there is none and this host has no DirectX devices.
pub fn run(request: &Request, tries: bool) -> Result<ExitCode, Failure> {
    let inventory = request.input.inventory.as_deref();
    // A Windows host that cannot be read is a finding.
    if inventory.is_some() || !cfg!(windows) {
        command_line::open_host(inventory)?;
    }
    let report = if tries || request.tries {
        event_loop::build()?.block_on(async {
            let interrupt = signals::shutdown_signal(None)?;
            Ok::<_, Failure>(attempt::attempt(request, interrupt).await)
        })?
    } else {
        let Request { skip, wait_for_event, image, .. } = request;
        if !skip.is_empty() || wait_for_event.is_some() || image.is_some() {
            let error = anyhow!("`--skip`, `--wait-for-event` and `--image` need `--try`");
            return Err(Failure::usage(error).hint("add `--try`"));
        }
        reported(|| {
            let facts = collect::collect(request)?;
            let checks = evaluate::evaluate(&facts);
            Ok(Report { snapshot: facts.snapshot, checks, ..Report::default() })
        })?
    };
    report.print(request.output)?;
    Ok(report.exit_code())
}

/// What `look` reports, or that it panicked.
fn reported(look: impl FnOnce() -> Result<Report, Failure>) -> Result<Report, Failure> {
    catch_unwind(AssertUnwindSafe(look)).unwrap_or_else(|_panic| {
        let checks = vec![step::Step::Doctor.error(&anyhow!(PANICKED))];
        Ok(Report { checks, ..Report::default() })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_reported_as_a_problem() {
        let report = reported(|| panic!("a driver returned nonsense")).unwrap();
        assert_eq!(report.exit_code(), ExitCode::FAILURE);
        assert_eq!(reported(|| Ok(Report::default())).unwrap().exit_code(), ExitCode::SUCCESS);
    }
}
