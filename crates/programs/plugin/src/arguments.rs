//! The command lines of `directx-device-plugin` and of the programs for one driver model.

use clap::{Command as ClapCommand, CommandFactory, Parser, Subcommand};
use devices::DriverModel;
use doctor::{DOCTOR_EXAMPLES, VERIFY_EXAMPLES};
use process::logging::LogArguments;

use crate::devices::DevicesArguments;
use crate::record::RecordArguments;
use crate::serve::{DaemonArguments, ServeArguments};
use crate::service::ServiceArguments;
use crate::simulate::SimulateArguments;
use crate::status::StatusArguments;

const EXAMPLES: &str = "\
Examples:
  See what pods would get on a recorded two-GPU host, on any machine:
    directx-device-plugin simulate
  See what two pods would get on a host that you recorded:
    directx-device-plugin simulate --inventory host.yaml \\
      --pod one=directx.microsoft.com/display:1 --pod two=directx.microsoft.com/display:2
  Run the daemon on a node:
    directx-device-plugin serve
  Find out why a pod does not get its GPU:
    directx-device-plugin doctor";

/// Advertises the DirectX devices of a node to Kubernetes
#[derive(Parser, Debug)]
#[command(name = "directx-device-plugin", version = devices::VERSION, after_help = EXAMPLES)]
pub(crate) struct CommandLine {
    #[command(flatten)]
    pub(crate) logs: LogArguments,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Advertises the DirectX devices of one driver model to Kubernetes
///
/// The same as `directx-device-plugin serve --driver-model`, under an earlier name.
#[derive(Parser, Debug)]
#[command(version = devices::VERSION)]
pub(crate) struct OneModelCommandLine {
    #[command(flatten)]
    pub(crate) daemon: DaemonArguments,
    #[command(flatten)]
    pub(crate) logs: LogArguments,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Run the daemon: register with the kubelet and serve devices
    Serve(ServeArguments),
    /// Show what pods would get, with the same plugin and a simulated kubelet
    Simulate(SimulateArguments),
    /// List the DirectX devices of this host or of an inventory
    Devices(DevicesArguments),
    /// Write the inventory of this host
    Record(RecordArguments),
    /// Find out what is wrong with a node, and how to fix it
    #[command(after_help = DOCTOR_EXAMPLES)]
    Doctor(doctor::Request),
    /// Test a node step by step: sockets, discovery, kubelet, containers
    #[command(after_help = VERIFY_EXAMPLES, mut_arg("try", |argument| argument.hide(true)))]
    Verify(doctor::Request),
    /// Report whether the kubelet received the device lists of the daemon, for probes
    Status(StatusArguments),
    /// Install, remove or run the daemon as a Windows service
    Service(ServiceArguments),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// The definition of the program for one driver model.
pub(crate) fn one_model_command(model: DriverModel) -> ClapCommand {
    let name = match model {
        DriverModel::Wddm => "device-plugin-wddm",
        DriverModel::Mcdm => "device-plugin-mcdm",
        DriverModel::Legacy => "device-plugin-legacy",
    };
    let example = format!(
        "Examples:\n  Run the daemon on a Windows node:\n    {name}\n  \
         The same, under its current name:\n    directx-device-plugin serve --driver-model {model}"
    );
    command_line::with_completions(OneModelCommandLine::command()).name(name).after_help(example)
}
