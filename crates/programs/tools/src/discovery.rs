//! `test-device-discovery`: prints the DirectX devices of a host as text.
//!
//! The text is exactly the same as the original program's, except for the version, because
//! scripts read it. The C++ and Go clients of the discovery library print the same text.

mod text;

use std::process::ExitCode;

use clap::{Command, CommandFactory as _, Parser};
use command_line::{Failure, with_boolean_values, with_completions, with_double_dashes};
use devices::{Criteria, Filter, discover};

use crate::host_argument::Host;
use crate::stderr;

const EXAMPLES: &str = "\
Examples:
  List the devices of this host:
    test-device-discovery
  List the devices of an inventory that support compute, and why others are skipped:
    test-device-discovery --inventory host.yaml --filter compute --verbose";

/// List the DirectX devices of a host with their driver files
#[derive(Parser, Debug)]
#[command(name = "test-device-discovery", version = devices::VERSION, after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// List only devices with this support: all, display, compute, display-only, compute-only or
    /// display-and-compute
    #[arg(long, value_name = "FILTER", default_value_t = Filter::All)]
    filter: Filter,
    /// Skip devices that are integrated into the processor
    #[arg(long)]
    exclude_integrated: bool,
    /// Skip devices that can be removed while the host runs
    #[arg(long)]
    exclude_detachable: bool,
    #[command(flatten)]
    host: Host,
    /// Print skipped adapters, with reasons, to standard error
    #[arg(long, short)]
    verbose: bool,
}

/// Runs the program with this process's arguments.
#[must_use]
pub fn main() -> ExitCode {
    command_line::run(|| {
        // The original Go program used package `flag`, where long options take one dash or two.
        let arguments = with_double_dashes(&command(), std::env::args_os());
        run(&command_line::parse_from(command(), arguments)?)
    })
}

/// The command line's definition.
pub(crate) fn command() -> Command {
    with_completions(with_boolean_values(Arguments::command()))
}

fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let snapshot = arguments.host.snapshot()?;
    let selection = discover(
        &snapshot,
        Criteria {
            filter: arguments.filter,
            include_integrated: !arguments.exclude_integrated,
            include_detachable: !arguments.exclude_detachable,
            // As the library: the earlier programs list Hyper-V's display.
            include_basic: true,
        },
    );
    if arguments.verbose {
        selection.left_out(&snapshot).iter().for_each(|line| stderr::line(line));
    }
    command_line::print(&text::text(&selection.devices))?;
    Ok(ExitCode::SUCCESS)
}
