//! The labels of NVIDIA's GPU Feature Discovery, on which workloads for Linux select nodes.

use host::{ComputeCapability, DriverVersion};

use crate::gpu_model::Model;
use crate::label::Label;

/// GPU Feature Discovery takes the names of GPUs from NVML on Linux, which omits `NVIDIA ` before
/// these brands. Drivers for Windows never omit it.
const BRANDS_WITHOUT_VENDOR: [&str; 3] = ["Tesla-", "Quadro-", "GRID-"];

/// The labels of NVIDIA devices, in the order of the documentation. A node without such devices has
/// none of them.
pub const FEATURE_DISCOVERY_LABELS: &[Label] = &[
    Label {
        name: "nvidia.com/gpu.count",
        meaning: "number of advertised NVIDIA devices",
        value: |node| node.model.map(|_| node.count.to_string()),
    },
    Label {
        name: "nvidia.com/gpu.product",
        meaning: "name of the model [as on Linux nodes](nvidia.md#labels), with `-SHARED` for shared devices unless the resource name ends with `.shared`",
        value: |node| node.model.map(product),
    },
    Label {
        name: "nvidia.com/gpu.memory",
        meaning: "as `directx.microsoft.com/memory`",
        value: |node| Some(node.model?.memory_mib?.to_string()),
    },
    Label {
        name: "nvidia.com/gpu.replicas",
        meaning: "as `directx.microsoft.com/replicas`",
        value: |node| Some(node.model?.replicas.to_string()),
    },
    Label {
        name: "nvidia.com/gpu.sharing-strategy",
        meaning: "as `directx.microsoft.com/sharing-strategy`",
        value: |node| Some(node.model?.sharing_strategy().to_owned()),
    },
    Label {
        name: "nvidia.com/gpu.family",
        meaning: "architecture of the model, as GPU Feature Discovery names it",
        value: |node| Some(family(node.model?.compute_capability?).to_owned()),
    },
    Label {
        name: "nvidia.com/gpu.compute.major",
        meaning: "CUDA's compute capability of the model: its part before the dot",
        value: |node| Some(node.model?.compute_capability?.major.to_string()),
    },
    Label {
        name: "nvidia.com/gpu.compute.minor",
        meaning: "its part after the dot",
        value: |node| Some(node.model?.compute_capability?.minor.to_string()),
    },
    Label {
        name: "nvidia.com/cuda.driver-version.full",
        meaning: "NVIDIA's version of the driver: the last five digits of `directx.microsoft.com/driver-version`",
        value: |node| {
            let (major, minor) = nvidia_version(node.model?.driver_version?);
            Some(format!("{major}.{minor:02}"))
        },
    },
    Label {
        name: "nvidia.com/cuda.driver-version.major",
        meaning: "its part before the dot",
        value: |node| Some(nvidia_version(node.model?.driver_version?).0.to_string()),
    },
    Label {
        name: "nvidia.com/cuda.driver-version.minor",
        meaning: "its part after the dot",
        value: |node| Some(format!("{:02}", nvidia_version(node.model?.driver_version?).1)),
    },
];

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
