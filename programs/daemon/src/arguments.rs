//! Groups of options that several programs and commands have.

use std::path::{Path, PathBuf};

use clap::Args;
use devices::DriverModel;
use settings::{ConfigChoice, ConfigName, ConfigNameError, NamedConfigs};

/// `--driver-model`.
#[derive(Args, Debug, Clone)]
pub struct DriverModels {
    /// Driver model to advertise: wddm, mcdm or legacy; repeatable [default: wddm and mcdm]
    #[arg(long = "driver-model", value_name = "MODEL")]
    pub driver_models: Vec<DriverModel>,
}

/// Where configuration and adapters come from.
#[derive(Args, Debug, Clone)]
pub struct Input {
    /// The configuration.
    #[command(flatten)]
    pub config: ConfigOptions,
    /// Inventory (a recorded host) to use instead of this host
    #[arg(long, value_name = "FILE")]
    pub inventory: Option<PathBuf>,
}

/// The options that choose a configuration file.
#[derive(Args, Debug, Clone)]
pub struct ConfigOptions {
    /// Configuration file (YAML)
    #[arg(long, value_name = "FILE", conflicts_with = "config_directory")]
    config: Option<PathBuf>,
    /// Folder with named configurations: each file in it is a configuration and has its name
    #[arg(long, value_name = "DIR")]
    config_directory: Option<PathBuf>,
    /// File with the name of the configuration to use; if it is missing or empty, the default is used
    #[arg(long, value_name = "FILE", requires = "config_directory")]
    config_selection: Option<PathBuf>,
    /// Name of the configuration to use without a selection [default: default]
    #[arg(long, value_name = "NAME", requires = "config_directory", value_parser = config_name)]
    config_default: Option<ConfigName>,
}

impl ConfigOptions {
    /// What the options choose.
    #[must_use]
    pub fn choice(&self) -> ConfigChoice {
        match (&self.config, &self.config_directory) {
            (Some(file), _) => ConfigChoice::File(file.clone()),
            (None, None) => ConfigChoice::PerModel,
            (None, Some(directory)) => ConfigChoice::Named(NamedConfigs {
                directory: directory.clone(),
                selection: self.config_selection.clone(),
                default: self.config_default.clone(),
            }),
        }
    }

    /// `--config-selection`.
    #[must_use]
    pub fn selection(&self) -> Option<&Path> {
        self.config_selection.as_deref()
    }

    /// The paths among the options, each with its option.
    #[must_use]
    pub fn paths(&self) -> Vec<(&'static str, &Path)> {
        let ConfigOptions { config, config_directory, config_selection, config_default: _ } = self;
        let paths = [
            ("--config", config),
            ("--config-directory", config_directory),
            ("--config-selection", config_selection),
        ];
        let given = paths.into_iter().filter_map(|(option, path)| Some((option, path.as_deref()?)));
        given.collect()
    }
}

fn config_name(text: &str) -> Result<ConfigName, String> {
    text.parse().map_err(|error| format!("{error}: {}", ConfigNameError::HINT))
}
