//! Every metric: its name, type, labels and description.

use process::metrics::Metric;
use prometheus_client::metrics::MetricType;

/// The labels of a device and those of the only container that holds it, before labels of a metric.
macro_rules! device_labels {
    ($($own:literal),* $(,)?) => {
        &[
            "gpu", "UUID", "pci_bus_id", "device", "modelName", "Hostname", "namespace", "pod",
            "container", $($own),*
        ]
    };
}

/// The labels of a device and of a resource, before labels of a metric.
macro_rules! resource_labels {
    ($($own:literal),* $(,)?) => {
        &["gpu", "UUID", "pci_bus_id", "device", "modelName", "Hostname", "resource", $($own),*]
    };
}

/// The labels of a device, and those of the only container that holds it.
pub const DEVICE_LABELS: &[&str] = device_labels!();

macro_rules! metrics {
    ($($constant:ident = $kind:ident $name:literal $labels:expr, $help:literal;)*) => {
        $(pub(crate) const $constant: Metric = Metric {
            name: $name, kind: MetricType::$kind, labels: $labels, help: $help,
        };)*
        /// Every metric, in the order of the documentation.
        pub const METRICS: &[Metric] = &[$($constant),*];
    };
}

metrics! {
    DEVICE_INFO = Gauge "directx_device_info" device_labels![
        "luid", "vendor", "device_kind", "driver_version", "driver_date", "integrated", "resource",
    ],
        "Device model and driver; always 1";
    DEVICE_HEALTHY = Gauge "directx_device_healthy" device_labels!["reason"],
        "1 if the device can be allocated, otherwise 0 with the reason";
    DEVICE_LICENSE = Gauge "directx_device_license_state" DEVICE_LABELS,
        "1 if the driver has the license that it needs for the device, 0 if it has none";
    DEVICE_LICENSE_EXPIRY = Gauge "directx_device_license_expiration_timestamp_seconds"
        DEVICE_LABELS,
        "When the license expires, in seconds since 1970; the driver renews it before";
    DEVICE_REPLICAS = Gauge "directx_device_replicas" resource_labels![],
        "Replicas of the device that the kubelet may allocate";
    DEVICE_ALLOCATED = Gauge "directx_device_allocated_replicas" resource_labels![
        "namespace", "pod", "container",
    ],
        "Replicas of the device that the container holds";
    DEVICE_ENGINE = Counter "directx_device_engine_busy_seconds_total" device_labels![
        "engine", "engine_type",
    ],
        "Time for which the engine was busy, in seconds";
    DEVICE_MEMORY_USED = Gauge "directx_device_memory_used_bytes" device_labels!["kind"],
        "Memory in use, in bytes; dedicated is the device's own memory, shared is system memory";
    DEVICE_MEMORY_BUDGET = Gauge "directx_device_memory_budget_bytes" device_labels!["kind"],
        "The most memory that can be used, in bytes";
    DEVICE_TEMPERATURE = Gauge "directx_device_temperature_celsius" DEVICE_LABELS,
        "Temperature in degrees Celsius";
    DEVICE_POWER = Gauge "directx_device_power_ratio" DEVICE_LABELS,
        "Power draw as a fraction of the limit of the device";
    DEVICE_FAN = Gauge "directx_device_fan_speed_rpm" DEVICE_LABELS,
        "Speed of the fan in revolutions per minute";
    DEVICE_CLOCK = Gauge "directx_device_clock_hertz" device_labels!["clock"],
        "Clock frequency in hertz";
    DEVICE_RESETS = Counter "directx_device_resets_total" DEVICE_LABELS,
        "Resets after the driver stopped responding (TDR), since the device was started";
    POD_INFO = Gauge "directx_pod_info" &["namespace", "pod", "pod_uid"],
        "Pod that holds a device, with its UID; always 1";
    PROCESS_INFO = Gauge "directx_container_process_info" &[
        "process_id", "namespace", "pod", "container", "container_id",
    ], "Process of a container that holds a device; always 1";
    BUILD_INFO = Gauge "directx_device_plugin_build_info" &["version", "os", "arch"],
        "Version of the plugin; always 1";
    RESOURCE_READY = Gauge "directx_device_plugin_resource_ready" &["resource"],
        "1 if a kubelet has the current device list of the resource";
    ALLOCATIONS = Counter "directx_device_plugin_allocations_total" &["resource"],
        "Containers for which devices were allocated";
    REFUSALS = Counter "directx_device_plugin_allocation_refusals_total" &["resource", "reason"],
        "Containers for which an allocation was refused";
    ALLOCATE_SECONDS = Histogram "directx_device_plugin_allocate_duration_seconds" &["resource"],
        "Time to answer an Allocate call for one container, in seconds";
    REGISTRATIONS = Counter "directx_device_plugin_registrations_total" &["resource", "cause"],
        "Registrations that a kubelet accepted";
    LIST_UPDATES = Counter "directx_device_plugin_list_updates_total" &["resource"],
        "Changes of the device list";
    DISCOVERY_SECONDS = Histogram "directx_device_plugin_discovery_duration_seconds" &[],
        "Time to read the adapters of the host, in seconds";
    DISCOVERY_FAILURES = Counter "directx_device_plugin_discovery_failures_total" &[],
        "Failed reads of the adapters of the host";
    RELOADS = Counter "directx_device_plugin_config_reloads_total" &["result"],
        "Changes of the configuration that were applied or rejected";
    LAST_RELOAD_SUCCESSFUL = Gauge "directx_device_plugin_config_last_reload_successful" &[],
        "1 if the daemon runs with the newest configuration, 0 if that is invalid";
    LOG_LINES_DROPPED = Counter "directx_device_plugin_log_lines_dropped_total" &[],
        "Log lines that could not be written";
    TELEMETRY_AGE = Gauge "directx_device_plugin_telemetry_age_seconds" &[],
        "Age of the values that devices report, in seconds; grows while a driver hangs";
    READING_FAILURES = Counter "directx_device_plugin_reading_failures_total"
        &["source", "reason"],
        "Failures to read data for metrics";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_follow_the_conventions_of_prometheus() {
        let names: BTreeSet<&str> = METRICS.iter().map(|m| m.name).collect();
        assert_eq!(names.len(), METRICS.len());
        for Metric { name, kind, help, .. } in METRICS {
            let is_counter = matches!(kind, MetricType::Counter);
            assert_eq!(name.ends_with("_total"), is_counter, "{name}");
            assert!(!help.ends_with('.'), "{name}: the text has a period after it");
            let words = name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
            assert!(words && name.starts_with("directx_"), "{name}");
        }
    }
}
