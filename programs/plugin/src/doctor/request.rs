//! What a user asks.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use config::Config;
use devices::DriverModel;

use crate::doctor::image::ImageVersion;
use node::cli::Failure;

/// What to look at, and what to try.
#[derive(Clone, Debug, Default)]
pub(crate) struct Request {
    /// The driver models that `serve` runs with; none means its default.
    pub driver_models: Vec<DriverModel>,
    /// The configuration file that `serve` runs with.
    pub config: Option<PathBuf>,
    /// An inventory to check instead of this host.
    pub inventory: Option<PathBuf>,
    /// The kubelet's device plugin directory, if it is not the default one.
    pub device_plugin_dir: Option<PathBuf>,
    /// The OS version of an image that is to run on the node.
    pub image_os_version: Option<ImageVersion>,
    /// Steps to leave out.
    pub skip: Vec<Step>,
    /// How long to wait for a device event; `None` skips the step.
    pub wait_for_event: Option<Duration>,
    /// The containers to start; `None` skips the step.
    pub container: Option<ContainerRequest>,
}

/// The containers to start.
#[derive(Clone, Debug)]
pub(crate) struct ContainerRequest {
    /// An image that containerd has.
    pub image: String,
    /// containerd's namespace, if it is not the default of `ctr`.
    pub namespace: Option<String>,
    /// The command to run; empty for this program.
    pub command: Vec<String>,
}

/// One step of what is tried.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// every check of `doctor`
    Doctor,
    /// create, connect, watch and delete a socket in the device plugin directory
    Socket,
    /// read the adapters several times
    Discovery,
    /// wait for a device event
    Events,
    /// register a temporary resource with the kubelet
    Kubelet,
    /// start containers with one device and with several
    Container,
}

impl Request {
    /// The configuration that `serve` would run with.
    pub(crate) fn configuration(&self) -> Result<Config, Failure> {
        let flags = config::Flags {
            driver_models: self.driver_models.clone(),
            config: self.config.clone(),
            device_plugin_dir: self.device_plugin_dir.clone(),
        };
        config::load(&flags, &config::ProcessEnvironment).map_err(|error| {
            let hint = error.hint().map(str::to_owned);
            Failure::usage(error).hint_if_any(hint)
        })
    }

    /// The kubelet's device plugin directory. An inventory has none, unless the request names one
    /// of this machine.
    pub(crate) fn directory(&self, config: Option<&Config>) -> Option<PathBuf> {
        let configured = match config {
            Some(config) => config.device_plugin_dir.clone(),
            None => self.device_plugin_dir.clone(),
        };
        let live = self.inventory.is_none();
        configured.or_else(|| live.then(kubelet::default_device_plugin_dir))
    }
}
