//! The policy of one driver model, from its settings and rules.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use devices::{ContainerPolicy, DriverModel, ModelPolicy, ResourceName, Sharing};

use crate::config_files::ConfigFile;
use crate::rules::FileRule;
use crate::setting_types::Switch;
use crate::settings::{SetValues, Settings};
use crate::values::positive;
use crate::variables::{Variables, match_name};
use crate::{ConfigError, ModelSummary, Place, SettingText};

/// The part of the adapter name that the plugin of 2019 required by default.
const LEGACY_MATCH_NAME: &str = "nvidia";

/// Keys that `legacy` ignores: it allocates the device class and mounts no files, as the plugin of
/// 2019 did.
const IGNORED_BY_LEGACY: [&str; 6] = [
    "runtimeMounts",
    "runtimeFilesWow64",
    "excludeMounts",
    "additionalMounts",
    "additionalMountsWow64",
    "multiDevice",
];

/// The policy of a driver model, and where its parts come from.
pub(crate) struct ModelSettings {
    pub(crate) policy: ModelPolicy,
    /// The rules of the policy with their places, in the order of the policy.
    pub(crate) rules: Vec<FileRule>,
    /// The file's rules for other driver models.
    pub(crate) foreign_rules: Vec<FileRule>,
    /// Where a file sets the resource's name.
    pub(crate) name_place: Option<Place>,
    /// The variable that sets the resource's name.
    pub(crate) name_variable: Option<String>,
    /// Where a file sets the visibility.
    pub(crate) visibility_place: Option<Place>,
    pub(crate) summary: ModelSummary,
    /// Warnings about keys that have no effect.
    pub(crate) notices: Vec<String>,
}

pub(crate) fn model_settings(
    variables: &Variables<'_>,
    file: ConfigFile,
) -> Result<ModelSettings, ConfigError> {
    let model = variables.model;
    let path = file.path.as_deref();
    let notices = notices(model, path, &file.values);
    let set = variables.values()?;
    let name_variable = set.resource_name.as_ref().map(|_| variables.resource_name());
    let settings = set.or(file.values, model);
    let match_name = matched_name(variables)?;
    let sharing = Sharing {
        replicas: positive(settings.multitenancy),
        allocation: settings.allocation_policy.0.0,
        shared_requests: settings.shared_requests.0.0,
    };
    let (mut rules, foreign_rules): (Vec<FileRule>, Vec<FileRule>) =
        file.rules.into_iter().partition(|rule| rule.is_for(model));
    for FileRule { rule, place } in &mut rules {
        let name = ConfiguredName { name: &rule.name, place: Some(&*place), variable: None };
        let replicas = rule.replicas.unwrap_or(sharing.replicas);
        rule.name = shared_name(&settings, path, &name, replicas)?;
    }
    let name_place = settings.resource_name.place(path, "resourceName");
    let name = ConfiguredName {
        name: &settings.resource_name.value.0,
        place: name_place.as_ref(),
        variable: name_variable.as_deref(),
    };
    let resource = shared_name(&settings, path, &name, sharing.replicas)?;
    Ok(ModelSettings {
        summary: ModelSummary {
            model,
            file: file.path.clone(),
            variables: variables.names_of_set(),
            settings: texts(&settings, model, match_name.as_deref(), &rules),
        },
        name_place,
        name_variable,
        visibility_place: settings.visibility.place(path, "visibility"),
        policy: ModelPolicy {
            model,
            resource,
            sharing,
            include_integrated: settings.include_integrated.0,
            include_detachable: settings.include_detachable.0,
            match_name,
            rules: rules.iter().map(|r| r.rule.clone()).collect(),
            publish_numa: settings.publish_numa.0,
            removal_grace: Duration::from_secs(settings.removal_grace.0),
            cordoned: settings.cordoned_devices.0.iter().map(|n| n.0.clone()).collect(),
            unhealthy_after_resets: settings.unhealthy_after_resets.0,
            container: Arc::new(container(settings)),
        },
        rules,
        foreign_rules,
        notices,
    })
}

