//! Environment variables that name a container's devices. They are hints, not
//! isolation: Windows may expose more devices to the container than these.
//!
//! The values are computed once per device, so that an allocation only copies them.

use std::collections::BTreeMap;

use crate::printable::printable;

use crate::{Device, ResourceName, Vendor};

/// The variable with the LUIDs of a container's devices. The variable of a resource has
/// the name of the resource after it.
const VISIBLE_DEVICES: &str = "DIRECTX_VISIBLE_DEVICES";

/// The ends of the names of variables that also say which driver a container was made for.
const PNP_ID: &str = "_PNP_ID";
const VERSION: &str = "_DRIVER_VERSION";

/// The values of `DIRECTX_DEVICE_n_*` for one device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct DeviceHints {
    luid: String,
    values: Vec<(&'static str, String)>,
}

impl DeviceHints {
    pub(crate) fn of(device: &Device) -> DeviceHints {
        let location = device.location_path.as_ref().map(ToString::to_string);
        let version = device.driver_version.map(|version| version.to_string());
        let luid = device.luid.to_string();
        let all = [
            ("_LUID", Some(luid.clone())),
            ("_NAME", Some(device.description.clone())),
            ("_VENDOR", Some(device.vendor.to_string())),
            (PNP_ID, Some(device.id.to_string())),
            ("_LOCATION_PATH", location),
            (VERSION, version),
        ];
        // Values end at a NUL, and a line feed could forge a second variable in a listing.
        let known = |(name, value): (&'static str, Option<String>)| {
            Some((name, printable(&value?).into_owned()))
        };
        DeviceHints { luid, values: all.into_iter().filter_map(known).collect() }
    }
}

/// Adds the variables for a container's devices of `resource`, in their order.
///
/// A container can request several resources, and of variables with the same name the
/// kubelet keeps one. So the LUIDs are also in a variable that no other resource sets.
pub(crate) fn add<'a>(
    envs: &mut BTreeMap<String, String>,
    resource: &ResourceName,
    devices: impl Iterator<Item = (&'a Device, &'a DeviceHints)> + Clone,
) {
    let mut luids: Vec<&str> = Vec::new();
    for (n, (_, hints)) in devices.clone().enumerate() {
        luids.push(&hints.luid);
        let number = n.to_string();
        for (name, value) in &hints.values {
            envs.insert(["DIRECTX_DEVICE_", &number, name].concat(), value.clone());
        }
    }
    let luids = luids.join(",");
    envs.insert(visible_devices_variable(resource), luids.clone());
    envs.insert(VISIBLE_DEVICES.to_owned(), luids);
    if let Some(uuids) = cuda_devices(devices.map(|(device, _)| device)) {
        envs.insert("CUDA_VISIBLE_DEVICES".to_owned(), uuids);
    }
}

/// The variable of a resource, such as
/// `DIRECTX_VISIBLE_DEVICES_DIRECTX_MICROSOFT_COM_DISPLAY`. Two names can give the same variable.
#[must_use]
pub fn visible_devices_variable(resource: &ResourceName) -> String {
    let mut name = format!("{VISIBLE_DEVICES}_");
    let word = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    name.extend(resource.as_str().chars().map(word));
    name
}

/// The UUIDs of the container's NVIDIA devices, if there are any and every UUID is
/// known: CUDA hides each device that the list does not contain.
fn cuda_devices<'a>(devices: impl Iterator<Item = &'a Device>) -> Option<String> {
    let nvidia = devices.filter(|device| device.vendor == Vendor::Nvidia);
    let uuids: Option<Vec<&str>> = nvidia.map(|device| device.cuda_uuid.as_deref()).collect();
    uuids.filter(|uuids| !uuids.is_empty()).map(|uuids| uuids.join(","))
}
