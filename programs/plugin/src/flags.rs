//! The command line.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Parser, Subcommand, ValueEnum};
use devices::{DriverModel, Filter, ResourceName};

use crate::doctor::ImageVersion;

const EXAMPLES: &str = "\
Examples:
  See what pods would get on a recorded two-GPU host, on any machine:
    directx-device-plugin simulate
  See what two pods would get on a host you recorded:
    directx-device-plugin simulate --inventory host.yaml \\
      --pod one=directx.microsoft.com/display:1 --pod two=directx.microsoft.com/display:2
  Run the daemon on a Windows node:
    directx-device-plugin serve
  Find out why a pod does not get its GPU:
    directx-device-plugin doctor";

/// Offers the DirectX devices of a Windows node to Kubernetes pods.
#[derive(Parser, Debug)]
#[command(name = "directx-device-plugin", version, after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) logs: Logs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Offers the DirectX devices of one driver model to Kubernetes pods.
///
/// The same as `directx-device-plugin serve --driver-model`, under its earlier name.
#[derive(Parser, Debug)]
#[command(version)]
pub(crate) struct Daemon {
    #[command(flatten)]
    pub(crate) completions: cli::Completions,
    #[command(flatten)]
    pub(crate) logs: Logs,
    #[command(flatten)]
    pub(crate) serve: Serving,
}

/// Where logs go and how many there are.
#[derive(Args, Debug, Clone)]
pub(crate) struct Logs {
    /// Form of the log lines on standard error
    #[arg(long, global = true, value_enum, default_value_t = LogFormat::Text)]
    pub(crate) log_format: LogFormat,
    /// Least level of the log lines on standard error
    #[arg(long, global = true, value_enum, default_value_t = LogLevel::Info)]
    pub(crate) log_level: LogLevel,
}

/// Form of log lines.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Least level that is logged.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LogLevel {
    /// Failures alone.
    Error,
    /// And what an administrator should act on.
    Warn,
    /// And the steps of the daemon's life.
    Info,
    /// And every call.
    Debug,
    /// And everything else.
    Trace,
}

/// What the program can do.
#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Run the daemon: register with the kubelet and serve devices
    Serve(Serve),
    /// Say whether a kubelet has what the daemon on this host offers, for probes
    Status(StatusArguments),
    /// Run the same plugin against a kubelet in this process and show what pods get
    Simulate(Simulate),
    /// List the DirectX devices of this host or of an inventory
    Devices(Devices),
    /// Write this host's inventory
    Record(Record),
    /// Say what is wrong with a node, and what to do about it
    Doctor(Doctor),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// `serve`.
#[derive(Args, Debug)]
pub(crate) struct Serve {
    #[command(flatten)]
    pub(crate) models: Models,
    #[command(flatten)]
    pub(crate) serving: Serving,
}

/// What the daemon is told whatever its name.
#[derive(Args, Debug)]
pub(crate) struct Serving {
    #[command(flatten)]
    pub(crate) input: Input,
    /// The kubelet's device plugin directory, with its `kubelet.sock`
    #[arg(long, value_name = "DIR")]
    pub(crate) device_plugin_dir: Option<PathBuf>,
}

/// Which devices.
#[derive(Args, Debug, Clone)]
pub(crate) struct Models {
    /// Driver model to offer: wddm, mcdm or legacy; repeatable [default: wddm and mcdm]
    #[arg(long = "driver-model", value_name = "MODEL")]
    pub(crate) driver_models: Vec<DriverModel>,
}

/// Where adapters and configuration come from.
#[derive(Args, Debug, Clone)]
pub(crate) struct Input {
    /// Configuration file (YAML)
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Recorded inventory to use instead of this host's adapters
    #[arg(long, value_name = "FILE")]
    pub(crate) inventory: Option<PathBuf>,
}

/// `status`.
#[derive(Args, Debug)]
#[command(
    after_help = "Ends with 0 if a daemon answers and the kubelet has all its lists, else with 1."
)]
pub(crate) struct StatusArguments {
    #[command(flatten)]
    pub(crate) models: Models,
    /// The directory that the daemon was given [default: the kubelet's own]
    #[arg(long, value_name = "DIR")]
    pub(crate) device_plugin_dir: Option<PathBuf>,
    /// Form of the result
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}

