//! The labels of a node.

use host::Vendor;

use crate::feature_discovery_labels::FEATURE_DISCOVERY_LABELS;
use crate::gpu_model::{Model, models};
use crate::label::{Described, Label};
use crate::label_value::{Labels, label_value};
use crate::node_report::NodeReport;

/// In the name of a label that each model has: the name of the model.
const PRODUCT: &str = "<product>";

/// The labels of this project, in the order of the documentation.
pub const LABELS: &[Label] = &[
    Label {
        name: "directx.microsoft.com/count",
        meaning: "number of advertised devices, healthy or not",
        value: |node| Some(node.count.to_string()),
    },
    Label {
        name: "directx.microsoft.com/count.<product>",
        meaning: "number of advertised devices of one model; one label for each model",
        value: |node| Some(node.model?.count.to_string()),
    },
    Label {
        name: "directx.microsoft.com/product",
        meaning: "name of the model",
        value: |node| Some(node.model?.name.clone()),
    },
    Label {
        name: "directx.microsoft.com/vendor",
        meaning: "vendor of the model: amd, intel, microsoft, nvidia, qualcomm, or a vendor ID such as 0x1a03",
        value: |node| Some(node.model?.vendor.to_string()),
    },
    Label {
        name: "directx.microsoft.com/kind",
        meaning: "[kind](introduction.md#words) of the model: gpu, npu or accelerator; absent for Microsoft's basic adapters",
        value: |node| Some(node.model?.kind?.to_string()),
    },
    Label {
        name: "directx.microsoft.com/memory",
        meaning: "dedicated memory of one device of the model in MiB; absent if the driver does not report it",
        value: |node| Some(node.model?.memory_mib?.to_string()),
    },
    Label {
        name: "directx.microsoft.com/driver-version",
        meaning: "version of the model's driver; absent if the driver does not report it",
        value: |node| Some(node.model?.driver_version?.to_string()),
    },
    Label {
        name: "directx.microsoft.com/driver-date",
        meaning: "date of the model's driver package; absent if Windows does not report it",
        value: |node| Some(node.model?.driver_date?.to_string()),
    },
    Label {
        name: "directx.microsoft.com/driver-model",
        meaning: "[driver model](introduction.md#words) of the devices: wddm (display) or mcdm (compute-only)",
        value: |node| Some(node.model?.drivers.to_string()),
    },
    Label {
        name: "directx.microsoft.com/replicas",
        meaning: "number of containers that can share one device of the model; 1 means exclusive use",
        value: |node| Some(node.model?.replicas.to_string()),
    },
    Label {
        name: "directx.microsoft.com/sharing-strategy",
        meaning: "`none` for exclusive use, `time-slicing` for shared devices",
        value: |node| Some(node.model?.sharing_strategy().to_owned()),
    },
    Label {
        name: "directx.microsoft.com/windows-build",
        meaning: "build of Windows",
        value: |node| Some(node.host.build?.to_string()),
    },
];

/// The labels of a node. Every value is valid.
///
/// Where a node has several models, the labels of a model describe the one with the most devices;
/// of equal ones the one with the most memory, then the first by name.
///
/// `with_nvidia` adds the labels of NVIDIA's GPU Feature Discovery, for NVIDIA devices.
#[must_use]
pub fn labels(report: &NodeReport, with_nvidia: bool) -> Labels {
    let mut labels = values(LABELS, report, &models(report, |_| true));
    if with_nvidia {
        let models = models(report, |device| device.vendor() == Vendor::Nvidia);
        labels.extend(values(FEATURE_DISCOVERY_LABELS, report, &models));
    }
    labels
}

/// The labels of a table that a node with these models has.
fn values(table: &[Label], report: &NodeReport, models: &[Model]) -> Labels {
    let of_node = Described {
        host: &report.host,
        count: models.iter().map(|model| model.count).sum(),
        model: models.first(),
    };
    let mut labels = Labels::new();
    for Label { name, value, .. } in table {
        let mut add = |name: String, described: &Described<'_>| {
            let value = value(described).and_then(|text| label_value(&text));
            labels.extend(value.map(|value| (name, value)));
        };
        if name.contains(PRODUCT) {
            for model in models {
                let of_model = Described { model: Some(model), ..of_node };
                add(name.replace(PRODUCT, &model.name), &of_model);
            }
        } else {
            add((*name).to_owned(), &of_node);
        }
    }
    labels
}
