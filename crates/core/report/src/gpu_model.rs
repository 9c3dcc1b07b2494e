//! Groups the devices of a node by model. The first model represents the node.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::num::NonZeroU32;

use devices::DriverModel;
use host::{ComputeCapability, DeviceKind, DriverDate, DriverVersion, Vendor};

use crate::label_value::limited;
use crate::node_report::{NodeReport, ReportedDevice, ReportedResource};

/// The longest name of a model: `count.` and the name are the name of a label, which has at most
/// 63 characters.
const MAX_NAME: usize = 57;

/// The devices with one name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Model {
    /// The name as the value of a label.
    pub(crate) name: String,
    pub(crate) count: usize,
    pub(crate) vendor: Vendor,
    /// The least memory of these devices; `None` if no driver reports it.
    pub(crate) memory_mib: Option<u64>,
    /// The version of the oldest driver of these devices.
    pub(crate) driver_version: Option<DriverVersion>,
    /// The date of the same driver.
    pub(crate) driver_date: Option<DriverDate>,
    pub(crate) drivers: DriverModel,
    pub(crate) kind: Option<DeviceKind>,
    /// The least compute capability of these devices, if NVML reports one.
    pub(crate) compute_capability: Option<ComputeCapability>,
    /// The fewest replicas per device in a resource with these devices.
    pub(crate) replicas: NonZeroU32,
    /// Whether the name of the same resource says that it is shared.
    pub(crate) is_renamed: bool,
}

/// The models of the devices for which `is_counted` is true and that are not gone. Models with the
/// most devices come first, then models with the most memory, then in the order of the names.
pub(crate) fn models(
    report: &NodeReport,
    is_counted: impl Fn(&ReportedDevice) -> bool,
) -> Vec<Model> {
    let mut models = BTreeMap::<String, Model>::new();
    for resource in &report.resources {
        for device in resource.devices.iter().filter(|device| !device.gone && is_counted(device)) {
            let device = Model::of(device, resource);
            match models.get_mut(&device.name) {
                Some(model) => model.add(&device),
                None => {
                    models.insert(device.name.clone(), device);
                }
            }
        }
    }
    let mut models: Vec<Model> = models.into_values().collect();
    // The sort is stable, so equal models stay in the order of their names.
    models.sort_by_key(|model| Reverse((model.count, model.memory_mib)));
    models
}

impl Model {
    /// Windows divides the time of a shared device among its processes.
    pub(crate) fn sharing_strategy(&self) -> &'static str {
        if self.replicas.get() > 1 { "time-slicing" } else { "none" }
    }

    fn of(device: &ReportedDevice, resource: &ReportedResource) -> Model {
        Model {
            name: name(device),
            count: 1,
            vendor: device.vendor(),
            memory_mib: device.dedicated_memory_mib,
            driver_version: device.driver_version,
            driver_date: device.driver_date,
            drivers: device.driver_model,
            kind: device.kind,
            compute_capability: device.compute_capability,
            replicas: resource.replicas,
            is_renamed: resource.name.is_shared(),
        }
    }

    /// Adds devices with the same name. Their order does not matter: with several daemons, it is
    /// the order of their sockets.
    fn add(&mut self, other: &Model) {
        self.count += other.count;
        self.drivers = self.drivers.min(other.drivers);
        self.kind = least(self.kind, other.kind);
        self.memory_mib = least(self.memory_mib, other.memory_mib);
        self.compute_capability = least(self.compute_capability, other.compute_capability);
        if (other.driver_version, other.driver_date) < (self.driver_version, self.driver_date) {
            self.driver_version = other.driver_version;
            self.driver_date = other.driver_date;
        }
        if (other.replicas, other.is_renamed) < (self.replicas, self.is_renamed) {
            self.replicas = other.replicas;
            self.is_renamed = other.is_renamed;
        }
    }
}

/// The device's description as the value of a label, or the device's IDs if the description has no
/// character that a label may contain.
fn name(device: &ReportedDevice) -> String {
    limited(&device.description, MAX_NAME)
        .unwrap_or_else(|| format!("device-{:04x}-{:04x}", device.vendor_id, device.device_id))
}

fn least<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
    [a, b].into_iter().flatten().min()
}
