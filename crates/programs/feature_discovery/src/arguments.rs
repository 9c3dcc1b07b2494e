//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::anyhow;
use clap::{CommandFactory, Parser, Subcommand};
use command_line::options::DevicePluginDir;
use command_line::{Failure, OutputFormat};
use process::logging::LogArguments;

use crate::cleanup::CleanupArguments;

const EXAMPLES: &str = "\
Examples:
  Keep labels, conditions and Events of a node up to date, in a pod:
    directx-feature-discovery --node-name node-1
  See the labels of this node:
    directx-feature-discovery --print
  Remove labels, conditions and startup taint from every node:
    directx-feature-discovery cleanup";

/// Labels a Kubernetes node with the properties of its DirectX devices
#[derive(Parser, Debug)]
#[command(name = "directx-feature-discovery", version = devices::VERSION, after_help = EXAMPLES)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    /// Print the labels of this node and exit
    #[arg(long)]
    pub(crate) print: bool,
    /// Output format of --print
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = OutputFormat::Text, requires = "print")]
    pub(crate) output: OutputFormat,
    /// Name of this node's object in the cluster [default: the variable `NODE_NAME`]
    #[arg(long, value_name = "NAME")]
    pub(crate) node_name: Option<String>,
    /// Kubeconfig file to use instead of the account of the pod
    #[arg(long, value_name = "FILE", conflicts_with = "print")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Key of a taint to remove from the node once pods can use its devices
    #[arg(long, value_name = "KEY", conflicts_with = "print")]
    pub(crate) startup_taint: Option<String>,
    #[command(flatten)]
    pub(crate) directory: DevicePluginDir,
    /// Address of /metrics, /healthz and /readyz, such as 127.0.0.1:9401; `:9401` for every address
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with = "print", value_parser = process::monitoring::parse_address)]
    pub(crate) listen: Option<SocketAddr>,

    /// Also set the labels of NVIDIA's GPU Feature Discovery, for NVIDIA devices
    #[arg(long)]
    pub(crate) gfd_labels: bool,
    /// Do not warn if no admission policy restricts the account of the pod
    #[arg(long, conflicts_with = "print")]
    pub(crate) no_policy_check: bool,
    #[command(flatten)]
    pub(crate) logs: LogArguments,
    /// An option of the plugin
    #[arg(long, hide = true)]
    config: Option<String>,
    /// An option of the plugin
    #[arg(long, hide = true)]
    driver_model: Vec<String>,
    /// An option of the plugin
    #[arg(long, hide = true)]
    inventory: Option<String>,
}

impl CommandLine {
    /// Fails with the reason if there is an option that decides what the plugin lists.
    pub(crate) fn refuse_options_of_the_plugin(&self) -> Result<(), Failure> {
        let option = if self.config.is_some() {
            "--config"
        } else if !self.driver_model.is_empty() {
            "--driver-model"
        } else if self.inventory.is_some() {
            "--inventory"
        } else {
            return Ok(());
        };
        let error = anyhow!(
            "directx-feature-discovery has no option `{option}`: it reports what the device plugin \
             on its node lists"
        );
        Err(Failure::usage(error).hint(
            "give the option to `directx-device-plugin serve`; for a recorded host, `directx-device-plugin \
             simulate --gfd-labels` shows labels and conditions",
        ))
    }
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Remove the labels, the conditions and the startup taint from the nodes, and exit
    Cleanup(CleanupArguments),
}

/// The definition that parses the arguments, also for the reference page.
#[must_use]
pub fn command() -> clap::Command {
    command_line::with_completions(CommandLine::command())
}