/// `simulate`.
#[derive(Args, Debug)]
#[command(
    after_help = "Without --pod, every resource gets one pod a device slot and one too many."
)]
pub(crate) struct Simulate {
    #[command(flatten)]
    pub(crate) models: Models,
    #[command(flatten)]
    pub(crate) input: Input,
    /// Pod to admit; repeat a name to ask for several resources in one container
    #[arg(long = "pod", value_name = "NAME=RESOURCE:COUNT")]
    pub(crate) pods: Vec<PodArgument>,
    /// Form of the result
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}

/// `devices`.
#[derive(Args, Debug)]
pub(crate) struct Devices {
    /// all, display, compute, display-only, compute-only or display-and-compute
    #[arg(long, value_name = "FILTER", default_value_t = Filter::All)]
    pub(crate) filter: Filter,
    /// Recorded inventory to list instead of this host's adapters
    #[arg(long, value_name = "FILE")]
    pub(crate) inventory: Option<PathBuf>,
    /// Form of the result
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}

/// `record`.
#[derive(Args, Debug)]
pub(crate) struct Record {
    /// File to write instead of standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Recorded inventory to write again instead of this host's
    #[arg(long, value_name = "FILE")]
    pub(crate) inventory: Option<PathBuf>,
}

const DOCTOR_EXAMPLES: &str = "\
Ends with 1 if there is a problem; warnings alone end with 0. Every line is explained in
docs/troubleshooting.md.

Examples:
  Look at this node, as administrator:
    directx-device-plugin doctor
  See besides whether it runs an image:
    directx-device-plugin doctor --image-os-version 10.0.20348.1547
  Look at a recorded host, on any machine:
    directx-device-plugin doctor --inventory host.yaml";

/// `doctor`.
#[derive(Args, Debug)]
#[command(after_help = DOCTOR_EXAMPLES)]
pub(crate) struct Doctor {
    #[command(flatten)]
    pub(crate) models: Models,
    #[command(flatten)]
    pub(crate) input: Input,
    /// The kubelet's device plugin directory, with its `kubelet.sock`
    #[arg(long, value_name = "DIR")]
    pub(crate) device_plugin_dir: Option<PathBuf>,
    /// OS version of an image that is to run here, such as 10.0.20348.1547 or 10.0.20348.x
    #[arg(long, value_name = "VERSION")]
    pub(crate) image_os_version: Option<ImageVersion>,
    /// Form of the result
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}

/// Form of a result on standard output.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Output {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// `NAME=RESOURCE:COUNT`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PodArgument {
    pub(crate) name: String,
    pub(crate) resource: ResourceName,
    pub(crate) count: u32,
}

impl FromStr for PodArgument {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let form = || "expected NAME=RESOURCE:COUNT, such as one=directx.microsoft.com/display:1";
        let (name, request) = text.split_once('=').ok_or_else(form)?;
        let (resource, count) = request.rsplit_once(':').ok_or_else(form)?;
        if name.is_empty() {
            return Err(form().to_owned());
        }
        let count: u32 = count.parse().map_err(|e| format!("count `{count}`: {e}"))?;
        if count == 0 {
            return Err("a count of 0 asks for nothing".to_owned());
        }
        let resource = resource.parse().map_err(|e| format!("resource: {e}"))?;
        Ok(PodArgument { name: name.to_owned(), resource, count })
    }
}

/// What `serve` needs, under whichever name the program runs.
#[derive(Debug)]
pub(crate) struct ServeRequest {
    pub(crate) models: Vec<DriverModel>,
    pub(crate) input: Input,
    pub(crate) device_plugin_dir: Option<PathBuf>,
}

impl Serving {
    /// The request of a program that stands for one driver model.
    pub(crate) fn for_model(self, model: DriverModel) -> ServeRequest {
        let Serving { input, device_plugin_dir } = self;
        ServeRequest { models: vec![model], input, device_plugin_dir }
    }
}

impl From<Serve> for ServeRequest {
    fn from(serve: Serve) -> ServeRequest {
        let Serving { input, device_plugin_dir } = serve.serving;
        ServeRequest { models: serve.models.driver_models, input, device_plugin_dir }
    }
}
