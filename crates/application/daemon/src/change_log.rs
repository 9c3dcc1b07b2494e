//! What the daemon logs about devices: changes, and what could not be read.

use std::num::NonZeroU32;

use devices::{Device, DeviceSet, Health, ListedDevice, ResourceDevices};
use host::{AdapterWarning, LicenseState, PnpDevice, PnpId, WarningEffect};
use report::MovedDevice;

/// Logs the differences between the set `before` and the set `after`.
pub(crate) fn log_changes(before: &DeviceSet, after: &DeviceSet) {
    for resource in &after.resources {
        let old = before.resource(&resource.spec.name);
        if old.is_none_or(|old| counts(old) != counts(resource)) {
            let (devices, healthy, replicas_per_device) = counts(resource);
            tracing::info!(
                resource = %resource.spec.name, devices, healthy, replicas_per_device,
                "resource devices updated"
            );
        }
        for entry in resource.entries() {
            let old = old.and_then(|old| old.entry(&entry.device.id));
            log_health(old, entry);
            log_driver(old, entry);
            log_license(old, entry);
            if old.is_none() {
                log_rejected_files(entry);
            }
        }
    }
    log_removed_devices(before, after);
    let known = &before.not_advertised;
    for adapter in after.not_advertised.iter().filter(|adapter| !known.contains(adapter)) {
        tracing::info!(
            luid = %adapter.luid, adapter = adapter.description, reason = %adapter.reason,
            "adapter not advertised"
        );
    }
    if let Some((rule, more)) = first_new(&before.unmatched_rules, &after.unmatched_rules) {
        tracing::warn!(resource = %rule.name, more, "resource rule matches no device");
    }
    if let Some((cordon, more)) = first_new(&before.unmatched_cordons, &after.unmatched_cordons) {
        tracing::warn!(reason = %cordon, more, "a cordoned device does not exist");
    }
}

/// The first value that is new, and how many more there are. A configuration and an annotation may
/// contain thousands, and each change of them is one line.
fn first_new<'a, T: PartialEq>(before: &[T], after: &'a [T]) -> Option<(&'a T, Option<usize>)> {
    let mut new = after.iter().filter(|value| !before.contains(value));
    let first = new.next()?;
    Some((first, Some(new.count()).filter(|more| *more > 0)))
}

/// Logs devices that no resource has any more. One that disappeared was unhealthy for some time.
fn log_removed_devices(before: &DeviceSet, after: &DeviceSet) {
    let is_listed = |id: &PnpId| after.entries().any(|entry| entry.device.id == *id);
    for resource in &before.resources {
        for entry in resource.entries().iter().filter(|entry| !is_listed(&entry.device.id)) {
            tracing::warn!(
                resource = %resource.spec.name, device = %entry.device.id,
                name = entry.device.description, "device is no longer listed"
            );
        }
    }
}

/// Logs a license that is known now and was another one before. A virtual machine gets its license
/// some time after it has started, so only a loss is a warning.
fn log_license(old: Option<&ListedDevice>, entry: &ListedDevice) {
    // A driver that was started again, so that the LUID differs, gets its license some time later.
    let old = old.filter(|old| old.device.luid == entry.device.luid);
    let before = old.and_then(|old| old.device.nvidia.license).map(|license| license.state);
    let Some(license) = entry.device.nvidia.license else { return };
    let device = &entry.device.id;
    if before == Some(LicenseState::Licensed) && license.state == LicenseState::Unlicensed {
        let hint = "doctor prints the fix; without a license, the GPU is slowed down";
        tracing::warn!(%device, hint, "the driver of a device lost its license");
    } else if before != Some(license.state) && license.state != LicenseState::NotRequired {
        tracing::info!(%device, %license, "license of the driver of a device");
    }
}

/// Logs a driver that was replaced. A pod that holds the device keeps the previous one.
fn log_driver(old: Option<&ListedDevice>, entry: &ListedDevice) {
    let now = &entry.device;
    let Some(before) = old.map(|old| &old.device).filter(|before| now.has_other_driver(before))
    else {
        return;
    };
    tracing::warn!(
        device = %now.id,
        version = version(now), previous_version = version(before),
        folder = folder(now), previous_folder = folder(before),
        hint = "delete the pods that hold the device: they use the previous driver",
        "the driver of a device was replaced"
    );
}

/// Logs devices that belong to another resource than before.
pub(crate) fn log_moved_devices(moved: &[MovedDevice]) {
    for MovedDevice { id, from, to, .. } in moved {
        let hint = "request the new resource in pods, or give both driver models one resource with \
                    a rule of `resources`";
        tracing::warn!(device = %id, %from, %to, hint, "a device belongs to another resource now");
    }
}

