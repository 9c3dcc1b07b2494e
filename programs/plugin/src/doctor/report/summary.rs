//! The versions and devices of a node. Nothing here is private: no paths, identifiers of
//! single devices, names of hosts or users.

use devices::{Criteria, Device, Health, HostSnapshot, Program, discover};
use serde::Serialize;

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
    pub(super) fn of(HostSnapshot { host, node, .. }: &HostSnapshot) -> Versions {
        let schemas: Vec<String> = host.hcs_schemas.iter().map(ToString::to_string).collect();
        let product = [host.product.clone(), host.display_version.clone()];
        let product: Vec<String> = product.into_iter().flatten().collect();
        Versions {
            program: env!("CARGO_PKG_VERSION"),
            windows: known(product.join(" ")),
            build: known(host.build.map(|build| build.to_string()).unwrap_or_default()),
            hcs_schemas: known(schemas.join(", ")),
            containerd: version(node.containerd.as_ref().map(|containerd| &containerd.program)),
            kubelet: version(node.kubelet.as_ref()),
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

fn known(text: String) -> String {
    if text.is_empty() { UNKNOWN.to_owned() } else { text }
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
        DeviceSummary {
            description: device.description.clone(),
            hardware: format!(
                "{:04x}:{:04x}",
                device.hardware_id.vendor, device.hardware_id.device
            ),
            driver: known(device.driver_version.map(|v| v.to_string()).unwrap_or_default()),
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
