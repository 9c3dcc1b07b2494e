//! `directx-visible`: runs a program that sees only the devices of its container.
//!
//! Reads the container's devices from the variables that the device plugin sets, starts
//! the program with the visibility filter, and returns its exit code.

mod allocation;
mod arguments;
mod check;
mod command_line;
mod failure;
mod filters;
mod help;
#[cfg(windows)]
mod lists;
#[cfg_attr(not(windows), path = "run_elsewhere.rs")]
mod run;

use std::process::ExitCode;

use crate::arguments::Request;

/// Runs the program.
#[must_use]
pub fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    let result = match arguments::parse(&words) {
        Ok(Request::Help) => {
            print!("{}", help::TEXT);
            Ok(0)
        }
        Ok(Request::Version) => {
            println!("directx-visible {}", env!("CARGO_PKG_VERSION"));
            Ok(0)
        }
        Ok(Request::Run { unfiltered, verbose }) => run::program(unfiltered, verbose),
        Ok(Request::Check(format)) => run::check(format),
        Ok(Request::List(api, known)) => run::list(api, &known),
        Err(failure) => Err(failure),
    };
    let code = result.unwrap_or_else(|failure| {
        eprintln!("{failure}");
        failure.code
    });
    exit(code)
}

/// Ends this process with a code of 32 bits, as Windows has them.
fn exit(code: u32) -> ExitCode {
    if let Ok(code) = u8::try_from(code) {
        return ExitCode::from(code);
    }
    std::process::exit(code.cast_signed())
}