/// Logs which adapters could not be read, or only in part, or are missing in a list, unless the
/// last snapshot had the same problem.
pub(crate) fn log_adapter_warnings(before: &[AdapterWarning], after: &[AdapterWarning]) {
    for warning in after.iter().filter(|warning| !before.contains(warning)) {
        let AdapterWarning { luid, text, effect } = warning;
        if *effect == WarningEffect::NotListed {
            let hint = "doctor prints the fix";
            tracing::warn!(%luid, reason = text, hint, "an adapter is not advertised");
            continue;
        }
        let unreadable = *effect == WarningEffect::Unreadable;
        tracing::warn!(%luid, reason = text, unreadable, "adapter could not be read completely");
    }
}

/// Logs which display and compute devices have a problem and no adapter, unless the last snapshot
/// had the same device with the same problem.
pub(crate) fn log_devices_without_adapter(before: &[PnpDevice], after: &[PnpDevice]) {
    for PnpDevice { id, description, problem_code, .. } in after {
        let is_known = before.iter().any(|old| old.id == *id && old.problem_code == *problem_code);
        if !is_known {
            tracing::warn!(
                device = %id, name = description, problem_code,
                hint = "doctor prints the fix",
                "a device is not advertised: it has a problem, and Windows lists no adapter for it"
            );
        }
    }
}

/// Devices, healthy devices, and replicas per device.
fn counts(resource: &ResourceDevices) -> (usize, usize, NonZeroU32) {
    let healthy = resource.entries().iter().filter(|entry| entry.health.is_healthy()).count();
    (resource.entries().len(), healthy, resource.spec.sharing.replicas)
}

fn log_health(old: Option<&ListedDevice>, entry: &ListedDevice) {
    match entry.health {
        health if old.is_some_and(|old| old.health == health) => {}
        Health::Unhealthy(reason) => {
            tracing::warn!(device = %entry.device.id, %reason, "device is unhealthy");
        }
        Health::Healthy => {
            tracing::info!(
                device = %entry.device.id, luid = %entry.device.luid,
                name = entry.device.description, "device is healthy"
            );
        }
    }
}

fn version(device: &Device) -> Option<String> {
    device.driver_version.map(|version| version.to_string())
}

fn folder(device: &Device) -> Option<&str> {
    device.driver_store.as_ref().ok().map(|store| store.path.as_str())
}

fn log_rejected_files(entry: &ListedDevice) {
    if let Some(reason) = entry.device.rejected_store() {
        tracing::warn!(
            device = %entry.device.id, %reason,
            "driver store folder ignored: the device is advertised without runtime files"
        );
    }
    for rejected in &entry.device.runtime_files.rejected {
        tracing::warn!(
            device = %entry.device.id, key = %rejected.key, value = rejected.value,
            reason = %rejected.why, "registry value ignored: it names no usable runtime file"
        );
    }
}

#[cfg(test)]
mod tests {
    use host::Luid;

    use super::*;
    use process::logging::test_log::Log;

    #[test]
    fn thousands_of_new_values_are_one_line() {
        let known = [1, 2];
        let many: Vec<u32> = (1..=9000).collect();
        assert_eq!(first_new(&known, &many), Some((&3, Some(8997))));
        assert_eq!(first_new(&known, &[1, 4]), Some((&4, None)));
        assert_eq!(first_new(&known, &known), None);
    }

    #[test]
    fn a_warning_is_logged_once_while_it_stays() {
        let log = Log::start();
        let warning = |luid, effect| AdapterWarning {
            luid: Luid(luid),
            text: "the driver is being updated".to_owned(),
            effect,
        };
        let [one, two] = [1, 2].map(|luid| warning(luid, WarningEffect::Unreadable));
        let three = warning(3, WarningEffect::NotListed);
        log_adapter_warnings(&[], std::slice::from_ref(&one));
        log_adapter_warnings(std::slice::from_ref(&one), &[one.clone(), two, three]);
        let text = log.text();
        assert_eq!(text.matches("adapter could not be read").count(), 2, "{text}");
        assert_eq!(text.matches("luid=1").count(), 1, "{text}");
        assert_eq!(text.matches("an adapter is not advertised").count(), 1, "{text}");
    }

    #[test]
    fn a_device_without_an_adapter_is_logged_once_while_its_problem_stays() {
        let log = Log::start();
        let device = |problem_code| PnpDevice {
            id: PnpId::new(r"PCI\VEN_10DE\1"),
            description: "NVIDIA A2".to_owned(),
            manufacturer: "NVIDIA".to_owned(),
            driver_key: None,
            driver_date: None,
            location_paths: Vec::new(),
            numa_node: None,
            problem_code,
        };
        log_devices_without_adapter(&[], &[device(43)]);
        log_devices_without_adapter(&[device(43)], &[device(43)]);
        log_devices_without_adapter(&[device(43)], &[device(28)]);
        log_devices_without_adapter(&[device(28)], &[]);
        let text = log.text();
        assert_eq!(text.matches("a device is not advertised").count(), 2, "{text}");
        assert_eq!(text.matches("problem_code=43").count(), 1, "{text}");
    }
}
