//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{CommandFactory, Parser, Subcommand};
use command_line::OutputFormat;
use command_line::options::{DriverModels, Input};
use daemon::logging::LogArguments;

use crate::cleanup::CleanupArguments;

const EXAMPLES: &str = "\
Examples:
  Keep labels, condition and Events of a node up to date, in a pod:
    directx-feature-discovery --node-name node-1
  See which labels a recorded host would get, on any machine:
    directx-feature-discovery --print --inventory host.yaml
  Remove labels, condition and startup taint from every node:
    directx-feature-discovery cleanup";

/// Labels a Kubernetes node with the properties of its DirectX devices
#[derive(Parser, Debug)]
#[command(name = "directx-feature-discovery", version, after_help = EXAMPLES)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) models: DriverModels,
    #[command(flatten)]
    pub(crate) input: Input,
    /// Print the labels and exit
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
    /// The device plugin's directory for sockets, to name the devices that are out of service
    /// [default: the kubelet's default]
    #[arg(long, value_name = "DIR", conflicts_with = "print")]
    pub(crate) device_plugin_dir: Option<PathBuf>,
    /// Address of /metrics and /healthz, such as 127.0.0.1:9401; `:9401` for every address
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with = "print", value_parser = daemon::monitoring::parse_address)]
    pub(crate) listen: Option<SocketAddr>,

    /// Also set the labels of NVIDIA's GPU Feature Discovery, for NVIDIA devices
    #[arg(long)]
    pub(crate) gfd_labels: bool,
    #[command(flatten)]
    pub(crate) logs: LogArguments,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Remove the labels, the condition and the startup taint from the nodes, and exit
    Cleanup(CleanupArguments),
}

/// The definition that parses the arguments, also for the reference page.
#[must_use]
pub fn command() -> clap::Command {
    command_line::with_completions(CommandLine::command())
}
