//! The metrics of devices, and of the processes that use them.
//!
//! The labels are those of dcgm-exporter, so that its dashboards and joins work. A device that
//! several containers share has no container among the labels of its metrics: their values
//! belong to none of them. Who holds a replica is in `directx_device_allocated_replicas`.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;

use devices::{Health, ListedDevice};
use host::{EngineTelemetry, LicenseState, MemoryUse, PnpId, Telemetry};
use prometheus_client::encoding::DescriptorEncoder;
use win32::container_processes::ContainerProcess;

use process::metrics::{Labels, labels};

use crate::metrics::{Holder, Scrape, catalog};

/// Namespace, pod and container.
type Container<'a> = (&'a str, &'a str, &'a str);

/// A device as one resource lists it, with its labels.
struct Measured<'a> {
    entry: &'a ListedDevice,
    resource: &'a str,
    replicas: u32,
    /// The labels that identify the device.
    identity: Labels,
    /// The labels that identify the device, and the only container that holds it.
    labels: Labels,
    /// Who holds replicas of the device, in any resource.
    holders: Vec<&'a Holder>,
    /// Whether an earlier resource has the same device.
    repeated: bool,
    telemetry: Option<&'a Telemetry>,
}

/// Writes the metrics of every device and of the processes of containers.
pub(super) fn encode(encoder: &mut DescriptorEncoder<'_>, scrape: &Scrape) -> fmt::Result {
    let devices = measured(scrape);
    catalog::DEVICE_INFO.encode_gauges(encoder, devices.iter().map(|d| (d.info(), 1.0)))?;
    let once: Vec<&Measured<'_>> = devices.iter().filter(|device| !device.repeated).collect();
    catalog::DEVICE_HEALTHY.encode_gauges(encoder, once.iter().map(|d| d.health()))?;
    let licenses = once.iter().filter_map(|d| d.license());
    catalog::DEVICE_LICENSE.encode_gauges(encoder, licenses)?;
    let expiries = once.iter().filter_map(|d| d.license_expiry());
    catalog::DEVICE_LICENSE_EXPIRY.encode_gauges(encoder, expiries)?;
    let replicas = devices
        .iter()
        .map(|d| (with(&d.identity, &[("resource", d.resource)]), f64::from(d.replicas)));
    catalog::DEVICE_REPLICAS.encode_gauges(encoder, replicas)?;
    let held = once.iter().flat_map(|d| d.held());
    catalog::DEVICE_ALLOCATED.encode_gauges(encoder, held)?;
    encode_telemetry(encoder, &once)?;
    encode_pods(encoder, &scrape.holders)?;
    encode_processes(encoder, &scrape.processes)
}

fn encode_telemetry(encoder: &mut DescriptorEncoder<'_>, devices: &[&Measured<'_>]) -> fmt::Result {
    catalog::DEVICE_ENGINE.encode_counters(encoder, devices.iter().flat_map(|d| d.engines()))?;
    let used = devices.iter().flat_map(|d| d.memory(|memory| Some(memory.used_bytes)));
    catalog::DEVICE_MEMORY_USED.encode_gauges(encoder, used)?;
    let budget = devices.iter().flat_map(|d| d.memory(|memory| memory.budget_bytes));
    catalog::DEVICE_MEMORY_BUDGET.encode_gauges(encoder, budget)?;
    let temperature = devices.iter().filter_map(|d| d.value(|t| t.temperature_celsius));
    catalog::DEVICE_TEMPERATURE.encode_gauges(encoder, temperature)?;
    let power = devices.iter().filter_map(|d| d.value(|t| Some(t.power_percent? / 100.0)));
    catalog::DEVICE_POWER.encode_gauges(encoder, power)?;
    let fan = devices.iter().filter_map(|d| d.value(|t| t.fan_rpm.map(f64::from)));
    catalog::DEVICE_FAN.encode_gauges(encoder, fan)?;
    catalog::DEVICE_CLOCK.encode_gauges(encoder, devices.iter().flat_map(|d| d.clocks()))?;
    let resets = devices.iter().filter_map(|d| d.value(|t| t.resets));
    catalog::DEVICE_RESETS.encode_counters(encoder, resets)
}

