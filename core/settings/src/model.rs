//! One driver model's policy out of variables, file and defaults.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use devices::{
    AdditionalMounts, AllocationPolicy, ContainerPolicy, DeviceScope, DriverModel,
    EnvironmentHints, ModelPolicy, MultiDevice, NumaTopology, RuntimeMounts, SharedRequests,
    Sharing,
};

use crate::SettingsError;
use crate::file::FileSettings;
use crate::origin::{Effective, Origin, Sourced};
use crate::resources::default_resource;
use crate::rules::FileRule;
use crate::variables::{Variables, match_name};
use crate::words::Words;

/// What the plugin of 2019 looked for in adapters' names.
const LEGACY_MATCH_NAME: &str = "nvidia";
/// How long a device that went away stays listed, unless the file says otherwise.
const REMOVAL_GRACE: Duration = Duration::from_secs(60);

/// A driver model's policy, and where its parts come from.
pub(crate) struct ModelSettings {
    pub(crate) policy: ModelPolicy,
    /// The rules of the policy with their places, in the same order.
    pub(crate) rules: Vec<FileRule>,
    /// The file's rules for other driver models.
    pub(crate) foreign_rules: Vec<FileRule>,
    /// Where the resource's name comes from.
    pub(crate) resource_origin: Origin,
    pub(crate) effective: Vec<Effective>,
    /// What has no effect.
    pub(crate) notices: Vec<String>,
}

pub(crate) fn model_settings(
    variables: &Variables<'_>,
    file: &FileSettings,
) -> Result<ModelSettings, SettingsError> {
    let model = variables.model;
    let mut trail = Trail { model, effective: Vec::new() };
    let resource = [variables.resource_name()?, file.resource.clone()];
    let resource = trail.pick("resourceName", resource, default_resource(model));
    let sharing = sharing(&mut trail, variables, file)?;
    let (integrated, detachable) = scopes(&mut trail, variables, file)?;
    let grace = [file.removal_grace.clone()];
    let removal_grace = trail.value("removalGraceSeconds", grace, REMOVAL_GRACE);
    let numa = trail.value("publishNuma", [file.numa.clone()], NumaTopology::default());
    let container = Arc::new(container(&mut trail, variables, file)?);
    let match_name = matched_name(&mut trail, variables)?;
    let (rules, foreign_rules): (Vec<FileRule>, Vec<FileRule>) =
        file.rules.iter().cloned().partition(|rule| rule.is_for(model));
    trail.rules(&rules);
    Ok(ModelSettings {
        policy: ModelPolicy {
            model,
            resource: resource.value,
            sharing,
            integrated,
            detachable,
            match_name,
            rules: rules.iter().map(|r| r.rule.clone()).collect(),
            container,
            numa,
            removal_grace,
        },
        rules,
        foreign_rules,
        resource_origin: resource.origin,
        effective: trail.effective,
        notices: notices(model, file),
    })
}

fn sharing(
    trail: &mut Trail,
    variables: &Variables<'_>,
    file: &FileSettings,
) -> Result<Sharing, SettingsError> {
    let replicas = [variables.multitenancy()?, file.multitenancy.clone()];
    let allocation = [file.allocation.clone()];
    Ok(Sharing {
        replicas: trail.value("multitenancy", replicas, NonZeroU32::MIN),
        allocation: trail.value("allocationPolicy", allocation, AllocationPolicy::default()),
        shared_requests: SharedRequests::default(),
    })
}

/// Integrated and detachable adapters. The plugin of 2019 took every adapter whose
/// name matched.
fn scopes(
    trail: &mut Trail,
    variables: &Variables<'_>,
    file: &FileSettings,
) -> Result<(DeviceScope, DeviceScope), SettingsError> {
    let default = match variables.model {
        DriverModel::Wddm | DriverModel::Mcdm => DeviceScope::Exclude,
        DriverModel::Legacy => DeviceScope::Include,
    };
    let integrated = [variables.include_integrated()?, file.include_integrated.clone()];
    let detachable = [variables.include_detachable()?, file.include_detachable.clone()];
    Ok((
        trail.value("includeIntegrated", integrated, default),
        trail.value("includeDetachable", detachable, default),
    ))
}

