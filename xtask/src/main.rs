//! `cargo xtask`: sets up, tests and measures this workspace.
//!
//! Each command is one row of [`COMMANDS`] and one module. Nothing here is
//! needed to use the product.

mod bench;
mod clients;
mod deny;
mod fuzz;
mod kubelet_suite;
mod process;
mod setup;
mod test_run;
mod version_info;
mod wine;
mod wine_suite;
mod workspace;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;

/// One `cargo xtask NAME`.
struct Command {
    name: &'static str,
    arguments: &'static str,
    about: &'static str,
    run: fn(&[OsString]) -> Result<ExitCode>,
}

/// What `cargo xtask` can do, in the order its help lists it.
const COMMANDS: &[Command] = &[
    Command {
        name: "setup",
        arguments: "",
        about: "install what the tests need on this machine",
        run: setup::command,
    },
    Command {
        name: "test",
        arguments: "[--list] [STEP]...",
        about: "run every check, or the steps that are named",
        run: test_run::command,
    },
    Command {
        name: "fuzz",
        arguments: "[TARGET]... [--seconds N] | TARGET --input FILE",
        about: "feed the decoders with what libFuzzer makes up, or with one input again",
        run: fuzz::command,
    },
    Command {
        name: "bench",
        arguments: "[--quick] [--only GROUP]",
        about: "measure the release program and write docs/benchmarks.md",
        run: bench::command,
    },
    Command {
        name: "wine",
        arguments: "[--prefix NAME] [--bed INVENTORY] (PROGRAM [ARGUMENT]... | --stop)",
        about: "run a Windows program under Wine, on the host of an inventory if one is given",
        run: wine::command,
    },
    Command {
        name: "wine-suite",
        arguments: "[PART-OF-A-NAME]",
        about: "run the tests of the Windows programs under Wine, or some of them",
        run: wine_suite::command,
    },
];

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let Some((name, arguments)) = words.split_first() else {
        eprint!("{}", usage());
        return ExitCode::from(2);
    };
    if name == "help" || name == "--help" || name == "-h" {
        print!("{}", usage());
        return ExitCode::SUCCESS;
    }
    let Some(command) = COMMANDS.iter().find(|c| name == c.name) else {
        eprint!("error: `{}` is no command of xtask\n\n{}", name.display(), usage());
        return ExitCode::from(2);
    };
    (command.run)(arguments).unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

fn usage() -> String {
    let rows = COMMANDS.iter().map(|Command { name, arguments, about, .. }| {
        let call = format!("{name} {arguments}");
        format!(
            "  {}
      {about}
",
            call.trim_end()
        )
    });
    format!(
        "usage: cargo xtask COMMAND

{}",
        rows.collect::<String>()
    )
}
