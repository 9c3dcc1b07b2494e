//! What programs start with that follow the host and the configuration.

use std::path::PathBuf;

use crate::cli::Failure;
use config::Config;
use devices::DriverModel;

use crate::daemon::arguments::Input;
use crate::daemon::config_source::ConfigSource;
use crate::daemon::event_loop::{self, EventLoop};
use crate::daemon::host_access::HostAccess;

/// The host and the configuration at the start, and what is needed to follow them.
pub struct Inputs {
    /// The event loop.
    pub event_loop: EventLoop,
    /// The host.
    pub host: HostAccess,
    /// The configuration.
    pub config: Config,
    /// Where the configuration comes from.
    pub source: ConfigSource,
}

impl Inputs {
    /// Reads the inventory, if there is one, and the configuration for `driver_models`.
    ///
    /// # Errors
    /// One of them is invalid, or the operating system refuses the event loop.
    pub fn read(
        driver_models: &[DriverModel],
        input: &Input,
        device_plugin_dir: Option<PathBuf>,
    ) -> Result<Inputs, Failure> {
        let event_loop = event_loop::build()?;
        let host = HostAccess::of(input.inventory.as_deref())?;
        let source = ConfigSource::new(driver_models, input.config.clone(), device_plugin_dir);
        let config = source.read().result?;
        Ok(Inputs { event_loop, host, config, source })
    }
}
