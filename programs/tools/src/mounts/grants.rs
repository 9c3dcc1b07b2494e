//! What the chosen devices give a container. The decisions are the device plugin's
//! own: this asks [`devices::plan`], once for each device and once for all of them.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use devices::{
    Ailment, AllocationPolicy, Catalog, ContainerPolicy, Device, DeviceGrant, DeviceScope,
    DeviceSet, DriverModel, Fate, Health, HostSnapshot, ModelPolicy, Moment, MountPlan,
    NumaTopology, Offer, PlanError, PlanWarning, Policy, ResourceDevices, ResourceNameError,
    RuntimeMounts, Sharing, SkipReason, SlotId, plan,
};

use super::choice::Choice;

/// Everything a container is given, before a front end puts it into words.
#[derive(Debug, Default)]
pub(super) struct Grants {
    /// Each device of its own, or the class once.
    pub(super) devices: Vec<DeviceGrant>,
    /// The files of all devices.
    pub(super) mounts: MountPlan,
    /// Which devices are the container's own.
    pub(super) envs: BTreeMap<String, String>,
    /// What somebody should know.
    pub(super) warnings: Vec<String>,
    /// Devices that are not offered to containers in the first place.
    pub(super) left_out: Vec<String>,
}

/// Why the chosen devices cannot be given.
#[derive(Debug, thiserror::Error)]
pub(super) enum GrantError {
    /// The plugin would not offer it either.
    #[error("device {0} ({1}) cannot be given to a container: {2}")]
    NotOffered(usize, String, SkipReason),
    /// The plugin lists it as unhealthy.
    #[error("device {0} ({1}) is unhealthy: {2}")]
    Unhealthy(usize, String, Ailment),
    /// None of several; why, a line a device.
    #[error("no device of this host can be given to a container")]
    None(Vec<String>),
    /// The plugin would refuse it.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The resource that stands for all devices.
    #[error(transparent)]
    Name(#[from] ResourceNameError),
}

/// Plans a container with the devices numbered `chosen` among `devices`.
pub(super) fn grants(
    snapshot: &HostSnapshot,
    devices: &[Device],
    choice: &Choice,
    chosen: &[usize],
    runtime_mounts: RuntimeMounts,
) -> Result<Grants, GrantError> {
    let offer = Catalog::new(policy(runtime_mounts)?).offer(snapshot);
    let mut grants = Grants::default();
    let mut slots: Vec<String> = Vec::new();
    for number in chosen {
        let device = &devices[*number];
        match slot_of(device, *number, &offer) {
            Ok(slot) => slots.push(slot),
            // Who asks for all devices asks for those that there are.
            Err(GrantError::NotOffered(_, _, why)) if choice.all => {
                grants.left_out.push(left_out(device, &why));
            }
            Err(GrantError::Unhealthy(_, _, why)) if choice.all => {
                grants.warnings.push(left_out(device, &why));
            }
            Err(error) => return Err(error),
        }
    }
    let set = DeviceSet::next(None, offer, Moment::default());
    let Some(resource) = set.resources.first().filter(|_| !slots.is_empty()) else {
        return Err(GrantError::None([grants.left_out, grants.warnings].concat()));
    };
    fill(&mut grants, resource, snapshot, &slots)?;
    Ok(grants)
}

/// The one slot of a device, if it can be given.
fn slot_of(device: &Device, number: usize, offer: &Offer) -> Result<String, GrantError> {
    let name = || device.description.clone();
    if let Some(skipped) = offer.skipped.iter().find(|skipped| skipped.luid == device.luid) {
        return Err(GrantError::NotOffered(number, name(), skipped.reason.clone()));
    }
    match device.health {
        Health::Unhealthy(why) => Err(GrantError::Unhealthy(number, name(), why)),
        Health::Healthy => Ok(SlotId { device: device.id.clone(), replica: 0 }.to_string()),
    }
}

fn left_out(device: &Device, reason: &dyn std::fmt::Display) -> String {
    format!("{} (LUID {}) is left out: {reason}", device.description, device.luid)
}

/// Outside the kubelet a container may have several devices, so each is planned for
/// itself; the files, whose destinations they share, are planned for all.
fn fill(
    grants: &mut Grants,
    resource: &ResourceDevices,
    snapshot: &HostSnapshot,
    slots: &[String],
) -> Result<(), PlanError> {
    let exists = |path: &str| std::path::Path::new(path).is_file();
    for slot in slots {
        // Nothing but the device is of interest here, so the disk is not asked.
        let one = plan(resource, [slot.as_str()], &snapshot.host, &|_| false)?;
        if !grants.devices.contains(&one.device) {
            grants.devices.push(one.device);
            grants.warnings.extend(one.warnings.iter().map(PlanWarning::to_string));
        }
    }
    let all = plan(resource, slots.iter().map(String::as_str), &snapshot.host, &exists)?;
    grants.warnings.extend(collisions(&all.mounts));
    grants.mounts = all.mounts;
    grants.envs = all.envs;
    Ok(())
}

fn collisions(mounts: &MountPlan) -> impl Iterator<Item = String> {
    mounts.files.iter().filter_map(|file| match &file.fate {
        Fate::Shadowed { by } => Some(format!(
            "{} is not mounted: {} already has its place in the container",
            file.file.host_path, by.host_path
        )),
        _ => None,
    })
}

/// Every device that the plugin can offer, in one resource.
fn policy(runtime_mounts: RuntimeMounts) -> Result<Policy, ResourceNameError> {
    let container = Arc::new(ContainerPolicy { runtime_mounts, ..ContainerPolicy::default() });
    let resource: devices::ResourceName = "local.invalid/devices".parse()?;
    let model = |model| ModelPolicy {
        model,
        resource: resource.clone(),
        sharing: Sharing { replicas: NonZeroU32::MIN, allocation: AllocationPolicy::Distributed },
        integrated: DeviceScope::Include,
        detachable: DeviceScope::Include,
        match_name: None,
        rules: Arc::new([]),
        container: container.clone(),
        numa: NumaTopology::Withhold,
        removal_grace: Duration::ZERO,
    };
    Ok(Policy { models: vec![model(DriverModel::Wddm), model(DriverModel::Mcdm)] })
}
