//! The policy of one driver model, from variables, file and defaults.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use devices::{
    AdditionalMounts, AllocationPolicy, ContainerPolicy, DeviceClass, DeviceScope, DriverModel,
    EnvironmentHints, ModelPolicy, MultiDevice, NumaTopology, ResourceName, RuntimeMounts,
    SharedRequests, Sharing, Visibility,
};

use crate::SettingsError;
use crate::display::ValueText;
use crate::file::{FileSettings, RenameShared};
use crate::origin::{Effective, Origin, Sourced};
use crate::rules::FileRule;
use crate::variables::{Variables, match_name};

/// The part of the adapter name that the plugin of 2019 required by default.
const LEGACY_MATCH_NAME: &str = "nvidia";
/// The default time that a device which disappeared stays advertised as unhealthy.
const REMOVAL_GRACE: Duration = Duration::from_secs(60);

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
) -> Result<ModelSettings, SettingsError> {
    let model = variables.model;
    let mut selection = Selection { model, effective: Vec::new() };
    let resource = [variables.resource_name()?, file.resource.clone()];
    let resource = selection.pick("resourceName", resource, default_resource(model));
    let sharing = sharing(&mut selection, variables, file)?;
    let (integrated, detachable) = scopes(&mut selection, variables, file)?;
    let grace = [file.removal_grace.clone()];
    let removal_grace = selection.value("removalGraceSeconds", grace, REMOVAL_GRACE);
    let numa = selection.value("publishNuma", [file.numa.clone()], NumaTopology::default());
    let container = Arc::new(container(&mut selection, variables, file)?);
    let match_name = matched_name(&mut selection, variables)?;
    let (rules, foreign_rules): (Vec<FileRule>, Vec<FileRule>) =
        file.rules.iter().cloned().partition(|rule| rule.is_for(model));
    let rename = [file.rename_shared.clone()];
    let rename = selection.pick("renameShared", rename, RenameShared::default());
    let names = SharedNames { rename: rename.value, origin: rename.origin };
    let rules = names.of_rules(rules, sharing)?;
    selection.rules(&rules);
    Ok(ModelSettings {
        policy: ModelPolicy {
            model,
            resource: names.of(resource.value, sharing.replicas)?,
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
        effective: selection.effective,
        notices: notices(model, file),
    })
}

/// The default resource name of a driver model, as in the earlier plugins.
fn default_resource(model: DriverModel) -> ResourceName {
    let name = match model {
        DriverModel::Wddm => "directx.microsoft.com/display",
        DriverModel::Mcdm => "directx.microsoft.com/compute",
        DriverModel::Legacy => "microsoft.com/directx",
    };
    name.parse().expect("the default names are extended resource names")
}

fn sharing(
    selection: &mut Selection,
    variables: &Variables<'_>,
    file: &FileSettings,
) -> Result<Sharing, SettingsError> {
    let replicas = [variables.multitenancy()?, file.multitenancy.clone()];
    let allocation = [file.allocation.clone()];
    let shared_requests = [file.shared_requests.clone()];
    Ok(Sharing {
        replicas: selection.value("multitenancy", replicas, NonZeroU32::MIN),
        allocation: selection.value("allocationPolicy", allocation, AllocationPolicy::default()),
        shared_requests: selection.value(
            "sharedRequests",
            shared_requests,
            SharedRequests::default(),
        ),
    })
}

/// Whether integrated and detachable adapters are advertised. The plugin of 2019 advertised
/// every adapter whose name matched.
fn scopes(
    selection: &mut Selection,
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
        selection.value("includeIntegrated", integrated, default),
        selection.value("includeDetachable", detachable, default),
    ))
}

