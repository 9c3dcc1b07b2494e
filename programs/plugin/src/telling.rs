//! What the daemon logs about devices: what changed, never what stayed.

use devices::{DeviceSet, Health, HostSnapshot, ListedDevice, ResourceDevices, ResourceName};
use kubelet::ListTooLarge;

/// Logs what the set `after` has that the one `before` had not.
pub(crate) fn changes(before: Option<&DeviceSet>, after: &DeviceSet) {
    for (n, resource) in after.resources.iter().enumerate() {
        let old = before.and_then(|set| set.resources.get(n));
        if old.is_none_or(|old| counts(old) != counts(resource)) {
            let (devices, healthy) = counts(resource);
            let slots_per_device = resource.spec.sharing.replicas;
            tracing::info!(resource = %resource.spec.name, devices, healthy, slots_per_device, "devices");
        }
        for entry in resource.entries() {
            let old = old.and_then(|old| find(old, entry));
            health(old, entry);
            if old.is_none() {
                rejected_files(entry);
            }
        }
    }
    for skipped in &after.skipped {
        if before.is_none_or(|set| !set.skipped.contains(skipped)) {
            tracing::info!(
                luid = %skipped.luid, adapter = skipped.description, reason = %skipped.reason,
                "adapter skipped"
            );
        }
    }
    for rule in &after.unmatched_rules {
        if before.is_none_or(|set| !set.unmatched_rules.contains(rule)) {
            tracing::warn!(resource = %rule.name, "no device matches this rule");
        }
    }
}

fn counts(resource: &ResourceDevices) -> (usize, usize) {
    let healthy = resource.entries().iter().filter(|entry| entry.health.is_healthy()).count();
    (resource.entries().len(), healthy)
}

fn find<'a>(resource: &'a ResourceDevices, entry: &ListedDevice) -> Option<&'a ListedDevice> {
    resource.entries().iter().find(|old| old.device.id == entry.device.id)
}

fn health(old: Option<&ListedDevice>, entry: &ListedDevice) {
    match entry.health {
        health if old.is_some_and(|old| old.health == health) => {}
        Health::Unhealthy(ailment) => {
            tracing::warn!(device = %entry.device.id, reason = %ailment, "device is unhealthy");
        }
        Health::Healthy => {
            tracing::info!(
                device = %entry.device.id, luid = %entry.device.luid,
                name = entry.device.description, "device is healthy"
            );
        }
    }
}

fn rejected_files(entry: &ListedDevice) {
    for rejected in &entry.device.runtime_files.rejected {
        tracing::warn!(
            device = %entry.device.id, key = %rejected.key, value = rejected.value,
            reason = %rejected.why, "runtime file left out"
        );
    }
}

/// Logs what of the host could not be read.
pub(crate) fn warnings(snapshot: &HostSnapshot) {
    for warning in &snapshot.warnings {
        tracing::warn!(luid = %warning.luid, "{}", warning.text);
    }
}

/// Logs a failed read, with its causes.
pub(crate) fn unreadable(error: &(dyn std::error::Error + 'static)) {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    let error = causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"));
    tracing::error!(error, "adapters cannot be read; the devices stay as they were");
}

/// Logs a list that the kubelet would refuse.
pub(crate) fn too_large(resource: &ResourceName, error: ListTooLarge) {
    tracing::error!(%resource, %error, "the list is too large; the kubelet keeps the one before");
}