fn container(settings: Settings) -> ContainerPolicy {
    let excluded = settings.exclude_mounts.0.into_iter();
    ContainerPolicy {
        runtime_mounts: settings.runtime_mounts.0.0,
        omit_wow64: !settings.runtime_files_wow64.0,
        exclude_mounts: excluded.map(|name| name.0).collect(),
        additional: settings.additional_mounts.0,
        additional_wow64: settings.additional_mounts_wow64.0,
        multi_device: settings.multi_device.0.0,
        device_class: settings.device_class.0,
        omit_environment_hints: !settings.environment_hints.0,
        visibility: settings.visibility.value.0.0,
        cdi_devices: settings.cdi_devices.0,
    }
}

/// Every setting, the name that `legacy` requires and the rules, as text.
fn texts(
    settings: &Settings,
    model: DriverModel,
    match_name: Option<&str>,
    rules: &[FileRule],
) -> Vec<SettingText> {
    let defaults = SetValues::default().or(SetValues::default(), model).texts();
    let values = settings.texts().into_iter().zip(defaults);
    let values = values.map(|((key, value), (_, default))| {
        let is_default = value == default;
        SettingText { key, value, is_default }
    });
    let match_name = match_name.map(|name| SettingText {
        key: "DIRECTX_GPU_MATCH_NAME",
        // Without quotes, blanks at its ends could not be seen.
        value: if name.trim() == name { name.to_owned() } else { format!("{name:?}") },
        is_default: name == LEGACY_MATCH_NAME,
    });
    let rules = rules.iter().map(|FileRule { rule, .. }| SettingText {
        key: "resources",
        value: rule.name.to_string(),
        is_default: false,
    });
    values.chain(match_name).chain(rules).collect()
}

/// What the names of adapters must contain for `legacy`.
fn matched_name(variables: &Variables<'_>) -> Result<Option<String>, ConfigError> {
    if variables.model != DriverModel::Legacy {
        return Ok(None);
    }
    let name = match_name(variables.environment)?;
    Ok(Some(name.unwrap_or_else(|| LEGACY_MATCH_NAME.to_owned())))
}

/// The name of a resource, and where it is set.
struct ConfiguredName<'a> {
    name: &'a ResourceName,
    /// The place in a file, if a file sets it.
    place: Option<&'a Place>,
    /// The variable, if one sets it.
    variable: Option<&'a str>,
}

/// The name of a resource, whose devices may be shared. `file` is the configuration file.
fn shared_name(
    settings: &Settings,
    file: Option<&str>,
    configured: &ConfiguredName<'_>,
    replicas: NonZeroU32,
) -> Result<ResourceName, ConfigError> {
    let Switch(is_renamed) = settings.rename_shared.value;
    let name = configured.name;
    if !is_renamed || replicas == NonZeroU32::MIN {
        return Ok(name.clone());
    }
    if name.is_shared() {
        return Err(renamed_twice(configured));
    }
    name.shared().map_err(|error| {
        let place = settings.rename_shared.place(file, "renameShared");
        ConfigError::at(place.as_ref(), error.to_string(), "choose a shorter resource name")
    })
}

/// An error about a name that already has the suffix of shared resources.
fn renamed_twice(ConfiguredName { name, place, variable }: &ConfiguredName<'_>) -> ConfigError {
    let what = format!(
        "the name `{name}` already ends with `.shared`; renameShared would make it `{name}.shared`"
    );
    let hint =
        "remove `.shared` from the name, because renameShared appends it, or remove renameShared";
    match variable {
        Some(variable) => ConfigError::Variable {
            name: (*variable).to_owned(),
            value: name.to_string(),
            what,
            hint,
        },
        None => ConfigError::at(*place, what, hint),
    }
}

/// Warnings about what the file sets for `legacy` without effect.
fn notices(model: DriverModel, file: Option<&str>, values: &SetValues) -> Vec<String> {
    let Some(file) = file.filter(|_| model == DriverModel::Legacy) else { return Vec::new() };
    let keys = values.keys().into_iter().filter(|key| IGNORED_BY_LEGACY.contains(key));
    keys.map(|key| format!("{file}: {key} has no effect with the driver model legacy")).collect()
}
