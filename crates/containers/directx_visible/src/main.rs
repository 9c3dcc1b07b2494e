//! `directx-visible`: runs a program that sees only the devices of its container.
//!
//! Reads the container's devices from the variables that the device plugin sets, starts
//! the program with the visibility filter, and returns its exit code.

// The functions of Windows are unsafe to call.
#![cfg_attr(windows, allow(unsafe_code))]
#![cfg_attr(not(windows), allow(dead_code, reason = "used on Windows"))]

mod allocation;
mod arguments;
mod check;
mod command_line;
#[cfg(windows)]
mod console;
#[cfg(windows)]
mod control_routine;
mod exit_codes;
mod filter_file;
mod help;
mod image;
mod install;
#[cfg(windows)]
mod launch;
#[cfg(windows)]
mod parents;
#[cfg(windows)]
mod run;

#[cfg(not(windows))]
use gpu_probe::failure::Failure;

use crate::arguments::Request;

fn main() {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    let result = match arguments::parse(&words) {
        Ok(Request::Help) => {
            print!("{}", help::TEXT);
            Ok(0)
        }
        Ok(Request::Version) => {
            println!("directx-visible {}", devices::VERSION);
            Ok(0)
        }
        Ok(Request::Command(options)) => image::command(&options),
        Ok(Request::Install(folder)) => install::install(&folder),
        Ok(Request::Wait) => {
            #[cfg(windows)]
            console::end_at_shutdown();
            loop {
                std::thread::park();
            }
        }
        #[cfg(windows)]
        Ok(Request::Run { line, words, is_required, is_verbose }) => {
            run::program(line, words, is_required, is_verbose)
        }
        #[cfg(windows)]
        Ok(Request::Check { json }) => run::check(json),
        #[cfg(windows)]
        Ok(Request::List(api, known)) => Ok(run::list(api, &known)),
        #[cfg(not(windows))]
        Ok(_) => {
            let hint = "run it in a container on Windows";
            Err(Failure::new(exit_codes::OTHER, "this program runs only on Windows", hint))
        }
        Err(failure) => Err(failure),
    };
    let code = result.unwrap_or_else(|failure| {
        eprintln!("{failure}");
        failure.code.into()
    });
    // Codes of Windows have 32 bits.
    std::process::exit(code.cast_signed())
}
