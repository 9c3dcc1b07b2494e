//! The whole configuration.

use std::path::PathBuf;

use devices::{DriverModel, Policy};

use crate::config_files;
use crate::origin::{Effective, Origin, Sourced};
use crate::policy::{ModelSettings, model_settings};
use crate::rules::FileRule;
use crate::variables::{Variables, match_name, misspelled_variables, socket_directory};
use crate::{ConfigError, Environment, resources};

/// The flags of the command line.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Flags {
    /// `--driver-model`, in the order given; empty means wddm and mcdm.
    pub driver_models: Vec<DriverModel>,
    /// `--config`: the file for all driver models. Without it, each driver model has a separate
    /// file.
    pub config: Option<PathBuf>,
    /// `--device-plugin-dir`.
    pub device_plugin_dir: Option<PathBuf>,
}

/// A configuration, checked as far as that is possible without looking at hardware.
#[derive(Clone, Debug)]
pub struct Config {
    /// Which devices are advertised, and how.
    pub policy: Policy,
    /// The directory that replaces the kubelet's own.
    pub device_plugin_dir: Option<PathBuf>,
    /// Every effective value and where it comes from.
    pub effective: Vec<Effective>,
    /// Warnings about settings that are accepted but have no effect.
    pub notices: Vec<String>,
}

/// Reads and checks the configuration.
///
/// # Errors
/// The first thing that is wrong, with its flag, variable, or file, line and key.
pub fn load(flags: &Flags, environment: &dyn Environment) -> Result<Config, ConfigError> {
    let mut models: Vec<ModelSettings> = Vec::new();
    let mut notices: Vec<String> = misspelled_variables(environment);
    for model in driver_models(flags)? {
        let variables = Variables { model, environment };
        let mut file = config_files::settings(&variables, flags.config.as_deref())?;
        notices.append(&mut file.ignored);
        models.push(model_settings(&variables, &file)?);
    }
    if !models.iter().any(|model| model.policy.model == DriverModel::Legacy)
        && let Some(name) = match_name(environment)?
    {
        notices.push(format!("{} has no effect without --driver-model legacy", name.origin));
    }
    resources::check(&models)?;
    let directory = directory(flags, environment, &models)?;
    let mut effective: Vec<Effective> = Vec::new();
    effective.extend(directory.as_ref().map(|directory| Effective {
        model: None,
        key: "device-plugin-dir",
        value: directory.value.display().to_string(),
        origin: directory.origin.clone(),
    }));
    notices.append(&mut foreign_rules(&models));
    for model in &mut models {
        effective.append(&mut model.effective);
        notices.append(&mut model.notices);
    }
    Ok(Config {
        policy: Policy { models: models.into_iter().map(|m| m.policy).collect() },
        device_plugin_dir: directory.map(|directory| directory.value),
        effective,
        notices,
    })
}

/// The driver models to serve. A device belongs to exactly one resource, and `legacy` claims
/// every device.
fn driver_models(flags: &Flags) -> Result<Vec<DriverModel>, ConfigError> {
    let mut models: Vec<DriverModel> = Vec::new();
    for model in &flags.driver_models {
        if !models.contains(model) {
            models.push(*model);
        }
    }
    if models.is_empty() {
        models = vec![DriverModel::Wddm, DriverModel::Mcdm];
    }
    if models.len() > 1 && models.contains(&DriverModel::Legacy) {
        let what = "--driver-model legacy cannot be combined with another driver model".to_owned();
        let hint = "legacy advertises every device as one resource; serve other driver models on other nodes";
        return Err(ConfigError::Conflict { what, hint });
    }
    Ok(models)
}

/// Warnings about rules for a driver model that is not served, or that another file configures.
fn foreign_rules(models: &[ModelSettings]) -> Vec<String> {
    let mut notices: Vec<String> = Vec::new();
    for foreign in models.iter().flat_map(|m| &m.foreign_rules) {
        if models.iter().any(|m| m.rules.contains(foreign)) {
            continue;
        }
        let FileRule { rule, place } = foreign;
        let model = rule.matches.model.map_or("", DriverModel::into);
        let notice = format!(
            "{place}: the rule for `{}` has no effect: this file does not configure driver model {model}",
            rule.name
        );
        if !notices.contains(&notice) {
            notices.push(notice);
        }
    }
    notices
}

/// The kubelet's directory from the flag, or for `legacy` from `PLUGIN_SOCK_DIR`, which the plugin
/// of 2019 used.
fn directory(
    flags: &Flags,
    environment: &dyn Environment,
    models: &[ModelSettings],
) -> Result<Option<Sourced<PathBuf>>, ConfigError> {
    if let Some(value) = flags.device_plugin_dir.clone() {
        return Ok(Some(Sourced { value, origin: Origin::Flag("--device-plugin-dir") }));
    }
    if models.iter().any(|m| m.policy.model == DriverModel::Legacy) {
        return socket_directory(environment);
    }
    Ok(None)
}
