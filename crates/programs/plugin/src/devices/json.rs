//! The JSON document of `devices`. `docs/reference/json.md` describes each key, and a
//! test compares that page with what the command prints.

use devices::{Device, RuntimeFile, Selection};
use host::{DeviceKind, HostSnapshot, License};
use serde::Serialize;

use crate::devices::{Resources, driver_key, location_path, store_path};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Document<'a> {
    devices: Vec<DeviceView<'a>>,
    skipped: Vec<SkippedAdapter>,
    devices_without_adapter: Vec<DeviceWithoutAdapter<'a>>,
}

#[expect(clippy::struct_excessive_bools, reason = "each is a separate property")]
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DeviceView<'a> {
    id: &'a str,
    luid: i64,
    description: &'a str,
    vendor: String,
    kind: DeviceKind,
    manufacturer: &'a str,
    location_path: &'a str,
    driver_registry_key: String,
    driver_store_path: &'a str,
    integrated: bool,
    detachable: bool,
    supports_display: bool,
    supports_compute: bool,
    resource: Option<&'a str>,
    not_advertised: Option<&'a str>,
    healthy: bool,
    license: Option<License>,
    runtime_files: Vec<File>,
    runtime_files_wow64: Vec<File>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct File {
    source: String,
    destination: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SkippedAdapter {
    luid: i64,
    reason: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DeviceWithoutAdapter<'a> {
    id: &'a str,
    description: &'a str,
    problem_code: u32,
}

impl<'a> Document<'a> {
    pub(super) fn of(
        selection: &'a Selection,
        snapshot: &'a HostSnapshot,
        resources: &'a Resources,
    ) -> Document<'a> {
        let skipped = selection.skipped.iter().map(|skipped| SkippedAdapter {
            luid: skipped.luid.0,
            reason: skipped.reason.to_string(),
        });
        let devices = selection.devices.iter();
        Document {
            devices: devices.map(|device| DeviceView::of(device, resources)).collect(),
            skipped: skipped.collect(),
            devices_without_adapter: snapshot
                .devices_without_adapter
                .iter()
                .map(|device| DeviceWithoutAdapter {
                    id: device.id.as_str(),
                    description: &device.description,
                    problem_code: device.problem_code,
                })
                .collect(),
        }
    }
}

impl<'a> DeviceView<'a> {
    fn of(device: &'a Device, resources: &'a Resources) -> DeviceView<'a> {
        let resource = resources.of_device(device);
        DeviceView {
            id: device.id.as_str(),
            luid: device.luid.0,
            description: &device.description,
            vendor: device.vendor.to_string(),
            kind: device.kind,
            manufacturer: &device.manufacturer,
            location_path: location_path(device),
            driver_registry_key: driver_key(device),
            driver_store_path: store_path(device),
            integrated: device.integrated,
            detachable: device.detachable,
            supports_display: device.display,
            supports_compute: device.compute,
            resource: resource.ok(),
            not_advertised: resource.err(),
            healthy: device.health.is_healthy(),
            license: device.nvidia.license,
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
