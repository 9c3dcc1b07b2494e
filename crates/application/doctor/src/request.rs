//! The options of `doctor` and `verify`.

use std::path::PathBuf;

use clap::Args;
use command_line::configuration;
use command_line::options::{DevicePluginDir, DriverModels, Input};
use config::{Config, ConfigError, Flags};

use crate::image::ImageVersion;
use crate::output::OutputFormat;
use crate::step::Step;

/// What follows the options of `doctor`.
pub const DOCTOR_EXAMPLES: &str = concat!(
    "\
Exits with 1 if there is a problem, and with 0 if there are only warnings. This page explains
every line:
",
    env!("PAGES"),
    "docs/doctor.md

Examples:
  Check this node, as administrator:
    directx-device-plugin doctor
  Also check whether the node can run an image:
    directx-device-plugin doctor --image-os-version 10.0.20348.1547
  Check a recorded host, on any machine:
    directx-device-plugin doctor --inventory host.yaml
  Also try what the daemon needs, as `verify` does:
    directx-device-plugin doctor --try"
);

/// What follows the options of `verify`.
pub const VERIFY_EXAMPLES: &str = concat!(
    "\
The same as `doctor --try`. Exits with 1 if a step failed, and with 0 if there are only
warnings. It removes everything that it creates, even after Ctrl+C. This page explains each
step:
",
    env!("PAGES"),
    "docs/verify.md

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
    directx-device-plugin verify --inventory host.yaml"
);

/// The options of `doctor` and `verify`.
#[derive(Args, Clone, Debug)]
pub struct Request {
    /// Also try what the daemon needs: sockets, discovery, kubelet, containers
    #[arg(id = "try", long = "try")]
    pub(crate) tries: bool,
    /// Step to leave out; repeatable, or separated by commas
    #[arg(long, value_enum, value_name = "STEP", value_delimiter = ',')]
    pub(crate) skip: Vec<Step>,
    /// Wait up to this many seconds for a device event, from 1 to 3600
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) wait_for_event: Option<u64>,
    /// Image for the containers that `ctr` starts; containerd must have it
    #[arg(long, value_name = "IMAGE")]
    pub(crate) image: Option<String>,
    /// containerd's namespace of the image [default: the one that `ctr` uses]
    #[arg(long, value_name = "NAMESPACE", requires = "image")]
    pub(crate) namespace: Option<String>,
    /// OS version of an image to run on the node, such as 10.0.20348.1547 or 10.0.20348.x, or the tag
    /// of a base image, such as ltsc2022
    #[arg(long, value_name = "VERSION")]
    pub(crate) image_os_version: Option<ImageVersion>,
    #[command(flatten)]
    pub(crate) input: Input,
    #[command(flatten)]
    models: DriverModels,
    #[command(flatten)]
    directory: DevicePluginDir,
    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = OutputFormat::Text)]
    pub(crate) output: OutputFormat,
    /// Command to run in the containers instead of `directx-device-plugin devices`, after `--`
    #[arg(last = true, value_name = "COMMAND", requires = "image")]
    pub(crate) command: Vec<String>,
}

impl Request {
    /// The configuration that `serve` would run with.
    pub(crate) fn configuration(&self) -> Result<Config, ConfigError> {
        let flags = Flags {
            driver_models: self.models.driver_models.clone(),
            config: self.input.config.clone(),
            device_plugin_dir: self.directory.device_plugin_dir.clone(),
            ..Flags::default()
        };
        configuration::load(&flags)
    }

    /// The kubelet's device plugin directory. An inventory has none, unless the request names one
    /// of this machine.
    pub(crate) fn directory(&self, config: Option<&Config>) -> Option<PathBuf> {
        let configured = match config {
            Some(config) => config.device_plugin_dir.clone(),
            None => self.directory.device_plugin_dir.clone(),
        };
        let live = self.input.inventory.is_none();
        configured.or_else(|| live.then(device_plugin::default_device_plugin_dir))
    }
}
