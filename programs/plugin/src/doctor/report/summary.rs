//! The versions and devices of a node. Nothing here is private: no paths, identifiers of
//! single devices, names of hosts or users.

use devices::{Criteria, Device, Health, HostSnapshot, Program, discover};
use serde::Serialize;

use crate::doctor::facts::MachineFacts;

const UNKNOWN: &str = "unknown";

/// The versions of a node's software.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Versions {
    program: &'static str,
    windows: String,
    build: String,
    hcs_schemas: String,
    containerd: String,
    kubelet: String,
}

impl Versions {
    pub(super) fn of(machine: Option<&MachineFacts>, read: Option<&HostSnapshot>) -> Versions {
        let host = machine.map(|machine| &machine.host).or(read.map(|read| &read.host));
        let software = machine.map(|machine| &machine.software);
        let known = |text: Option<String>| text.unwrap_or_else(|| UNKNOWN.to_owned());
        let product = host.and_then(|host| {
            let names = [host.product.clone(), host.display_version.clone()];
            let names: Vec<String> = names.into_iter().flatten().collect();
            (!names.is_empty()).then(|| names.join(" "))
        });
        let schemas = host.map(|host| {
            let schemas: Vec<String> = host.hcs_schemas.iter().map(ToString::to_string).collect();
            schemas.join(", ")
        });
        let containerd = software.and_then(|s| s.containerd.as_ref()).map(|c| &c.program);
        Versions {
            program: env!("CARGO_PKG_VERSION"),
            windows: known(product),
            build: known(host.and_then(|host| host.build).map(|build| build.to_string())),
            hcs_schemas: known(schemas.filter(|schemas| !schemas.is_empty())),
            containerd: version(containerd),
            kubelet: version(software.and_then(|s| s.kubelet.as_ref())),
        }
    }

    /// Each version with its name.
    pub(super) fn rows(&self) -> [(&'static str, &str); 6] {
        [
            ("directx-device-plugin", self.program),
            ("Windows", &self.windows),
            ("build", &self.build),
            ("HCS schemas", &self.hcs_schemas),
            ("containerd", &self.containerd),
            ("kubelet", &self.kubelet),
        ]
    }
}

/// The version of a program, without its path or its output.
fn version(program: Option<&Program>) -> String {
    match program {
        Some(Program::Found { version: Ok(version), .. }) => version.to_string(),
        Some(Program::NotFound(_)) => "not found".to_owned(),
        Some(Program::Found { version: Err(_), .. }) | None => UNKNOWN.to_owned(),
    }
}

/// One device of the node.
#[derive(Serialize)]
pub(super) struct DeviceSummary {
    pub(super) description: String,
    /// `10de:1eb8`.
    pub(super) hardware: String,
    pub(super) driver: String,
    pub(super) supports: &'static str,
    pub(super) health: String,
}

impl DeviceSummary {
    pub(super) fn all(host: &HostSnapshot) -> Vec<DeviceSummary> {
        discover(host, Criteria::ALL).devices.iter().map(DeviceSummary::of).collect()
    }

    fn of(device: &Device) -> DeviceSummary {
        let driver = device.driver_version.map(|version| version.to_string());
        DeviceSummary {
            description: device.description.clone(),
            hardware: format!(
                "{:04x}:{:04x}",
                device.hardware_id.vendor, device.hardware_id.device
            ),
            driver: driver.unwrap_or_else(|| UNKNOWN.to_owned()),
            supports: match (device.display, device.compute) {
                (true, true) => "display, compute",
                (true, false) => "display",
                (false, true) => "compute",
                (false, false) => "nothing",
            },
            health: match device.health {
                Health::Healthy => "healthy".to_owned(),
                Health::Unhealthy(reason) => format!("unhealthy: {reason}"),
            },
        }
    }
}
