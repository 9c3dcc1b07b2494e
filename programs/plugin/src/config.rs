//! The configuration of this process: its flags, environment and files.

use std::path::{Path, PathBuf};

use devices::DriverModel;
use settings::{Config, Flags, Origin};

use cli::Failure;

/// Reads and checks the configuration; anything wrong is wrong usage.
pub(crate) fn load(
    driver_models: &[DriverModel],
    config: Option<&Path>,
    device_plugin_dir: Option<PathBuf>,
) -> Result<Config, Failure> {
    let flags = Flags {
        driver_models: driver_models.to_vec(),
        config: config.map(Path::to_owned),
        device_plugin_dir,
    };
    settings::load(&flags, &settings::ProcessEnvironment).map_err(|error| {
        let hint = error.hint().map(str::to_owned);
        Failure::usage(error).hint_if_any(hint)
    })
}

/// Logs what is in force, defaults at a lower level, and what has no effect.
pub(crate) fn tell(config: &Config) {
    for setting in &config.effective {
        if setting.origin == Origin::Default {
            tracing::debug!("{setting}");
        } else {
            tracing::info!("{setting}");
        }
    }
    for notice in &config.notices {
        tracing::warn!("{notice}");
    }
}
