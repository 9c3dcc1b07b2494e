//! `verify`: tests a node; see the crate [`verify`].

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use cli::Failure;
use verify::{ContainerRequest, OutputFormat, Step};

use crate::arguments::DevicePluginDir;
use daemon::arguments::{DriverModels, Input};
use daemon::{event_loop, signals};

const EXAMPLES: &str = "\
Exits with 1 if a step failed, and with 0 if there are only warnings. Everything that it
creates is removed, also after Ctrl+C. docs/verify.md explains each step.

Examples:
  Test this node, as administrator, while the daemon runs or not:
    directx-device-plugin verify
  Write a report without private data, for a bug report:
    directx-device-plugin verify --output markdown
  Test also what containers see; containerd must have the image:
    directx-device-plugin verify --namespace k8s.io --image mcr.microsoft.com/windows/server:ltsc2022
  The same with a command of the image:
    directx-device-plugin verify --namespace k8s.io --image example.com/test:1 -- cmd /c dxdiag /t out.txt
  Wait a minute for a GPU to be disabled or enabled, and skip the doctor:
    directx-device-plugin verify --wait-for-event 60 --skip doctor
  Test a recorded host as far as possible, on any machine:
    directx-device-plugin verify --inventory host.yaml";

/// The options of `verify`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct VerifyArguments {
    /// Step to leave out; repeatable
    #[arg(long, value_enum, value_name = "STEP")]
    skip: Vec<Step>,
    /// Wait up to this many seconds for a device event, from 1 to 3600
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    wait_for_event: Option<u64>,
    /// Image for the containers that `ctr` starts; containerd must have it
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
    /// containerd's namespace of the image [default: that of `ctr`]
    #[arg(long, value_name = "NAMESPACE", requires = "image")]
    namespace: Option<String>,
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    models: DriverModels,
    #[command(flatten)]
    directory: DevicePluginDir,
    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = OutputFormat::Text)]
    output: OutputFormat,
    /// Command to run in the containers instead of `directx-device-plugin devices`, after `--`
    #[arg(last = true, value_name = "COMMAND", requires = "image")]
    command: Vec<String>,
}

/// Runs the command.
pub(crate) fn run(arguments: VerifyArguments) -> Result<ExitCode, Failure> {
    let VerifyArguments { namespace, command, .. } = arguments;
    let request = verify::Request {
        node: doctor::Request {
            driver_models: arguments.models.driver_models,
            config: arguments.input.config,
            inventory: arguments.input.inventory,
            device_plugin_dir: arguments.directory.device_plugin_dir,
            image_os_version: None,
        },
        skip: arguments.skip,
        wait_for_event: arguments.wait_for_event.map(Duration::from_secs),
        container: arguments.image.map(|image| ContainerRequest { image, namespace, command }),
    };
    let report = event_loop::build()?
        .block_on(async { verify::run(&request, signals::shutdown_signal()?).await })?;
    report.print(arguments.output)?;
    Ok(report.exit_code())
}
