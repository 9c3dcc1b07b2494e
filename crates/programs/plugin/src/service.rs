//! `service`: installs, removes and runs the daemon as a Windows service.
//!
//! The options of `serve` are checked before anything is installed. The service runs this program
//! with the same options.

mod install;
#[cfg(windows)]
mod manager;
#[cfg(not(windows))]
#[path = "service/no_manager.rs"]
mod manager;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, CommandFactory, Parser, Subcommand};
use command_line::Failure;
use process::logging::LogArguments;

use crate::serve::ServeArguments;

const EXAMPLES: &str = "\
Examples:
  Install the daemon with its defaults, and start it:
    directx-device-plugin service install
    Start-Service directx-device-plugin
  Install it with options of `serve`:
    directx-device-plugin service install -- --driver-model wddm --config C:\\k\\plugin.yaml
  Stop and remove it:
    directx-device-plugin service uninstall

The service runs as LocalSystem, starts with Windows, and is restarted when it fails. It logs to
the file of `--log-file`, by default %SystemRoot%\\Logs\\directx-device-plugin.log.";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ServiceArguments {
    #[command(subcommand)]
    pub(crate) command: ServiceCommand,
}

#[derive(Subcommand, Debug)]
pub(crate) enum ServiceCommand {
    /// Install the service; run as administrator
    Install(InstallOptions),
    /// Stop and remove the service; run as administrator
    Uninstall,
    /// Run as the service; only the Windows service manager starts this
    Run(StoredOptions),
}

#[derive(Args, Debug)]
pub(crate) struct InstallOptions {
    /// Install although other accounts may write to what the service runs, reads or logs to
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    serve: StoredOptions,
}

pub(crate) fn run(arguments: ServiceArguments) -> Result<(), Failure> {
    match arguments.command {
        ServiceCommand::Install(InstallOptions { force, serve }) => install::run(&serve, force),
        ServiceCommand::Uninstall => manager::uninstall(),
        ServiceCommand::Run(serve) => manager::run(serve),
    }
}

/// How the name of the command is shown in messages about wrong options.
const SERVE: &str = "directx-device-plugin serve";

/// The options of `serve` that Windows stores: it starts this program with them.
#[derive(Args, Debug)]
pub(crate) struct StoredOptions {
    /// Options of `serve`
    #[arg(last = true, value_name = "SERVE_OPTION")]
    options: Vec<OsString>,
}

/// Run the daemon: register with the kubelet and serve devices
#[derive(Parser, Debug)]
#[command(name = SERVE)]
struct ServeCommandLine {
    #[command(flatten)]
    serve: ServeArguments,
    #[command(flatten)]
    logs: LogArguments,
}

impl StoredOptions {
    /// The command line of `serve` with these options. Exits like every command with wrong ones.
    fn parse(&self) -> Result<ServeCommandLine, Failure> {
        let words = [OsString::from(SERVE)].into_iter().chain(self.options.iter().cloned());
        command_line::parse_from(ServeCommandLine::command(), words)
    }

    /// The arguments with which Windows starts this program.
    fn launch_arguments(&self, log_file: Option<PathBuf>) -> Vec<OsString> {
        let mut arguments = ["service", "run", "--"].map(OsString::from).to_vec();
        arguments.extend(self.options.iter().cloned());
        if let Some(path) = log_file {
            arguments.extend(["--log-file".into(), path.into()]);
        }
        arguments
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use process::logging::LogDestination;

    use super::*;

    #[test]
    fn the_service_gets_the_options_and_a_log_file() {
        let options = ["--driver-model", "wddm", "--log-level", "debug"].map(OsString::from);
        let stored = StoredOptions { options: options.to_vec() };
        let arguments = stored.launch_arguments(Some("x.log".into()));
        assert_eq!(arguments[..3], ["service", "run", "--"]);
        assert_eq!(arguments[3..7], options);
        assert_eq!(arguments[7..], ["--log-file", "x.log"]);
        assert_eq!(stored.launch_arguments(None), arguments[..7]);
        let started = StoredOptions { options: arguments[3..].to_vec() }.parse();
        let started = started.ok().unwrap();
        let LogDestination::File(log) = started.serve.daemon.log_destination() else {
            panic!("no log file");
        };
        assert_eq!(log, Path::new("x.log"));
    }
}
