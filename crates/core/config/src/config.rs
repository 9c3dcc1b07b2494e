//! The whole configuration.

use std::path::PathBuf;

use devices::{DriverModel, Policy};

use crate::config_files::config_file;
use crate::policy::{ModelSettings, model_settings};
use crate::rules::FileRule;
use crate::variables::{
    Variables, match_name, misspelled_variables, other_driver_models, socket_directory,
};
use crate::{ConfigError, Environment, ModelSummary, resources};

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
    /// `--demonstration`: containers get no files.
    pub demonstration: bool,
}

/// A configuration, checked as far as that is possible without looking at hardware.
#[derive(Clone, Debug)]
pub struct Config {
    /// Which devices are advertised, and how.
    pub policy: Policy,
    /// The directory that replaces the kubelet's own.
    pub device_plugin_dir: Option<PathBuf>,
    /// The driver models of another daemon that should run on the same node.
    pub other_driver_models: Vec<DriverModel>,
    /// What is configured for each driver model, in the order of the policy.
    pub models: Vec<ModelSummary>,
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
        let mut file = config_file(&variables, flags.config.as_deref())?;
        notices.append(&mut file.ignored);
        models.push(model_settings(&variables, file)?);
    }
    if !models.iter().any(|model| model.policy.model == DriverModel::Legacy)
        && match_name(environment)?.is_some()
    {
        let what = "variable DIRECTX_GPU_MATCH_NAME has no effect without --driver-model legacy";
        notices.push(what.to_owned());
    }
    resources::check(&models)?;
    if flags.demonstration {
        models.iter().try_for_each(resources::check_demonstration)?;
    }
    let device_plugin_dir = directory(flags, environment, &models)?;
    let other_driver_models = other_driver_models(environment)?;
    notices.append(&mut foreign_rules(&models));
    let mut policy = Policy { models: Vec::new() };
    let mut summaries = Vec::new();
    for mut model in models {
        notices.append(&mut model.notices);
        policy.models.push(model.policy);
        summaries.push(model.summary);
    }
    Ok(Config { policy, device_plugin_dir, other_driver_models, models: summaries, notices })
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
) -> Result<Option<PathBuf>, ConfigError> {
    let is_legacy = models.iter().any(|m| m.policy.model == DriverModel::Legacy);
    match &flags.device_plugin_dir {
        Some(directory) => Ok(Some(directory.clone())),
        None if is_legacy => socket_directory(environment),
        None => Ok(None),
    }
}
