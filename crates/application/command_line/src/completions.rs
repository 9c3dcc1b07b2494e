//! Shell completions, generated from the definitions that parse the arguments.

use std::ffi::OsString;

use clap::{Arg, Command, FromArgMatches, value_parser};
use clap_complete::Shell;

use crate::failure::Failure;
use crate::output::print;
use crate::usage_advice;

const COMPLETIONS: &str = "completions";

/// Adds the completion option to a program without subcommands.
#[must_use]
pub fn with_completions(command: Command) -> Command {
    command.arg(
        Arg::new(COMPLETIONS)
            .long(COMPLETIONS)
            .value_name("SHELL")
            .exclusive(true)
            .value_parser(value_parser!(Shell))
            .help("Print a completion script for this shell and exit"),
    )
}

/// The arguments of this process, as `command` defines them. Exits after wrong usage, `--help` and
/// `--completions`.
pub fn parse<A: FromArgMatches>(command: Command) -> Result<A, Failure> {
    parse_from(command, std::env::args_os())
}

/// Parses these arguments as [`parse`] parses those of the process.
pub fn parse_from<A: FromArgMatches>(
    command: Command,
    arguments: impl IntoIterator<Item = OsString>,
) -> Result<A, Failure> {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let matches = command
        .clone()
        .try_get_matches_from(&arguments)
        .unwrap_or_else(|error| usage_advice::advised(error, &command, &arguments).exit());
    if let Ok(Some(shell)) = matches.try_get_one(COMPLETIONS) {
        write_completions(*shell, command)?;
        std::process::exit(0);
    }
    Ok(A::from_arg_matches(&matches).unwrap_or_else(|error| error.exit()))
}

/// Writes the completion script of `command` for `shell` to standard output.
pub fn write_completions(shell: Shell, mut command: Command) -> Result<(), Failure> {
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, &name, &mut script);
    // For a program with hyphens in its name, the script for bash has two names for the state after
    // a subcommand (https://github.com/clap-rs/clap/issues/6421).
    let wrong = name.replace('-', "__subcmd__");
    let right = name.replace('-', "__");
    print(&String::from_utf8_lossy(&script).replace(&wrong, &right))
}
