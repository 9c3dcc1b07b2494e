//! What the doctor is asked.

use std::path::PathBuf;

use devices::DriverModel;

use crate::image::ImageVersion;

/// What to check.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Request {
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
}
