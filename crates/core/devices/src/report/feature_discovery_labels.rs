//! The labels of NVIDIA's GPU Feature Discovery, on which workloads for Linux select nodes.

use crate::{ComputeCapability, DriverVersion, Vendor};

use super::label_value::{Labels, label_value};
use super::model::{Model, models};
use super::node_report::NodeReport;

/// GPU Feature Discovery takes the names of GPUs from NVML on Linux, which omits `NVIDIA ` before
/// these brands. Drivers for Windows never omit it.
const BRANDS_WITHOUT_VENDOR: [&str; 3] = ["Tesla-", "Quadro-", "GRID-"];

/// The labels of a node; none without NVIDIA devices.
pub(crate) fn labels(report: &NodeReport) -> Labels {
    let models = models(report, |device| device.vendor() == Vendor::Nvidia);
    let Some(model) = models.first() else { return Labels::new() };
    let count: usize = models.iter().map(|model| model.count).sum();
    let mut labels: Vec<(&str, Option<String>)> = vec![
        ("nvidia.com/gpu.count", Some(count.to_string())),
        ("nvidia.com/gpu.product", label_value(&product(model))),
        ("nvidia.com/gpu.memory", model.memory_mib.map(|mib| mib.to_string())),
        ("nvidia.com/gpu.replicas", Some(model.replicas.to_string())),
        ("nvidia.com/gpu.sharing-strategy", Some(model.sharing_strategy().to_owned())),
    ];
    if let Some(capability) = model.compute_capability {
        labels.push(("nvidia.com/gpu.family", Some(family(capability).to_owned())));
        labels.push(("nvidia.com/gpu.compute.major", Some(capability.major.to_string())));
        labels.push(("nvidia.com/gpu.compute.minor", Some(capability.minor.to_string())));
    }
    if let Some((major, minor)) = model.driver_version.map(nvidia_version) {
        labels.push(("nvidia.com/cuda.driver-version.full", Some(format!("{major}.{minor:02}"))));
        labels.push(("nvidia.com/cuda.driver-version.major", Some(major.to_string())));
        labels.push(("nvidia.com/cuda.driver-version.minor", Some(format!("{minor:02}"))));
    }
    labels.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// The name of the model as on a Linux node. As in GPU Feature Discovery, the product says that its
/// devices are shared, unless the name of the resource does.
fn product(model: &Model) -> String {
    let name = model
        .name
        .strip_prefix("NVIDIA-")
        .filter(|name| BRANDS_WITHOUT_VENDOR.iter().any(|brand| name.starts_with(brand)))
        .unwrap_or(&model.name);
    let is_marked = model.replicas.get() > 1 && !model.is_renamed;
    // A value has at most 63 characters, and the mark has 7 of them.
    if is_marked { format!("{}-SHARED", name.get(..56).unwrap_or(name)) } else { name.to_owned() }
}

/// The architecture, as GPU Feature Discovery names it (`getArchFamily` in its `resource.go`).
fn family(capability: ComputeCapability) -> &'static str {
    match (capability.major, capability.minor) {
        (1, _) => "tesla",
        (2, _) => "fermi",
        (3, _) => "kepler",
        (5, _) => "maxwell",
        (6, _) => "pascal",
        (7, 0..=4) => "volta",
        (7, _) => "turing",
        (8, 0..=8) => "ampere",
        (8, _) => "ada-lovelace",
        (9, _) => "hopper",
        (10 | 12, _) => "blackwell",
        _ => "undefined",
    }
}

/// NVIDIA's own version of a driver: the last five digits of the version that Windows reports.
fn nvidia_version(DriverVersion(version): DriverVersion) -> (u64, u64) {
    let digits = (version >> 16 & 0xFFFF) % 10 * 10_000 + (version & 0xFFFF) % 10_000;
    (digits / 100, digits % 100)
}