fn container(
    trail: &mut Trail,
    variables: &Variables<'_>,
    file: &FileSettings,
) -> Result<ContainerPolicy, SettingsError> {
    let runtime_mounts = [variables.runtime_mounts()?, file.runtime_mounts.clone()];
    let none = AdditionalMounts::new;
    Ok(ContainerPolicy {
        runtime_mounts: trail.value("runtimeMounts", runtime_mounts, RuntimeMounts::default()),
        exclude_mounts: trail.value("excludeMounts", [file.exclude_mounts.clone()], Vec::new()),
        additional: trail.value("additionalMounts", [file.additional.clone()], none()),
        additional_wow64: trail.value(
            "additionalMountsWow64",
            [file.additional_wow64.clone()],
            none(),
        ),
        multi_device: trail.value(
            "multiDevice",
            [file.multi_device.clone()],
            MultiDevice::default(),
        ),
        environment_hints: trail.value(
            "environmentHints",
            [file.hints.clone()],
            EnvironmentHints::default(),
        ),
    })
}

fn matched_name(
    trail: &mut Trail,
    variables: &Variables<'_>,
) -> Result<Option<String>, SettingsError> {
    match variables.model {
        DriverModel::Wddm | DriverModel::Mcdm => Ok(None),
        DriverModel::Legacy => {
            let name = [match_name(variables.around)?];
            let default = LEGACY_MATCH_NAME.to_owned();
            Ok(Some(trail.value("DIRECTX_GPU_MATCH_NAME", name, default)))
        }
    }
}

/// Keys that a file sets and `legacy` does not heed: it gives containers the device
/// class and no files, as the plugin of 2019 did.
fn notices(model: DriverModel, file: &FileSettings) -> Vec<String> {
    fn origin<T>(setting: Option<&Sourced<T>>) -> Option<&Origin> {
        setting.map(|setting| &setting.origin)
    }
    let unheeded = match model {
        DriverModel::Wddm | DriverModel::Mcdm => Vec::new(),
        DriverModel::Legacy => vec![
            ("runtimeMounts", origin(file.runtime_mounts.as_ref())),
            ("excludeMounts", origin(file.exclude_mounts.as_ref())),
            ("additionalMounts", origin(file.additional.as_ref())),
            ("additionalMountsWow64", origin(file.additional_wow64.as_ref())),
            ("multiDevice", origin(file.multi_device.as_ref())),
        ],
    };
    let told = |(key, origin): (&str, Option<&Origin>)| {
        Some(format!("{}: {key} has no effect with the driver model legacy", origin?))
    };
    unheeded.into_iter().filter_map(told).collect()
}

/// Picks values and remembers where each came from.
struct Trail {
    model: DriverModel,
    effective: Vec<Effective>,
}

impl Trail {
    /// The first of `set` that is there, else the default.
    fn pick<T: Words, const N: usize>(
        &mut self,
        key: &'static str,
        set: [Option<Sourced<T>>; N],
        default: T,
    ) -> Sourced<T> {
        let default = Sourced { value: default, origin: Origin::Default };
        let picked = set.into_iter().flatten().next().unwrap_or(default);
        self.effective.push(Effective {
            model: Some(self.model),
            key,
            value: picked.value.words(),
            origin: picked.origin.clone(),
        });
        picked
    }

    fn value<T: Words, const N: usize>(
        &mut self,
        key: &'static str,
        set: [Option<Sourced<T>>; N],
        default: T,
    ) -> T {
        self.pick(key, set, default).value
    }

    fn rules(&mut self, rules: &[FileRule]) {
        self.effective.extend(rules.iter().map(|rule| Effective {
            model: Some(self.model),
            key: "resources",
            value: rule.rule.name.words(),
            origin: Origin::File(rule.place.clone()),
        }));
    }
}
