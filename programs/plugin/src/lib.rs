//! The program `directx-device-plugin`, and the thin programs with earlier names.
//!
//! In come flags, environment and files; out go devices to the kubelet, reports to
//! standard output, logs to standard error and an exit status: 0 success, 1 failure
//! at work, 2 wrong usage or configuration.

mod config;
mod devices_report;
mod doctor;
mod flags;
mod fleet;
mod gpu_uuids;
#[cfg(all(test, windows))]
mod hot_plug;
mod logging;
mod offered;
mod output;
mod reader;
mod record;
mod serve;
mod signals;
mod simulate;
mod source;
mod status;
mod telling;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser};
use cli::Failure;
use devices::DriverModel;

use crate::flags::{Cli, Command, Daemon};

/// Runs `directx-device-plugin` with this process's arguments.
#[must_use]
pub fn main() -> ExitCode {
    cli::run(|| run(Cli::parse()))
}

/// Runs the daemon for one driver model, as the programs of the earlier system did.
#[must_use]
pub fn main_for(model: DriverModel) -> ExitCode {
    cli::run(|| {
        let matches = thin_command(model).get_matches();
        let daemon = Daemon::from_arg_matches(&matches).map_err(Failure::usage)?;
        if let Some(shell) = daemon.completions.shell {
            cli::write_completions(shell, thin_command(model))?;
            return Ok(ExitCode::SUCCESS);
        }
        serve::run(&daemon.logs, &daemon.serve.for_model(model))?;
        Ok(ExitCode::SUCCESS)
    })
}

fn run(cli: Cli) -> Result<ExitCode, Failure> {
    match cli.command {
        Command::Doctor(arguments) => return doctor::run(&cli.logs, &arguments),
        Command::Status(arguments) => return status::run(&cli.logs, &arguments),
        Command::Serve(arguments) => serve::run(&cli.logs, &arguments.into()),
        Command::Simulate(arguments) => simulate::run(&cli.logs, &arguments),
        Command::Devices(arguments) => devices_report::run(&cli.logs, &arguments),
        Command::Record(arguments) => record::run(&cli.logs, &arguments),
        Command::Completions { shell } => cli::write_completions(shell, Cli::command()),
    }
    .map(|()| ExitCode::SUCCESS)
}

/// The definitions that parse the arguments of each program, for its reference.
#[must_use]
pub fn programs() -> Vec<clap::Command> {
    let thin = [DriverModel::Wddm, DriverModel::Mcdm].map(thin_command);
    [Cli::command()].into_iter().chain(thin).collect()
}

/// The definition of the program that stands for one driver model.
fn thin_command(model: DriverModel) -> clap::Command {
    let name = match model {
        DriverModel::Wddm => "device-plugin-wddm",
        DriverModel::Mcdm => "device-plugin-mcdm",
        DriverModel::Legacy => "device-plugin-legacy",
    };
    let example = format!(
        "Examples:\n  Run the daemon on a Windows node:\n    {name}\n  \
         The same, under its newer name:\n    directx-device-plugin serve --driver-model {model}"
    );
    Daemon::command().name(name).after_help(example)
}
