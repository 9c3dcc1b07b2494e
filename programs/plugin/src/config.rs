//! The configuration of this process: its options, environment and files.

use std::path::{Path, PathBuf};

use cli::Failure;
use devices::DriverModel;
use settings::{Config, Flags, Origin};

/// Reads and checks the configuration. An invalid one is wrong usage.
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

/// Logs every value, defaults at a lower level, and the values that have no effect.
pub(crate) fn log(config: &Config) {
    for value in &config.effective {
        let model = value.model.map(DriverModel::name);
        let (key, setting, origin) = (value.key, value.value.as_str(), &value.origin);
        if value.origin == Origin::Default {
            tracing::debug!(model, key, value = setting, %origin, "configuration");
        } else {
            tracing::info!(model, key, value = setting, %origin, "configuration");
        }
    }
    for notice in &config.notices {
        tracing::warn!(%notice, "part of the configuration has no effect");
    }
}
