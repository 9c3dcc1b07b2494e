//! The policy of one driver model, from its settings and rules.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use devices::{ContainerPolicy, DriverModel, ModelPolicy, ResourceName, Sharing};

use crate::ConfigError;
use crate::origin::{Effective, Origin, Sourced};
use crate::rules::FileRule;
use crate::settings::{FileSettings, Settings};
use crate::values::positive;
use crate::variables::{Variables, match_name};

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
    /// Where the resource's name comes from.
    pub(crate) resource_origin: Origin,
    pub(crate) effective: Vec<Effective>,
    /// Warnings about keys that have no effect.
    pub(crate) notices: Vec<String>,
}

pub(crate) fn model_settings(
    variables: &Variables<'_>,
    file: &FileSettings,
) -> Result<ModelSettings, ConfigError> {
    let model = variables.model;
    let settings = variables.values()?.or(file.values(model), model);
    let mut effective = settings.effective(model);
    let match_name = matched_name(variables)?;
    effective.extend(match_name.as_ref().map(|n| n.effective(model, "DIRECTX_GPU_MATCH_NAME")));
    let sharing = Sharing {
        replicas: positive(settings.multitenancy.value),
        allocation: settings.allocation_policy.value.0.0,
        shared_requests: settings.shared_requests.value.0.0,
    };
    let (mut rules, foreign_rules): (Vec<FileRule>, Vec<FileRule>) =
        file.rules.iter().cloned().partition(|rule| rule.is_for(model));
    for FileRule { rule, .. } in &mut rules {
        rule.name = shared_name(&settings, &rule.name, rule.replicas.unwrap_or(sharing.replicas))?;
    }
    effective.extend(rules.iter().map(|FileRule { rule, place }| Effective {
        model: Some(model),
        key: "resources",
        value: rule.name.to_string(),
        origin: Origin::File(place.clone()),
    }));
    Ok(ModelSettings {
        policy: ModelPolicy {
            model,
            resource: shared_name(&settings, &settings.resource_name.value.0, sharing.replicas)?,
            sharing,
            include_integrated: settings.include_integrated.value.0,
            include_detachable: settings.include_detachable.value.0,
            match_name: match_name.map(|name| name.value),
            rules: rules.iter().map(|r| r.rule.clone()).collect(),
            container: Arc::new(container(&settings)),
            publish_numa: settings.publish_numa.value.0,
            removal_grace: Duration::from_secs(settings.removal_grace.value.0),
            cordoned: settings.cordoned_devices.value.0.iter().map(|n| n.0.clone()).collect(),
            unhealthy_after_resets: settings.unhealthy_after_resets.value.0,
        },
        rules,
        foreign_rules,
        notices: notices(model, &effective),
        resource_origin: settings.resource_name.origin,
        effective,
    })
}

fn container(settings: &Settings) -> ContainerPolicy {
    let excluded = settings.exclude_mounts.value.0.iter();
    ContainerPolicy {
        runtime_mounts: settings.runtime_mounts.value.0.0,
        omit_wow64: !settings.runtime_files_wow64.value.0,
        exclude_mounts: excluded.map(|name| name.0.clone()).collect(),
        additional: settings.additional_mounts.value.0.clone(),
        additional_wow64: settings.additional_mounts_wow64.value.0.clone(),
        multi_device: settings.multi_device.value.0.0,
        device_class: settings.device_class.value.class(),
        omit_environment_hints: !settings.environment_hints.value.0,
        visibility: settings.visibility.value.0.0,
        cdi_devices: settings.cdi_devices.value.0,
    }
}

fn matched_name(variables: &Variables<'_>) -> Result<Option<Sourced<String>>, ConfigError> {
    if variables.model != DriverModel::Legacy {
        return Ok(None);
    }
    let name = match_name(variables.environment)?.unwrap_or_else(|| Sourced {
        value: LEGACY_MATCH_NAME.to_owned(),
        origin: Origin::Default,
    });
    Ok(Some(name))
}

/// The name of a resource, whose devices may be shared.
fn shared_name(
    settings: &Settings,
    name: &ResourceName,
    replicas: NonZeroU32,
) -> Result<ResourceName, ConfigError> {
    if !settings.rename_shared.value.0 || replicas == NonZeroU32::MIN {
        return Ok(name.clone());
    }
    name.shared().map_err(|error| {
        let what = format!("renameShared ({}): {error}", settings.rename_shared.origin);
        ConfigError::Conflict { what, hint: "choose a shorter resource name" }
    })
}

fn notices(model: DriverModel, effective: &[Effective]) -> Vec<String> {
    if model != DriverModel::Legacy {
        return Vec::new();
    }
    effective
        .iter()
        .filter(|value| IGNORED_BY_LEGACY.contains(&value.key))
        .filter(|value| matches!(value.origin, Origin::File(_)))
        .map(|Effective { origin, key, .. }| {
            format!("{origin}: {key} has no effect with the driver model legacy")
        })
        .collect()
}
