//! A configuration file into settings, each with the line it stands on.

use std::num::NonZeroU32;
use std::path::Path;
use std::time::Duration;

use devices::{
    AdditionalMounts, AllocationPolicy, DeviceScope, EnvironmentHints, FileName, MultiDevice,
    NumaTopology, ResourceName, RuntimeMounts,
};
use strict_yaml::{Document, KeyCase, Kind, Mapping, Node, ReadError, decode};

use crate::origin::{Origin, Sourced};
use crate::rules::{FileRule, file_rules};
use crate::variables::{replicas, scope};
use crate::words::{ALLOCATION, MULTI_DEVICE, RUNTIME_MOUNTS};
use crate::{MAX_MULTITENANCY, MAX_REMOVAL_GRACE, mounts};

/// The keys of a configuration file, matched without case.
pub const KEYS: [&str; 14] = [
    "multitenancy",
    "includeIntegrated",
    "includeDetachable",
    "additionalMounts",
    "additionalMountsWow64",
    "runtimeMounts",
    "excludeMounts",
    "allocationPolicy",
    "multiDevice",
    "publishNuma",
    "removalGraceSeconds",
    "environmentHints",
    "resourceName",
    "resources",
];

/// The keys of a mount below `additionalMounts.<vendor>[]`.
pub const MOUNT_KEYS: [&str; 2] = ["source", "destination"];

/// What one file sets.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct FileSettings {
    pub(crate) multitenancy: Option<Sourced<NonZeroU32>>,
    pub(crate) include_integrated: Option<Sourced<DeviceScope>>,
    pub(crate) include_detachable: Option<Sourced<DeviceScope>>,
    pub(crate) additional: Option<Sourced<AdditionalMounts>>,
    pub(crate) additional_wow64: Option<Sourced<AdditionalMounts>>,
    pub(crate) runtime_mounts: Option<Sourced<RuntimeMounts>>,
    pub(crate) exclude_mounts: Option<Sourced<Vec<FileName>>>,
    pub(crate) allocation: Option<Sourced<AllocationPolicy>>,
    pub(crate) multi_device: Option<Sourced<MultiDevice>>,
    pub(crate) numa: Option<Sourced<NumaTopology>>,
    pub(crate) removal_grace: Option<Sourced<Duration>>,
    pub(crate) hints: Option<Sourced<EnvironmentHints>>,
    pub(crate) resource: Option<Sourced<ResourceName>>,
    pub(crate) rules: Vec<FileRule>,
}

/// Reads the bytes of the file `path`.
pub(crate) fn read_file(path: &Path, bytes: &[u8]) -> Result<FileSettings, ReadError> {
    let name = path.display().to_string();
    let document = Document::parse(&name, &decode(&name, bytes)?)?;
    let mut map = document.root().mapping(KeyCase::Ignored)?;
    let settings = FileSettings {
        multitenancy: take(&mut map, "multitenancy", multitenancy)?,
        include_integrated: take(&mut map, "includeIntegrated", |n| n.boolean().map(scope))?,
        include_detachable: take(&mut map, "includeDetachable", |n| n.boolean().map(scope))?,
        additional: take(&mut map, "additionalMounts", mounts::additional)?,
        additional_wow64: take(&mut map, "additionalMountsWow64", mounts::additional)?,
        runtime_mounts: take(&mut map, "runtimeMounts", |n| n.choice(&RUNTIME_MOUNTS))?,
        exclude_mounts: take(&mut map, "excludeMounts", mounts::excluded)?,
        allocation: take(&mut map, "allocationPolicy", allocation)?,
        multi_device: take(&mut map, "multiDevice", |n| n.choice(&MULTI_DEVICE))?,
        numa: take(&mut map, "publishNuma", numa)?,
        removal_grace: take(&mut map, "removalGraceSeconds", removal_grace)?,
        hints: take(&mut map, "environmentHints", hints)?,
        resource: take(&mut map, "resourceName", resource_name)?,
        rules: take(&mut map, "resources", file_rules)?.map(|r| r.value).unwrap_or_default(),
    };
    map.finish()?;
    Ok(settings)
}

/// The value of `key` and its line. A key with nothing after it is a key that is
/// not there: so it was for the earlier plugins, and a list whose entries are all
/// commented out looks like that.
pub(crate) fn take<'d, T>(
    map: &mut Mapping<'d>,
    key: &'static str,
    read: impl Fn(&Node<'d>) -> Result<T, ReadError>,
) -> Result<Option<Sourced<T>>, ReadError> {
    let Some(node) = map.take(key).filter(|node| node.kind() != Kind::Null) else {
        return Ok(None);
    };
    Ok(Some(Sourced { value: read(&node)?, origin: Origin::File(node.place()) }))
}

pub(crate) fn multitenancy(node: &Node<'_>) -> Result<NonZeroU32, ReadError> {
    node.integer(0..=MAX_MULTITENANCY).map(replicas)
}

pub(crate) fn allocation(node: &Node<'_>) -> Result<AllocationPolicy, ReadError> {
    node.choice(&ALLOCATION)
}

pub(crate) fn resource_name(node: &Node<'_>) -> Result<ResourceName, ReadError> {
    node.parsed()
        .map_err(|e| e.with_hint("write a domain, a slash and a name, such as example.com/gpu"))
}

fn numa(node: &Node<'_>) -> Result<NumaTopology, ReadError> {
    let publish = node.boolean()?;
    Ok(if publish { NumaTopology::Publish } else { NumaTopology::Withhold })
}

fn hints(node: &Node<'_>) -> Result<EnvironmentHints, ReadError> {
    let set = node.boolean()?;
    Ok(if set { EnvironmentHints::Set } else { EnvironmentHints::Omit })
}

fn removal_grace(node: &Node<'_>) -> Result<Duration, ReadError> {
    node.integer(0..=MAX_REMOVAL_GRACE).map(Duration::from_secs)
}
