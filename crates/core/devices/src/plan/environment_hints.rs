//! Environment variables that name a container's devices. They are hints, not
//! isolation: Windows may expose more devices to the container than these.

use std::collections::BTreeMap;
use std::sync::Arc;

use host::Vendor;
use host::printable::printable;

use crate::{Device, ResourceName};

/// The variable with the LUIDs of a container's devices. The variable of a resource has
/// the name of the resource after it.
const VISIBLE_DEVICES: &str = "DIRECTX_VISIBLE_DEVICES";

/// Adds the variables for a container's devices of `resource`, in their order.
///
/// A container can request several resources, and of variables with the same name the
/// kubelet keeps one. So the LUIDs are also in a variable that no other resource sets.
pub(crate) fn add(
    envs: &mut BTreeMap<String, String>,
    resource: &ResourceName,
    devices: &[Arc<Device>],
) {
    for (n, device) in devices.iter().enumerate() {
        let location = device.location_path.as_ref().map(ToString::to_string);
        let version = device.driver_version.map(|version| version.to_string());
        for (name, value) in [
            ("LUID", Some(device.luid.to_string())),
            ("NAME", Some(device.description.clone())),
            ("VENDOR", Some(device.vendor.to_string())),
            ("PNP_ID", Some(device.id.to_string())),
            ("LOCATION_PATH", location),
            ("DRIVER_VERSION", version),
        ] {
            // Values end at a NUL, and a line feed could forge a second variable in a listing.
            let value = value.map(|value| printable(&value).into_owned());
            envs.extend(value.map(|value| (format!("DIRECTX_DEVICE_{n}_{name}"), value)));
        }
    }
    let luids = devices.iter().map(|device| device.luid.to_string()).collect::<Vec<_>>().join(",");
    envs.insert(visible_devices_variable(resource), luids.clone());
    envs.insert(VISIBLE_DEVICES.to_owned(), luids);
    if let Some(uuids) = cuda_devices(devices) {
        envs.insert("CUDA_VISIBLE_DEVICES".to_owned(), uuids);
    }
}

/// The variable of a resource, such as
/// `DIRECTX_VISIBLE_DEVICES_DIRECTX_MICROSOFT_COM_DISPLAY`. Two names can give the same variable.
#[must_use]
pub fn visible_devices_variable(resource: &ResourceName) -> String {
    let suffix = resource.as_str().replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    format!("{VISIBLE_DEVICES}_{}", suffix.to_ascii_uppercase())
}

/// The UUIDs of the container's NVIDIA devices, if there are any and every UUID is
/// known: CUDA hides each device that the list does not contain.
fn cuda_devices(devices: &[Arc<Device>]) -> Option<String> {
    let nvidia = devices.iter().filter(|device| device.vendor == Vendor::Nvidia);
    let uuids: Option<Vec<&str>> = nvidia.map(|device| device.nvidia.uuid.as_deref()).collect();
    uuids.filter(|uuids| !uuids.is_empty()).map(|uuids| uuids.join(","))
}
