//! `doctor`: checks a node; see the crate [`doctor`].

use std::process::ExitCode;

use clap::Args;
use cli::{Failure, OutputFormat};
use doctor::ImageVersion;

use crate::arguments::DevicePluginDir;
use daemon::arguments::{DriverModels, Input};

const EXAMPLES: &str = "\
Exits with 1 if there is a problem, and with 0 if there are only warnings. Every line is
explained in docs/troubleshooting.md.

Examples:
  Check this node, as administrator:
    directx-device-plugin doctor
  Check also whether the node can run an image:
    directx-device-plugin doctor --image-os-version 10.0.20348.1547
  Check a recorded host, on any machine:
    directx-device-plugin doctor --inventory host.yaml";

/// The options of `doctor`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DoctorArguments {
    /// OS version of an image to run on the node, such as 10.0.20348.1547 or 10.0.20348.x
    #[arg(long, value_name = "VERSION")]
    image_os_version: Option<ImageVersion>,
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    models: DriverModels,
    #[command(flatten)]
    directory: DevicePluginDir,
    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = OutputFormat::Text)]
    output: OutputFormat,
}

/// Runs the command.
pub(crate) fn run(arguments: DoctorArguments) -> Result<ExitCode, Failure> {
    let request = doctor::Request {
        driver_models: arguments.models.driver_models,
        config: arguments.input.config,
        inventory: arguments.input.inventory,
        device_plugin_dir: arguments.directory.device_plugin_dir,
        image_os_version: arguments.image_os_version,
    };
    doctor::run(&request, arguments.output)
}
