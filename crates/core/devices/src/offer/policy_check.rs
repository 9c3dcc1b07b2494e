//! Whether the policy of its driver model advertises a device.

use std::collections::HashMap;

use host::{HostSnapshot, LocationPath, PnpId, fold_case};

use crate::select::not_advertised::check_scope;
use crate::{Device, DriverModel, ModelPolicy, NotAdvertisedReason};

/// Checks whether the policy of its driver model advertises the device.
pub(crate) fn check_policy(
    device: &Device,
    policy: &ModelPolicy,
    locations: &DevicesByLocation<'_>,
) -> Result<(), NotAdvertisedReason> {
    check_scope(device, policy.include_integrated, policy.include_detachable)?;
    match (&policy.match_name, policy.model) {
        (Some(name), _) if !fold_case(&device.description).contains(&fold_case(name)) => {
            Err(NotAdvertisedReason::Name(name.clone()))
        }
        (_, DriverModel::Wddm | DriverModel::Mcdm) => check_location_path(device, locations),
        (_, DriverModel::Legacy) => Ok(()),
    }
}

/// The IDs of the GPUs and accelerators at each location path.
pub(crate) type DevicesByLocation<'a> = HashMap<&'a LocationPath, Vec<&'a PnpId>>;

/// The devices of a host for [`check_policy`].
pub(crate) fn devices_by_location(snapshot: &HostSnapshot) -> DevicesByLocation<'_> {
    let mut devices = DevicesByLocation::new();
    let adapters = snapshot.adapters.iter().filter(|adapter| adapter.is_gpu_or_accelerator());
    for pnp in adapters.filter_map(|adapter| adapter.pnp.as_ref()) {
        if let Some(path) = pnp.location_paths.first() {
            devices.entry(path).or_default().push(&pnp.id);
        }
    }
    devices
}

/// Checks that the device has a location path, and that no other device of the host has the same.
fn check_location_path(
    device: &Device,
    locations: &DevicesByLocation<'_>,
) -> Result<(), NotAdvertisedReason> {
    let path = device.location_path.as_ref().ok_or(NotAdvertisedReason::NoLocationPath)?;
    let devices = locations.get(path).into_iter().flatten();
    match devices.copied().find(|id| **id != device.id) {
        Some(other) => Err(NotAdvertisedReason::SameLocationPath {
            path: path.to_string(),
            other: other.to_string(),
        }),
        None => Ok(()),
    }
}