fn container(
    selection: &mut Selection,
    variables: &Variables<'_>,
    file: &FileSettings,
) -> Result<ContainerPolicy, SettingsError> {
    let runtime_mounts = [variables.runtime_mounts()?, file.runtime_mounts.clone()];
    let none = AdditionalMounts::new;
    Ok(ContainerPolicy {
        runtime_mounts: selection.value("runtimeMounts", runtime_mounts, RuntimeMounts::default()),
        exclude_mounts: selection.value("excludeMounts", [file.exclude_mounts.clone()], Vec::new()),
        additional: selection.value("additionalMounts", [file.additional.clone()], none()),
        additional_wow64: selection.value(
            "additionalMountsWow64",
            [file.additional_wow64.clone()],
            none(),
        ),
        multi_device: selection.value(
            "multiDevice",
            [file.multi_device.clone()],
            MultiDevice::default(),
        ),
        device_class: device_class(selection, file),
        environment_hints: selection.value(
            "environmentHints",
            [file.hints.clone()],
            EnvironmentHints::default(),
        ),
        visibility: selection.value("visibility", [file.visibility.clone()], Visibility::default()),
    })
}

fn device_class(selection: &mut Selection, file: &FileSettings) -> Option<DeviceClass> {
    let model = selection.model;
    let set = file.device_classes.as_ref().and_then(|classes| {
        let class = classes.value.get(&model)?;
        Some(Sourced { value: Some(*class), origin: classes.origin.clone() })
    });
    selection.value("deviceClass", [set], DeviceClass::default_for(model))
}

fn matched_name(
    selection: &mut Selection,
    variables: &Variables<'_>,
) -> Result<Option<String>, SettingsError> {
    match variables.model {
        DriverModel::Wddm | DriverModel::Mcdm => Ok(None),
        DriverModel::Legacy => {
            let name = [match_name(variables.environment)?];
            let default = LEGACY_MATCH_NAME.to_owned();
            Ok(Some(selection.value("DIRECTX_GPU_MATCH_NAME", name, default)))
        }
    }
}

/// Keys that a file sets and `legacy` ignores: it allocates the device class and mounts no
/// files, as the plugin of 2019 did.
fn notices(model: DriverModel, file: &FileSettings) -> Vec<String> {
    fn origin<T>(setting: Option<&Sourced<T>>) -> Option<&Origin> {
        setting.map(|setting| &setting.origin)
    }
    let ignored = match model {
        DriverModel::Wddm | DriverModel::Mcdm => Vec::new(),
        DriverModel::Legacy => vec![
            ("runtimeMounts", origin(file.runtime_mounts.as_ref())),
            ("excludeMounts", origin(file.exclude_mounts.as_ref())),
            ("additionalMounts", origin(file.additional.as_ref())),
            ("additionalMountsWow64", origin(file.additional_wow64.as_ref())),
            ("multiDevice", origin(file.multi_device.as_ref())),
        ],
    };
    let warning = |(key, origin): (&str, Option<&Origin>)| {
        Some(format!("{}: {key} has no effect with the driver model legacy", origin?))
    };
    ignored.into_iter().filter_map(warning).collect()
}

/// The names of resources whose devices are shared.
struct SharedNames {
    rename: RenameShared,
    origin: Origin,
}

impl SharedNames {
    fn of_rules(
        &self,
        rules: Vec<FileRule>,
        sharing: Sharing,
    ) -> Result<Vec<FileRule>, SettingsError> {
        let renamed = |mut rule: FileRule| {
            let replicas = rule.rule.replicas.unwrap_or(sharing.replicas);
            rule.rule.name = self.of(rule.rule.name, replicas)?;
            Ok(rule)
        };
        rules.into_iter().map(renamed).collect()
    }

    fn of(&self, name: ResourceName, replicas: NonZeroU32) -> Result<ResourceName, SettingsError> {
        if self.rename == RenameShared::Keep || replicas == NonZeroU32::MIN {
            return Ok(name);
        }
        name.shared().map_err(|error| {
            let what = format!("renameShared ({}): {error}", self.origin);
            SettingsError::Conflict { what, hint: "choose a shorter resource name" }
        })
    }
}

/// Selects values and records where each comes from.
struct Selection {
    model: DriverModel,
    effective: Vec<Effective>,
}

impl Selection {
    /// The first value that is set, or the default.
    fn pick<T: ValueText, const N: usize>(
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
            value: picked.value.text(),
            origin: picked.origin.clone(),
        });
        picked
    }

    fn value<T: ValueText, const N: usize>(
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
            value: rule.rule.name.text(),
            origin: Origin::File(rule.place.clone()),
        }));
    }
}