fn encode_pods(encoder: &mut DescriptorEncoder<'_>, holders: &[Holder]) -> fmt::Result {
    let pods: BTreeSet<_> = holders
        .iter()
        .filter_map(|holder| {
            let uid = holder.pod_uid.as_deref()?;
            Some([("namespace", &*holder.namespace), ("pod", &*holder.pod), ("pod_uid", uid)])
        })
        .collect();
    catalog::POD_INFO.encode_gauges(encoder, pods.iter().map(|pod| (labels(pod), 1.0)))
}

/// Writes the processes in an order that does not depend on Windows.
fn encode_processes(
    encoder: &mut DescriptorEncoder<'_>,
    processes: &[ContainerProcess],
) -> fmt::Result {
    let processes: BTreeSet<Labels> = processes
        .iter()
        .map(|process| {
            labels(&[
                ("process_id", &process.process_id.to_string()),
                ("namespace", &process.name.namespace),
                ("pod", &process.name.pod),
                ("container", &process.name.container),
                ("container_id", &process.container_id),
            ])
        })
        .collect();
    catalog::PROCESS_INFO.encode_gauges(encoder, processes.into_iter().map(|labels| (labels, 1.0)))
}

/// The devices of all resources.
fn measured(scrape: &Scrape) -> Vec<Measured<'_>> {
    let holders: BTreeSet<&Holder> = scrape.holders.iter().collect();
    let mut held: HashMap<&PnpId, Vec<&Holder>> = HashMap::new();
    for holder in holders {
        held.entry(&holder.replica.device).or_default().push(holder);
    }
    let telemetry = scrape.telemetry.as_ref().map(|(values, _age)| values);
    let mut seen = HashSet::new();
    let mut devices = Vec::new();
    for resource in &scrape.devices.resources {
        for entry in resource.entries() {
            let device = &*entry.device;
            let identity = identity(entry, &scrape.host_name);
            let holders = held.get(&device.id).cloned().unwrap_or_default();
            devices.push(Measured {
                entry,
                resource: resource.spec.name.as_str(),
                replicas: resource.spec.sharing.replicas.get(),
                labels: with(&identity, &holder_labels(&holders)),
                identity,
                holders,
                repeated: !seen.insert(&device.id),
                telemetry: telemetry.and_then(|values| values.get(&device.luid)),
            });
        }
    }
    devices
}

/// The labels of the container that holds a device, if there is exactly one.
fn holder_labels<'a>(holders: &[&'a Holder]) -> [(&'static str, &'a str); 3] {
    let containers: BTreeSet<Container<'_>> = holders.iter().map(|h| container(h)).collect();
    let (namespace, pod, container) = match containers.first() {
        Some(only) if containers.len() == 1 => *only,
        _ => ("", "", ""),
    };
    [("namespace", namespace), ("pod", pod), ("container", container)]
}

fn container(holder: &Holder) -> Container<'_> {
    (&holder.namespace, &holder.pod, &holder.container)
}

/// The labels that identify a device.
fn identity(entry: &ListedDevice, host_name: &str) -> Labels {
    let device = &*entry.device;
    let number = entry.number.to_string();
    // Windows names PCI devices by location path; the number of a bus can change.
    let location = device.location_path.as_ref().map_or("", |path| path.as_str());
    labels(&[
        ("gpu", &number),
        ("UUID", device.nvidia.uuid.as_deref().unwrap_or(device.id.as_str())),
        ("pci_bus_id", location),
        ("device", device.id.as_str()),
        ("modelName", &device.description),
        ("Hostname", host_name),
    ])
}

