//! `doctor` and `verify`: inspect and test a node; see the crate [`doctor`].

use std::process::ExitCode;
use std::time::Duration;

use crate::doctor::{ContainerRequest, ImageVersion, OutputFormat, Request, Step};
use anyhow::anyhow;
use clap::Args;
use node::cli::Failure;

use crate::arguments::DevicePluginDir;
use node::daemon::arguments::{DriverModels, Input};
use node::daemon::{event_loop, signals};

/// What follows the options of `doctor`.
pub(crate) const DOCTOR_EXAMPLES: &str = "\
Exits with 1 if there is a problem, and with 0 if there are only warnings. Every line is
explained in docs/doctor.md.

Examples:
  Check this node, as administrator:
    directx-device-plugin doctor
  Also check whether the node can run an image:
    directx-device-plugin doctor --image-os-version 10.0.20348.1547
  Check a recorded host, on any machine:
    directx-device-plugin doctor --inventory host.yaml
  Also try what the daemon needs, as `verify` does:
    directx-device-plugin doctor --try";

/// What follows the options of `verify`.
pub(crate) const VERIFY_EXAMPLES: &str = "\
The same as `doctor --try`. Exits with 1 if a step failed, and with 0 if there are only
warnings. It removes everything that it creates, even after Ctrl+C. docs/verify.md explains
each step.

Examples:
  Test this node, as administrator; the daemon may be running:
    directx-device-plugin verify
  Write a report without private data, for a bug report:
    directx-device-plugin verify --output markdown
  Also test what containers see; containerd must have the image:
    directx-device-plugin verify --namespace k8s.io --image mcr.microsoft.com/windows/server:ltsc2022
  The same with a command of the image:
    directx-device-plugin verify --namespace k8s.io --image example.com/test:1 -- cmd /c dxdiag /t out.txt
  Wait a minute for a GPU to be disabled or enabled, and skip the doctor:
    directx-device-plugin verify --wait-for-event 60 --skip doctor
  Test a recorded host as far as possible, on any machine:
    directx-device-plugin verify --inventory host.yaml";

/// The options of `doctor` and `verify`.
#[derive(Args, Debug)]
pub(crate) struct DoctorArguments {
    /// Also try what the daemon needs: sockets, discovery, kubelet, containers
    #[arg(id = "try", long = "try")]
    tries: bool,
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
    /// Command to run in the containers instead of `directx-device-plugin devices`, after `--`
    #[arg(last = true, value_name = "COMMAND", requires = "image")]
    command: Vec<String>,
}

/// Runs `doctor`.
pub(crate) fn run(arguments: DoctorArguments) -> Result<ExitCode, Failure> {
    if arguments.tries {
        return verify(arguments);
    }
    let DoctorArguments { skip, wait_for_event, image, .. } = &arguments;
    if !skip.is_empty() || wait_for_event.is_some() || image.is_some() {
        let error = anyhow!("`--skip`, `--wait-for-event` and `--image` are for what is tried");
        return Err(Failure::usage(error).hint("add `--try`"));
    }
    let output = arguments.output;
    finish(&crate::doctor::look(&request(arguments))?, output)
}

/// Runs `verify`, which is `doctor --try`.
pub(crate) fn verify(arguments: DoctorArguments) -> Result<ExitCode, Failure> {
    let output = arguments.output;
    let request = request(arguments);
    let report = event_loop::build()?
        .block_on(async { crate::doctor::attempt(&request, signals::shutdown_signal()?).await })?;
    finish(&report, output)
}

fn finish(report: &crate::doctor::Report, output: OutputFormat) -> Result<ExitCode, Failure> {
    report.print(output)?;
    Ok(report.exit_code())
}

fn request(arguments: DoctorArguments) -> Request {
    let DoctorArguments { namespace, command, .. } = arguments;
    Request {
        driver_models: arguments.models.driver_models,
        config: arguments.input.config,
        inventory: arguments.input.inventory,
        device_plugin_dir: arguments.directory.device_plugin_dir,
        image_os_version: arguments.image_os_version,
        skip: arguments.skip,
        wait_for_event: arguments.wait_for_event.map(Duration::from_secs),
        container: arguments.image.map(|image| ContainerRequest { image, namespace, command }),
    }
}
