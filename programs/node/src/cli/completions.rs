//! Shell completions, generated from the definitions that parse the arguments.

use clap::Command;
use clap_complete::Shell;

use crate::cli::{Failure, print};

/// The completion option of programs without subcommands.
#[derive(clap::Args, Debug)]
pub struct Completions {
    /// Print a completion script for this shell and exit
    #[arg(long = "completions", value_name = "SHELL", exclusive = true)]
    pub shell: Option<Shell>,
}

/// Writes the completion script of `command` for `shell` to standard output.
pub fn write_completions(shell: Shell, mut command: Command) -> Result<(), Failure> {
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut script);
    print(&String::from_utf8_lossy(&script))
}
