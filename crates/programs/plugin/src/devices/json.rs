//! The JSON document of `devices`. The comments of the fields are its reference.

use devices::{Device, RuntimeFile, Selection};
use serde::Serialize;

use crate::devices::{driver_key, location_path, store_path};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Document<'a> {
    /// The devices that `--filter` selects, in the order in which the host lists its adapters.
    devices: Vec<DeviceView<'a>>,
    /// The adapters that are left out.
    skipped: Vec<SkippedAdapter>,
}

#[expect(clippy::struct_excessive_bools, reason = "each is a separate property")]
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DeviceView<'a> {
    /// The device instance ID of Windows.
    id: &'a str,
    /// The LUID of the adapter, a signed number.
    luid: i64,
    /// The name of the device.
    description: &'a str,
    /// `amd`, `intel`, `microsoft`, `nvidia`, `qualcomm`, or the ID of another vendor, such as `0x1a03`.
    vendor: String,
    /// The manufacturer that the driver names; empty if it names none.
    manufacturer: &'a str,
    /// The location path by which containers get the device; empty if Windows reports none.
    location_path: &'a str,
    /// The registry key of the driver; empty if there is none.
    driver_registry_key: String,
    /// The driver store folder of the driver; empty if there is none.
    driver_store_path: &'a str,
    /// Whether the device is integrated into the processor.
    integrated: bool,
    /// Whether the device can be removed while the host runs.
    detachable: bool,
    /// Whether the device supports display (WDDM).
    supports_display: bool,
    /// Whether the device supports compute.
    supports_compute: bool,
    /// Whether the device can be allocated.
    healthy: bool,
    /// The runtime files of the driver for `System32` of a container.
    runtime_files: Vec<File>,
    /// The runtime files of the driver for `SysWOW64` of a container.
    runtime_files_wow64: Vec<File>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct File {
    /// The file, relative to the driver store folder.
    source: String,
    /// The name of the file in the container.
    destination: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SkippedAdapter {
    /// The LUID of the adapter, a signed number.
    luid: i64,
    /// Why it is left out.
    reason: String,
}

impl<'a> Document<'a> {
    pub(super) fn of(selection: &'a Selection) -> Document<'a> {
        let skipped = selection.skipped.iter().map(|skipped| SkippedAdapter {
            luid: skipped.luid.0,
            reason: skipped.reason.to_string(),
        });
        Document {
            devices: selection.devices.iter().map(DeviceView::of).collect(),
            skipped: skipped.collect(),
        }
    }
}

impl<'a> DeviceView<'a> {
    fn of(device: &'a Device) -> DeviceView<'a> {
        DeviceView {
            id: device.id.as_str(),
            luid: device.luid.0,
            description: &device.description,
            vendor: device.vendor.to_string(),
            manufacturer: &device.manufacturer,
            location_path: location_path(device),
            driver_registry_key: driver_key(device),
            driver_store_path: store_path(device),
            integrated: device.integrated,
            detachable: device.detachable,
            supports_display: device.display,
            supports_compute: device.compute,
            healthy: device.health.is_healthy(),
            runtime_files: files(&device.runtime_files.system32),
            runtime_files_wow64: files(&device.runtime_files.wow64),
        }
    }
}

fn files(files: &[RuntimeFile]) -> Vec<File> {
    let mut listed = Vec::new();
    for RuntimeFile { source, destination } in files {
        listed.push(File { source: source.to_string(), destination: destination.to_string() });
    }
    listed
}
