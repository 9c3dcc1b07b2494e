//! A configuration file into settings, each with the line it is on.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use devices::{
    AdditionalMounts, AllocationPolicy, DeviceClass, DeviceScope, DriverModel, EnvironmentHints,
    FileName, MultiDevice, NumaTopology, ResourceName, RuntimeMounts, SharedRequests, Visibility,
};
use documents::{AnyCase, LenientFlag, Place, ReadError, Spanned};
use serde::Deserialize;

use crate::device_classes::{DeviceClassesFile, device_classes};
use crate::mounts::{AdditionalMountsFile, additional};
use crate::origin::{Origin, Sourced};
use crate::rules::{FileRule, RuleFile, file_rules};
use crate::values::{Choice, FileNameText, Multitenancy, RemovalGrace, ResourceNameText};
use crate::variables::{replicas, scope};

/// The keys of a configuration file, matched without case.
///
/// An empty value means unset: the earlier plugins read it so, and a list whose entries are
/// all commented out has one.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ConfigurationFile {
    multitenancy: Option<Spanned<Multitenancy>>,
    include_integrated: Option<Spanned<LenientFlag>>,
    include_detachable: Option<Spanned<LenientFlag>>,
    additional_mounts: Option<Spanned<AdditionalMountsFile>>,
    additional_mounts_wow64: Option<Spanned<AdditionalMountsFile>>,
    runtime_mounts: Option<Spanned<Choice<RuntimeMounts>>>,
    exclude_mounts: Option<Spanned<Vec<FileNameText>>>,
    allocation_policy: Option<Spanned<Choice<AllocationPolicy>>>,
    multi_device: Option<Spanned<Choice<MultiDevice>>>,
    device_class: Option<Spanned<DeviceClassesFile>>,
    shared_requests: Option<Spanned<Choice<SharedRequests>>>,
    rename_shared: Option<Spanned<LenientFlag>>,
    publish_numa: Option<Spanned<LenientFlag>>,
    removal_grace_seconds: Option<Spanned<RemovalGrace>>,
    environment_hints: Option<Spanned<LenientFlag>>,
    visibility: Option<Spanned<Choice<Visibility>>>,
    resource_name: Option<Spanned<ResourceNameText>>,
    resources: Option<Vec<Spanned<AnyCase<RuleFile>>>>,
}

/// Whether the name of a resource whose devices are shared gets the suffix `.shared`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum RenameShared {
    /// It does not.
    #[default]
    Keep,
    /// It does.
    Append,
}

/// What one file sets.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct FileSettings {
    pub(crate) multitenancy: Option<Sourced<std::num::NonZeroU32>>,
    pub(crate) include_integrated: Option<Sourced<DeviceScope>>,
    pub(crate) include_detachable: Option<Sourced<DeviceScope>>,
    pub(crate) additional: Option<Sourced<AdditionalMounts>>,
    pub(crate) additional_wow64: Option<Sourced<AdditionalMounts>>,
    pub(crate) runtime_mounts: Option<Sourced<RuntimeMounts>>,
    pub(crate) exclude_mounts: Option<Sourced<Vec<FileName>>>,
    pub(crate) allocation: Option<Sourced<AllocationPolicy>>,
    pub(crate) multi_device: Option<Sourced<MultiDevice>>,
    pub(crate) device_classes: Option<Sourced<BTreeMap<DriverModel, DeviceClass>>>,
    pub(crate) shared_requests: Option<Sourced<SharedRequests>>,
    pub(crate) rename_shared: Option<Sourced<RenameShared>>,
    pub(crate) numa: Option<Sourced<NumaTopology>>,
    pub(crate) removal_grace: Option<Sourced<Duration>>,
    pub(crate) hints: Option<Sourced<EnvironmentHints>>,
    pub(crate) visibility: Option<Sourced<Visibility>>,
    pub(crate) resource: Option<Sourced<ResourceName>>,
    pub(crate) rules: Vec<FileRule>,
}

/// Reads the bytes of the file `path`.
pub(crate) fn read_file(path: &Path, bytes: &[u8]) -> Result<FileSettings, ReadError> {
    let name = path.display().to_string();
    let AnyCase(file): AnyCase<ConfigurationFile> =
        documents::parse(&name, bytes).map_err(explain_removed_key)?;
    let source = Source { name: &name };
    Ok(FileSettings {
        multitenancy: source.of("multitenancy", file.multitenancy, |count| replicas(count.0)),
        include_integrated: source
            .of("includeIntegrated", file.include_integrated, |flag| scope(flag.0)),
        include_detachable: source
            .of("includeDetachable", file.include_detachable, |flag| scope(flag.0)),
        additional: source.read("additionalMounts", file.additional_mounts, additional)?,
        additional_wow64: source.read(
            "additionalMountsWow64",
            file.additional_mounts_wow64,
            additional,
        )?,
        runtime_mounts: source.of("runtimeMounts", file.runtime_mounts, |choice| choice.0),
        exclude_mounts: source.of("excludeMounts", file.exclude_mounts, |names| {
            names.into_iter().map(|name| name.0).collect()
        }),
        allocation: source.of("allocationPolicy", file.allocation_policy, |choice| choice.0),
        multi_device: source.of("multiDevice", file.multi_device, |choice| choice.0),
        device_classes: source.read("deviceClass", file.device_class, device_classes)?,
        shared_requests: source.of("sharedRequests", file.shared_requests, |choice| choice.0),
        rename_shared: source.of("renameShared", file.rename_shared, |LenientFlag(rename)| {
            if rename { RenameShared::Append } else { RenameShared::Keep }
        }),
        numa: source.of("publishNuma", file.publish_numa, |LenientFlag(publish)| {
            if publish { NumaTopology::Publish } else { NumaTopology::Withhold }
        }),
        removal_grace: source.of("removalGraceSeconds", file.removal_grace_seconds, |grace| {
            Duration::from_secs(grace.0)
        }),
        hints: source.of("environmentHints", file.environment_hints, |LenientFlag(set)| {
            if set { EnvironmentHints::Set } else { EnvironmentHints::Omit }
        }),
        visibility: source.of("visibility", file.visibility, |choice| choice.0),
        resource: source.of("resourceName", file.resource_name, |name| name.0),
        rules: file_rules(&name, file.resources.unwrap_or_default())?,
    })
}

/// Says what to do about a key of earlier versions.
fn explain_removed_key(error: ReadError) -> ReadError {
    if error.to_string().to_ascii_lowercase().ends_with("unknown key `ondriverchange`") {
        return error.with_hint(
            "onDriverChange was removed: delete the key, and cordon and drain a node before you \
             replace its driver",
        );
    }
    error
}

/// The file that values come from.
struct Source<'a> {
    name: &'a str,
}

impl Source<'_> {
    fn of<F, T>(
        &self,
        key: &str,
        value: Option<Spanned<F>>,
        convert: fn(F) -> T,
    ) -> Option<Sourced<T>> {
        let value = value?;
        let origin = Origin::File(Place::of(self.name, &value, key));
        Some(Sourced { value: convert(value.value), origin })
    }

    /// A value that is checked again as a whole.
    fn read<F, T>(
        &self,
        key: &str,
        value: Option<Spanned<F>>,
        convert: fn(F, &Place) -> Result<T, ReadError>,
    ) -> Result<Option<Sourced<T>>, ReadError> {
        let Some(value) = value else { return Ok(None) };
        let place = Place::of(self.name, &value, key);
        let converted = convert(value.value, &place)?;
        Ok(Some(Sourced { value: converted, origin: Origin::File(place) }))
    }
}
