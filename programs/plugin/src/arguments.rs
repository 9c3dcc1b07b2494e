//! An option that several commands have.

use std::path::PathBuf;

use clap::Args;

/// `--device-plugin-dir`.
#[derive(Args, Debug, Clone)]
pub(crate) struct DevicePluginDir {
    /// The kubelet's device plugin directory, which contains `kubelet.sock`
    #[arg(long, value_name = "DIR")]
    pub(crate) device_plugin_dir: Option<PathBuf>,
}
