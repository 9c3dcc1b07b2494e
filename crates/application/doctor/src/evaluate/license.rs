//! The licenses of NVIDIA's drivers.

use devices::Device;
use host::{License, Vendor};

use super::causes;
use crate::facts::NodeFacts;
use crate::finding::{Finding, FindingId, NOT_IN_INVENTORY, Subject, UNREAD};

/// How a driver gets its license.
const FIX: &str = "copy the client configuration token to %SystemDrive%\\Program Files\\NVIDIA \
    Corporation\\vGPU Licensing\\ClientConfigToken, restart the service \
    NVDisplay.ContainerLocalSystem, and check that the clock is right and that the host reaches \
    the license server on port 443; a virtual machine gets its license some minutes after it has \
    started, and some clouds provide it with their driver";

/// Whether the driver has the license that it needs for each device.
pub(super) fn license(devices: &[Device], facts: &NodeFacts) -> Finding {
    if facts.unread.is_some() {
        return Subject::License.skipped(UNREAD);
    }
    let nvml = facts.snapshot.node.nvml.as_ref();
    let mut devices: Vec<&Device> =
        devices.iter().filter(|device| device.vendor == Vendor::Nvidia).collect();
    if devices.is_empty() {
        // They are in TCC mode, or only the graphics kernel lists them.
        let others = causes::gpus(nvml);
        if !others.is_empty() {
            let named = causes::named(others.iter());
            return Subject::License
                .skipped(format!("Windows lists no DirectX device for {named}"));
        }
        return Subject::License.ok("not needed: the host lists no NVIDIA device");
    }
    if devices.iter().any(|device| device.nvidia.is_unlicensed()) {
        devices.retain(|device| device.nvidia.is_unlicensed());
        let named: Vec<String> = devices
            .iter()
            .map(|device| format!("{} ({})", device.description, device.id))
            .collect();
        let what = format!(
            "the driver has no license for {}: after some minutes, pods get three frames per second \
             and no CUDA",
            named.join(", ")
        );
        return FindingId::Unlicensed.warning(what, FIX);
    }
    let licenses: Option<Vec<License>> =
        devices.iter().map(|device| device.nvidia.license).collect();
    match licenses {
        None if nvml.is_none() => Subject::License.skipped(NOT_IN_INVENTORY),
        None => Subject::License.skipped("NVML does not report whether the driver needs a license"),
        Some(mut licenses) => {
            licenses.dedup();
            let licenses: Vec<String> = licenses.iter().map(ToString::to_string).collect();
            Subject::License.ok(licenses.join(", "))
        }
    }
}
