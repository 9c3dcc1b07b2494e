//! The command line.

use std::path::PathBuf;

use clap::{ArgGroup, Command, CommandFactory, Parser};
use cli::Completions;
use daemon::arguments::{DriverModels, Input};
use daemon::logging::{LOG_LEVEL, LogArguments};
use node_report::LabelFamily;

const EXAMPLES: &str = "\
Examples:
  Keep labels, condition and Events of a node up to date, in a pod:
    directx-feature-discovery --node-name node-1
  See which labels a recorded host would get, on any machine:
    directx-feature-discovery --print --inventory host.yaml
  Write the labels for Node Feature Discovery, and follow changes:
    directx-feature-discovery --output features.d/directx";

/// Labels a Kubernetes node with what is known about its DirectX devices
#[derive(Parser, Debug)]
#[command(name = "directx-feature-discovery", version, after_help = EXAMPLES)]
#[command(group = ArgGroup::new("destination"))]
pub(crate) struct CommandLine {
    #[command(flatten)]
    pub(crate) models: DriverModels,
    #[command(flatten)]
    pub(crate) input: Input,
    /// Print the labels and exit
    #[arg(long, group = "destination")]
    pub(crate) print: bool,
    /// File to write the labels to, in the format of Node Feature Discovery's local features
    #[arg(long, value_name = "FILE", group = "destination")]
    pub(crate) output: Option<PathBuf>,
    /// Name of this node's object in the cluster [default: the variable `NODE_NAME`]
    #[arg(long, value_name = "NAME")]
    pub(crate) node_name: Option<String>,
    /// Kubeconfig file to use instead of the account of the pod
    #[arg(long, value_name = "FILE", conflicts_with = "destination")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Key of a taint to remove from the node once pods can use its devices
    #[arg(long, value_name = "KEY", conflicts_with = "destination")]
    pub(crate) startup_taint: Option<String>,
    /// The device plugin's directory for sockets, to ask which pods use a driver that was replaced
    /// [default: that of the kubelet]
    #[arg(long, value_name = "DIR", conflicts_with = "destination")]
    pub(crate) device_plugin_dir: Option<PathBuf>,
    /// Write the value of the node's label directx.microsoft.com/device-plugin.config to the file of
    /// --config-selection, for this program and the device plugin
    #[arg(long, requires = "config_selection", conflicts_with = "destination")]
    pub(crate) select_config: bool,
    #[command(flatten)]
    pub(crate) labels: LabelOptions,
    #[command(flatten)]
    pub(crate) completions: Completions,
    #[command(flatten)]
    pub(crate) logs: LogArguments,
}

/// Which labels, and who sets them on the node.
#[derive(clap::Args, Debug)]
pub(crate) struct LabelOptions {
    /// Write the labels to a `NodeFeature` object, from which Node Feature Discovery sets them on the
    /// node
    #[arg(long, conflicts_with = "destination")]
    pub(crate) node_feature: bool,
    /// Also set the labels of NVIDIA's GPU Feature Discovery, for NVIDIA devices
    #[arg(long)]
    gfd_labels: bool,
}

/// The definition that parses the arguments.
pub(crate) fn command() -> Command {
    // `mut_arg` would move the argument behind all others.
    CommandLine::command().mut_args(|argument| match argument.get_id().as_str() {
        LOG_LEVEL => argument.help("Minimum log level [default: info; warn with --print]"),
        _ => argument,
    })
}

impl LabelOptions {
    /// Which labels the node gets.
    pub(crate) fn family(&self) -> LabelFamily {
        if self.gfd_labels { LabelFamily::WithNvidia } else { LabelFamily::Directx }
    }
}
