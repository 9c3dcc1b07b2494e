//! Groups of options that several commands have.

use std::path::PathBuf;

use clap::Args;
use devices::DriverModel;

/// `--driver-model`.
#[derive(Args, Debug, Clone)]
pub(crate) struct DriverModels {
    /// Driver model to advertise: wddm, mcdm or legacy; repeatable [default: wddm and mcdm]
    #[arg(long = "driver-model", value_name = "MODEL")]
    pub(crate) driver_models: Vec<DriverModel>,
}

/// Where configuration and adapters come from.
#[derive(Args, Debug, Clone)]
pub(crate) struct Input {
    /// Configuration file (YAML)
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Inventory (a recorded host) to use instead of this host
    #[arg(long, value_name = "FILE")]
    pub(crate) inventory: Option<PathBuf>,
}

/// `--device-plugin-dir`.
#[derive(Args, Debug, Clone)]
pub(crate) struct DevicePluginDir {
    /// The kubelet's device plugin directory, which contains `kubelet.sock`
    #[arg(long, value_name = "DIR")]
    pub(crate) device_plugin_dir: Option<PathBuf>,
}