fn with(first: &Labels, more: &[(&'static str, &str)]) -> Labels {
    let mut all = first.clone();
    all.extend(labels(more));
    all
}

impl<'a> Measured<'a> {
    fn info(&self) -> Labels {
        let device = &*self.entry.device;
        let version = device.driver_version.map(|v| v.to_string()).unwrap_or_default();
        let vendor = device.vendor.to_string();
        let kind = device.reported_kind().map(|kind| kind.to_string()).unwrap_or_default();
        let date = device.driver_date.map(|d| d.to_string()).unwrap_or_default();
        let integrated = device.integrated.to_string();
        with(
            &self.labels,
            &[
                ("luid", &windows_exporter_luid(device.luid.0)),
                ("vendor", &vendor),
                ("device_kind", &kind),
                ("driver_version", &version),
                ("driver_date", &date),
                ("integrated", &integrated),
                ("resource", self.resource),
            ],
        )
    }

    fn health(&self) -> (Labels, f64) {
        let (reason, value) = match self.entry.health {
            Health::Healthy => (String::new(), 1.0),
            Health::Unhealthy(reason) => (reason.to_string(), 0.0),
        };
        (with(&self.labels, &[("reason", &reason)]), value)
    }

    fn license(&self) -> Option<(Labels, f64)> {
        let value = match self.entry.device.nvidia.license?.state {
            LicenseState::NotRequired => return None,
            LicenseState::Licensed => 1.0,
            LicenseState::Unlicensed => 0.0,
        };
        Some((self.labels.clone(), value))
    }

    #[expect(clippy::cast_precision_loss, reason = "exact for millions of years")]
    fn license_expiry(&self) -> Option<(Labels, f64)> {
        let expires = self.entry.device.nvidia.license?.expires?;
        Some((self.labels.clone(), expires.unix_seconds() as f64))
    }

    /// A series for each container that holds replicas of this device, and the resource under
    /// which it got them.
    fn held(&self) -> Vec<(Labels, f64)> {
        let mut held: BTreeMap<(&str, Container<'_>), u32> = BTreeMap::new();
        for holder in &self.holders {
            *held.entry((&holder.resource, container(holder))).or_default() += 1;
        }
        held.into_iter()
            .map(|((resource, (namespace, pod, container)), count)| {
                let holder = [
                    ("resource", resource),
                    ("namespace", namespace),
                    ("pod", pod),
                    ("container", container),
                ];
                (with(&self.identity, &holder), f64::from(count))
            })
            .collect()
    }

    /// A value of the device's telemetry, with its labels.
    fn value<V>(&self, read: impl Fn(&Telemetry) -> Option<V>) -> Option<(Labels, V)> {
        Some((self.labels.clone(), read(self.telemetry?)?))
    }

    fn engines(&self) -> impl Iterator<Item = (Labels, f64)> + use<'_, 'a> {
        let engines = self.telemetry.into_iter().flat_map(|telemetry| &telemetry.engines);
        engines.map(|EngineTelemetry { index, kind, running_time, .. }| {
            let index = index.to_string();
            let engine = [("engine", index.as_str()), ("engine_type", kind.into())];
            (with(&self.labels, &engine), running_time.as_secs_f64())
        })
    }

    #[expect(clippy::cast_precision_loss, reason = "exact up to 8 PiB")]
    fn memory(
        &self,
        value: impl Fn(&MemoryUse) -> Option<u64>,
    ) -> impl Iterator<Item = (Labels, f64)> {
        let kinds = self.telemetry.map(|t| [("dedicated", &t.dedicated), ("shared", &t.shared)]);
        kinds.into_iter().flatten().filter_map(move |(kind, memory)| {
            let bytes = value(memory.as_ref()?)?;
            Some((with(&self.labels, &[("kind", kind)]), bytes as f64))
        })
    }

    #[expect(clippy::cast_precision_loss, reason = "exact up to 9 PHz")]
    fn clocks(&self) -> impl Iterator<Item = (Labels, f64)> + use<'_, 'a> {
        let clocks =
            self.telemetry.map(|t| [("engine", t.engine_hertz), ("memory", t.memory_hertz)]);
        clocks.into_iter().flatten().filter_map(|(clock, hertz)| {
            Some((with(&self.labels, &[("clock", clock)]), hertz? as f64))
        })
    }
}

/// A LUID as `windows_exporter` writes it.
fn windows_exporter_luid(luid: i64) -> String {
    let luid = luid.cast_unsigned();
    format!("0x{:08X}_0x{:08X}", luid >> 32, luid & 0xFFFF_FFFF)
}
