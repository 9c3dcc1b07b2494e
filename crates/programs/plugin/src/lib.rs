//! The program `directx-device-plugin`, and the programs for one driver model with
//! earlier names.

mod arguments;
mod devices;
mod record;
mod serve;
mod service;
mod simulate;
mod status;

use std::panic::UnwindSafe;
use std::process::ExitCode;

use ::devices::DriverModel;
use clap::CommandFactory;
use command_line::Failure;
use process::logging::{self, LogDestination};

use crate::arguments::{Command, CommandLine, OneModelCommandLine, one_model_command};
use crate::serve::ServeArguments;
use crate::service::{ServiceArguments, ServiceCommand};

/// Runs `directx-device-plugin` with the arguments of this process.
#[must_use]
pub fn main() -> ExitCode {
    run_unless_child(|| run(command_line::parse(CommandLine::command())?))
}

/// Runs the daemon for one driver model, under the name of an earlier program.
#[must_use]
pub fn main_for(model: DriverModel) -> ExitCode {
    run_unless_child(|| {
        let line: OneModelCommandLine = command_line::parse(one_model_command(model))?;
        line.daemon.run(&line.logs, vec![model])?;
        Ok(ExitCode::SUCCESS)
    })
}

/// Runs a program, or answers its parent if this process was started to ask NVML.
fn run_unless_child(program: impl FnOnce() -> Result<ExitCode, Failure> + UnwindSafe) -> ExitCode {
    command_line::run(|| match win32::nvml::answer_parent() {
        Some(answered) => answered.map(|()| ExitCode::SUCCESS).map_err(Failure::usage),
        None => program(),
    })
}

fn run(line: CommandLine) -> Result<ExitCode, Failure> {
    // The daemon logs where its own options say.
    let is_daemon = matches!(
        line.command,
        Command::Serve(_) | Command::Service(ServiceArguments { command: ServiceCommand::Run(_) })
    );
    if !is_daemon {
        logging::start(&line.logs, &LogDestination::Stderr)?;
    }
    match line.command {
        Command::Doctor(arguments) => return doctor::run(&arguments, false),
        Command::Verify(arguments) => return doctor::run(&arguments, true),
        Command::Status(arguments) => return status::run(&arguments),
        Command::Simulate(arguments) => return simulate::run(&arguments, &line.logs),
        Command::Serve(ServeArguments { models, daemon }) => {
            daemon.run(&line.logs, models.driver_models)
        }
        Command::Devices(arguments) => devices::run(&arguments),
        Command::Record(arguments) => record::run(&arguments),
        Command::Service(arguments) => service::run(arguments),
        Command::Completions { shell } => {
            command_line::write_completions(shell, CommandLine::command())
        }
    }
    .map(|()| ExitCode::SUCCESS)
}

/// The definitions that parse the arguments of each program, for the reference pages.
#[must_use]
pub fn programs() -> [clap::Command; 3] {
    let [wddm, mcdm] = [DriverModel::Wddm, DriverModel::Mcdm].map(one_model_command);
    [CommandLine::command(), wddm, mcdm]
}
