//! What the daemon logs about devices: changes, and what could not be read.

use std::collections::HashMap;

use cli::error_chain;
use devices::{
    DeviceSet, Health, HostSnapshot, ListedDevice, Luid, ResourceDevices, ResourceName, Skipped,
    WarningEffect,
};
use kubelet::ListTooLarge;

/// Logs the differences between the set `before` and the set `after`.
pub(crate) fn log_changes(before: Option<&DeviceSet>, after: &DeviceSet) {
    for (n, resource) in after.resources.iter().enumerate() {
        let old = before.and_then(|set| set.resources.get(n));
        if old.is_none_or(|old| counts(old) != counts(resource)) {
            let (devices, healthy) = counts(resource);
            let slots_per_device = resource.spec.sharing.replicas;
            tracing::info!(
                resource = %resource.spec.name, devices, healthy, slots_per_device,
                "resource devices updated"
            );
        }
        for entry in resource.entries() {
            let old = old.and_then(|old| old.entry(&entry.device.id));
            log_health(old, entry);
            if old.is_none() {
                log_rejected_files(entry);
            }
        }
    }
    let known: HashMap<Luid, &Skipped> =
        before.iter().flat_map(|set| &set.skipped).map(|skipped| (skipped.luid, skipped)).collect();
    for skipped in &after.skipped {
        if known.get(&skipped.luid) != Some(&skipped) {
            tracing::info!(
                luid = %skipped.luid, adapter = skipped.description, reason = %skipped.reason,
                "adapter skipped"
            );
        }
    }
    for rule in &after.unmatched_rules {
        if before.is_none_or(|set| !set.unmatched_rules.contains(rule)) {
            tracing::warn!(resource = %rule.name, "resource rule matches no device");
        }
    }
}

/// Logs which adapters could not be read, or only in part.
pub(crate) fn log_adapter_warnings(snapshot: &HostSnapshot) {
    for warning in &snapshot.warnings {
        let (luid, reason) = (warning.luid, warning.text.as_str());
        match warning.effect {
            WarningEffect::Incomplete => {
                tracing::warn!(%luid, %reason, "adapter could be read only in part");
            }
            WarningEffect::Skipped => tracing::warn!(%luid, %reason, "adapter could not be read"),
        }
    }
}

/// Logs a failed read of the host.
pub(crate) fn log_read_failure(error: &(dyn std::error::Error + 'static)) {
    let error = error_chain(error);
    tracing::error!(%error, "cannot read adapters; keeping the current devices");
}

/// Logs a list that the kubelet would refuse.
pub(crate) fn log_list_too_large(resource: &ResourceName, error: ListTooLarge) {
    tracing::error!(%resource, %error, "device list too large; keeping the previous list");
}

fn counts(resource: &ResourceDevices) -> (usize, usize) {
    let healthy = resource.entries().iter().filter(|entry| entry.health.is_healthy()).count();
    (resource.entries().len(), healthy)
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

fn log_rejected_files(entry: &ListedDevice) {
    for rejected in &entry.device.runtime_files.rejected {
        tracing::warn!(
            device = %entry.device.id, key = %rejected.key, value = rejected.value,
            reason = %rejected.why, "registry value ignored: it names no usable runtime file"
        );
    }
}
