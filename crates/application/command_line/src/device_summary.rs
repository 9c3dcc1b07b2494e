//! Properties of a device, for people.

use devices::{Device, Health};

/// The interfaces of a device, for people.
#[must_use]
pub fn supports(device: &Device) -> String {
    let functions = [(device.display, "display"), (device.compute, "compute")];
    let supported = functions.iter().filter(|(yes, _)| *yes).map(|(_, name)| *name);
    supported.collect::<Vec<_>>().join(", ")
}

/// The health of a device, for people.
#[must_use]
pub fn health(device: &Device) -> String {
    match device.health {
        Health::Healthy => "healthy".to_owned(),
        Health::Unhealthy(reason) => format!("unhealthy: {reason}"),
    }
}
