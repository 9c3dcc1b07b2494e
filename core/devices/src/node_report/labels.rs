//! The labels of a node.

use crate::DeviceSet;

use super::feature_discovery_labels;
use super::label_value::{Labels, label_value};
use super::model::models;

/// The prefix of the labels of this project.
const PREFIX: &str = "directx.microsoft.com/";

/// The labels of a node with these devices. Every value is valid.
///
/// Where a node has several models, the labels of a model describe the one with the most devices;
/// of equal ones the one with the most memory, then the first by name.
///
/// `with_nvidia` adds the labels of NVIDIA's GPU Feature Discovery, for NVIDIA devices.
#[must_use]
pub fn labels(set: &DeviceSet, with_nvidia: bool) -> Labels {
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
    if with_nvidia {
        labels.extend(feature_discovery_labels::labels(set));
    }
    labels
}
