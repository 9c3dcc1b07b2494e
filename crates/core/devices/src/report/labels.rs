//! The labels of a node.

use super::feature_discovery_labels;
use super::label_value::{Labels, label_value};
use super::model::models;
use super::node_report::NodeReport;

/// The prefix of the labels of this project.
const PREFIX: &str = "directx.microsoft.com/";

/// The labels of a node. Every value is valid.
///
/// Where a node has several models, the labels of a model describe the one with the most devices;
/// of equal ones the one with the most memory, then the first by name.
///
/// `with_nvidia` adds the labels of NVIDIA's GPU Feature Discovery, for NVIDIA devices.
#[must_use]
pub fn labels(report: &NodeReport, with_nvidia: bool) -> Labels {
    let models = models(report, |_| true);
    let count: usize = models.iter().map(|model| model.count).sum();
    let mut values = vec![
        ("windows-build", report.host.build.map(|build| build.to_string())),
        ("count", Some(count.to_string())),
    ];
    if let Some(model) = models.first() {
        values.extend([
            ("product", Some(model.name.clone())),
            ("vendor", Some(model.vendor.to_string())),
            ("memory", model.memory_mib.map(|mib| mib.to_string())),
            ("driver-version", model.driver_version.map(|version| version.to_string())),
            ("driver-date", model.driver_date.map(|date| date.to_string())),
            ("driver-model", Some(model.drivers.to_string())),
            ("replicas", Some(model.replicas.to_string())),
            ("sharing-strategy", Some(model.sharing_strategy().to_owned())),
        ]);
    }
    let mut labels: Labels = values
        .into_iter()
        .filter_map(|(name, value)| Some((format!("{PREFIX}{name}"), label_value(&value?)?)))
        .collect();
    for model in &models {
        labels.insert(format!("{PREFIX}count.{}", model.name), model.count.to_string());
    }
    if with_nvidia {
        labels.extend(feature_discovery_labels::labels(report));
    }
    labels
}
