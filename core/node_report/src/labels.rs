//! The labels of a node.

use devices::DeviceSet;

use crate::feature_discovery_labels;
use crate::label_value::{Labels, label_value};
use crate::model::models;

/// The prefix of the labels of this project.
pub const PREFIX: &str = "directx.microsoft.com/";

/// How the labels begin that NVIDIA's GPU Feature Discovery defines.
pub const NVIDIA_PREFIXES: [&str; 2] = ["nvidia.com/gpu.", "nvidia.com/cuda.driver-version."];

/// Which labels a node gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LabelFamily {
    /// Those of this project.
    #[default]
    Directx,
    /// Also those of NVIDIA's GPU Feature Discovery, for NVIDIA devices.
    WithNvidia,
}

/// A label as documented.
#[derive(Clone, Copy, Debug)]
pub struct LabelSource {
    /// Its name; `<product>` stands for the name of a model.
    pub name: &'static str,
    /// An example of its value.
    pub example: &'static str,
    /// What it says, and when it is absent.
    pub meaning: &'static str,
}

/// Every label, those of the family [`LabelFamily::WithNvidia`] last.
pub const LABELS: &[LabelSource] = &[
    label("directx.microsoft.com/count", "2", "number of advertised devices, healthy or not"),
    label(
        "directx.microsoft.com/count.<product>",
        "2",
        "number of advertised devices of one model; one label for each model",
    ),
    label("directx.microsoft.com/product", "NVIDIA-A10", "name of the model"),
    label(
        "directx.microsoft.com/vendor",
        "nvidia",
        "vendor of the model: amd, intel, microsoft, nvidia, qualcomm, or a vendor ID such as 0x1a03",
    ),
    label(
        "directx.microsoft.com/memory",
        "24512",
        "dedicated memory of one device of the model in MiB; absent if the driver does not report it",
    ),
    label(
        "directx.microsoft.com/driver-version",
        "31.0.15.3713",
        "version of the model's driver; absent if the driver does not report it",
    ),
    label(
        "directx.microsoft.com/driver-date",
        "2023-08-10",
        "date of the model's driver package; absent if Windows does not report it",
    ),
    label(
        "directx.microsoft.com/driver-model",
        "wddm",
        "driver model of the model: wddm (display) or mcdm (only compute)",
    ),
    label(
        "directx.microsoft.com/replicas",
        "4",
        "number of containers that can share one device of the model; 1 means exclusive use",
    ),
    label(
        "directx.microsoft.com/sharing-strategy",
        "time-slicing",
        "none for exclusive use, time-slicing for shared devices of the model",
    ),
    label(
        "directx.microsoft.com/hcs-schema",
        "2.5",
        "highest schema version of the Host Compute Service; absent until the service reports it",
    ),
    label("directx.microsoft.com/windows-build", "10.0.20348.1547", "build of Windows"),
    label("nvidia.com/gpu.count", "2", "number of advertised NVIDIA devices"),
    label(
        "nvidia.com/gpu.product",
        "NVIDIA-A10-SHARED",
        "name of the model; `-SHARED` is added for shared devices unless the resource is called `….shared`",
    ),
    label("nvidia.com/gpu.memory", "24512", "as `directx.microsoft.com/memory`"),
    label("nvidia.com/gpu.replicas", "4", "as `directx.microsoft.com/replicas`"),
    label(
        "nvidia.com/gpu.sharing-strategy",
        "time-slicing",
        "as `directx.microsoft.com/sharing-strategy`",
    ),
    label(
        "nvidia.com/cuda.driver-version.full",
        "537.13",
        "NVIDIA's version of the driver, which Windows reports as 31.0.15.3713",
    ),
    label("nvidia.com/cuda.driver-version.major", "537", "its part before the dot"),
    label("nvidia.com/cuda.driver-version.minor", "13", "its part after the dot"),
];

const fn label(name: &'static str, example: &'static str, meaning: &'static str) -> LabelSource {
    LabelSource { name, example, meaning }
}

/// The labels of a node with these devices. Every value is valid.
///
/// Where a node has several models, the labels of a model describe the one with the most devices;
/// of equal ones the one with the most memory, then the first by name.
#[must_use]
pub fn labels(set: &DeviceSet, family: LabelFamily) -> Labels {
    let mut labels = Labels::new();
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value.as_deref().and_then(label_value) {
            labels.insert(format!("{PREFIX}{name}"), value);
        }
    };
    let host = &set.host;
    add("windows-build", host.build.map(|build| build.to_string()));
    add("hcs-schema", host.hcs_schemas.iter().max().map(ToString::to_string));
    let models = models(set, |_| true);
    add("count", Some(models.iter().map(|model| model.count).sum::<usize>().to_string()));
    for model in &models {
        add(&format!("count.{}", model.name), Some(model.count.to_string()));
    }
    if let Some(model) = models.first() {
        add("product", Some(model.name.clone()));
        add("vendor", Some(model.vendor.to_string()));
        add("memory", model.memory_mib.map(|mib| mib.to_string()));
        add("driver-version", model.driver_version.map(|version| version.to_string()));
        add("driver-date", model.driver_date.map(|date| date.to_string()));
        add("driver-model", Some(model.drivers.to_string()));
        add("replicas", Some(model.replicas.to_string()));
        add("sharing-strategy", Some(model.sharing_strategy().to_owned()));
    }
    if family == LabelFamily::WithNvidia {
        labels.extend(feature_discovery_labels::labels(set));
    }
    labels
}
