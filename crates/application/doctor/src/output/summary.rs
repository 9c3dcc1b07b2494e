//! The versions and devices of a node. Nothing here is private: no paths, identifiers of
//! single devices, names of hosts or users.

use command_line::device_summary::{health, supports};
use devices::{Criteria, Device, discover};
use host::{HostSnapshot, Program};

/// The versions of a node's software: its name in JSON, its name for people, and the version.
pub(super) fn versions(snapshot: &HostSnapshot) -> [(&'static str, &'static str, String); 6] {
    let HostSnapshot { host, node, .. } = snapshot;
    let product: Vec<&str> =
        [&host.product, &host.display_version].into_iter().flatten().map(String::as_str).collect();
    let schemas: Vec<String> = host.hcs_schemas.iter().map(ToString::to_string).collect();
    let containerd = node.containerd.as_ref().map(|containerd| &containerd.program);
    [
        ("program", "directx-device-plugin", devices::VERSION.to_owned()),
        ("windows", "Windows", known(product.join(" "))),
        ("build", "build", known(host.build.map_or_else(String::new, |build| build.to_string()))),
        ("hcsSchemas", "HCS schemas", known(schemas.join(", "))),
        ("containerd", "containerd", version(containerd)),
        ("kubelet", "kubelet", version(node.kubelet.as_ref())),
    ]
}

/// The version of a program, without its path or its output.
fn version(program: Option<&Program>) -> String {
    match program {
        Some(Program::Found { version: Ok(version), .. }) => version.to_string(),
        Some(Program::NotFound(_)) => "not found".to_owned(),
        Some(Program::Found { version: Err(_), .. }) | None => known(String::new()),
    }
}

fn known(text: String) -> String {
    if text.is_empty() { "unknown".to_owned() } else { text }
}

/// What is known of a device.
pub(super) const DEVICE: [&str; 5] = ["description", "hardware", "driver", "supports", "health"];

/// Each device of the host, with the values of [`DEVICE`].
pub(super) fn devices(host: &HostSnapshot) -> Vec<[String; 5]> {
    discover(host, Criteria::ALL).devices.iter().map(device).collect()
}

fn device(device: &Device) -> [String; 5] {
    [
        device.description.clone(),
        format!("{:04x}:{:04x}", device.hardware_id.vendor, device.hardware_id.device),
        known(device.driver_version.map_or_else(String::new, |version| version.to_string())),
        supports(device),
        health(device),
    ]
}
