//! Groups of options that several programs and commands have.

use std::path::PathBuf;

use clap::Args;
use devices::DriverModel;

/// `--driver-model`.
#[derive(Args, Debug, Clone)]
pub struct DriverModels {
    /// Driver model to advertise: wddm, mcdm, or legacy (every device as microsoft.com/directx, as
    /// the plugin of 2019); repeatable, or separated by commas [default: wddm and mcdm]
    #[arg(long = "driver-model", value_name = "MODEL", value_delimiter = ',')]
    pub driver_models: Vec<DriverModel>,
}

/// `--device-plugin-dir`.
#[derive(Args, Debug, Clone)]
pub struct DevicePluginDir {
    /// The kubelet's device plugin directory, which contains `kubelet.sock`
    #[arg(long, value_name = "DIR")]
    pub device_plugin_dir: Option<PathBuf>,
}

/// Where configuration and adapters come from.
#[derive(Args, Debug, Clone)]
pub struct Input {
    /// Configuration file (YAML)
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Inventory (a recorded host) to use instead of this host
    #[arg(long, value_name = "FILE")]
    pub inventory: Option<PathBuf>,
}
