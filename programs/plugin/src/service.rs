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
mod stored_options;

use clap::{Args, Subcommand};
use command_line::Failure;

use crate::service::stored_options::StoredOptions;

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
    command: ServiceCommand,
}

#[derive(Subcommand, Debug)]
enum ServiceCommand {
    /// Install the service; run as administrator
    Install(InstallOptions),
    /// Stop and remove the service; run as administrator
    Uninstall,
    /// Run as the service; only the Windows service manager starts this
    Run(StoredOptions),
}

#[derive(Args, Debug)]
struct InstallOptions {
    /// Install although other accounts may write to what the service runs, reads or logs to
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    serve: StoredOptions,
}

impl ServiceArguments {
    /// Whether this is the daemon, which logs where its own options say.
    pub(crate) fn is_daemon(&self) -> bool {
        matches!(self.command, ServiceCommand::Run(_))
    }
}

pub(crate) fn run(arguments: ServiceArguments) -> Result<(), Failure> {
    match arguments.command {
        ServiceCommand::Install(InstallOptions { force, serve }) => install::run(&serve, force),
        ServiceCommand::Uninstall => manager::uninstall(),
        ServiceCommand::Run(serve) => manager::run(serve),
    }
}
