//! The desired labels, condition and taints of the node object, and which of them it lacks. No I/O.

use cluster::{Node, NodeCondition, has_applied, has_taint};
use devices::report::{Labels, NodeReport, ReportedDevice};
use devices::{CORDON_ANNOTATION, DeviceName};

use crate::monitoring::Purpose;

/// The field manager of labels and condition.
pub const MANAGER: &str = "directx-feature-discovery";

/// The type of the condition.
pub(crate) const CONDITION: &str = "DirectXDevicesHealthy";

/// The desired state of a node object.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Desired {
    pub(crate) labels: Labels,
    pub(crate) condition: NodeCondition,
    /// The resources with healthy devices.
    pub(crate) resources: Vec<String>,
}

impl Desired {
    /// The desired state of the object of a node with this report.
    pub(crate) fn of(report: &NodeReport, gfd_labels: bool) -> Desired {
        let condition = devices::report::devices_healthy(report);
        let usable = report
            .resources
            .iter()
            .filter(|resource| resource.devices.iter().any(ReportedDevice::is_healthy));
        Desired {
            labels: devices::report::labels(report, gfd_labels),
            condition: NodeCondition {
                type_: condition.kind.name().to_owned(),
                status: condition.status.to_string(),
                reason: Some(condition.reason.to_owned()),
                message: Some(condition.message),
                ..NodeCondition::default()
            },
            resources: usable.map(|resource| resource.name.to_string()).collect(),
        }
    }

    /// Whether `node` has the condition already.
    pub(crate) fn has_condition(&self, node: &Node) -> bool {
        let values = |condition: &NodeCondition| {
            let NodeCondition { status, reason, message, .. } = condition.clone();
            (status, reason, message)
        };
        cluster::condition(node, CONDITION).map(values) == Some(values(&self.condition))
    }

    /// The change for this purpose that `node` needs. `startup_taint` is the key of the taint to
    /// remove once pods can use the devices.
    pub(crate) fn change(
        &self,
        purpose: Purpose,
        node: &Node,
        startup_taint: Option<&str>,
    ) -> Option<Change> {
        match purpose {
            Purpose::Labels if !has_applied(node, MANAGER, &self.labels) => {
                Some(Change::Labels(self.labels.clone()))
            }
            Purpose::Condition if !self.has_condition(node) => {
                Some(Change::Condition(self.condition.clone()))
            }
            Purpose::Taints if advertises(node, &self.resources) => {
                let key = startup_taint.filter(|key| has_taint(node, key))?;
                Some(Change::RemoveTaint(key.to_owned()))
            }
            _ => None,
        }
    }
}

/// A change of the node object.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Change {
    /// Apply the labels.
    Labels(Labels),
    /// Set the condition.
    Condition(NodeCondition),
    /// Remove the taint with this key.
    RemoveTaint(String),
}

/// The devices that the annotation of the node takes out of service.
pub(crate) fn cordoned_devices(node: &Node) -> Vec<DeviceName> {
    let annotations = node.metadata.annotations.as_ref();
    let value = annotations.and_then(|annotations| annotations.get(CORDON_ANNOTATION));
    DeviceName::list(value.map_or("", String::as_str))
}

/// Whether there are resources, and pods can use every one of them on the node. While a driver is
/// being installed there may be none.
fn advertises(node: &Node, resources: &[String]) -> bool {
    let allocatable = node.status.as_ref().and_then(|status| status.allocatable.as_ref());
    !resources.is_empty()
        && resources.iter().all(|resource| {
            allocatable
                .and_then(|counts| counts.get(resource))
                .is_some_and(|count| is_positive(&count.0))
        })
}

/// Whether a quantity of Kubernetes, such as `2`, `1k` or `0`, is more than zero.
fn is_positive(quantity: &str) -> bool {
    quantity.trim_start_matches(['+', '0', '.']).starts_with(|first: char| first.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const TAINT: &str = "directx.microsoft.com/not-ready";

    fn desired() -> Desired {
        let condition = NodeCondition {
            type_: CONDITION.to_owned(),
            status: "True".to_owned(),
            reason: Some("AllHealthy".to_owned()),
            message: Some("1 of 1 devices are healthy".to_owned()),
            ..NodeCondition::default()
        };
        let labels = Labels::from([("a/b".to_owned(), "c".to_owned())]);
        Desired { labels, condition, resources: vec!["x/display".to_owned()] }
    }

    /// A node that says everything, and has the startup taint and another.
    fn complete() -> Value {
        json!({
            "metadata": {
                "labels": {"a/b": "c", "other": "stays"},
                "managedFields": [{"manager": MANAGER, "operation": "Apply",
                    "fieldsV1": {"f:metadata": {"f:labels": {"f:a/b": {}}}}}],
            },
            "spec": {"taints": [{"key": TAINT, "effect": "NoSchedule"},
                {"key": "other", "effect": "NoSchedule"}]},
            "status": {
                "allocatable": {"x/display": "1"},
                "conditions": [{"type": "Ready", "status": "False"}, {"type": CONDITION,
                    "status": "True", "reason": "AllHealthy",
                    "message": "1 of 1 devices are healthy", "lastHeartbeatTime": "2026-11-22T08:30:00Z"}],
            },
        })
    }

    fn changes(node: Value, taint: Option<&str>) -> Vec<Change> {
        let node = serde_json::from_value(node).unwrap();
        [Purpose::Labels, Purpose::Condition, Purpose::Taints]
            .into_iter()
            .filter_map(|purpose| desired().change(purpose, &node, taint))
            .collect()
    }

    #[test]
    fn a_node_that_says_everything_needs_no_request() {
        assert_eq!(changes(complete(), None), []);
    }

    #[test]
    fn an_empty_node_gets_labels_and_the_condition() {
        let expected = [Change::Labels(desired().labels), Change::Condition(desired().condition)];
        assert_eq!(changes(json!({}), None), expected);
    }

    #[test]
    fn what_others_change_is_corrected() {
        let mut node = complete();
        node["metadata"]["labels"]["a/b"] = json!("wrong");
        assert_eq!(changes(node, None), [Change::Labels(desired().labels)]);
        let mut node = complete();
        node["status"]["conditions"][1]["status"] = json!("False");
        assert_eq!(changes(node, None), [Change::Condition(desired().condition)]);
    }

    #[test]
    fn a_quantity_is_positive_if_its_number_is() {
        for quantity in ["1", "1k", "20Ki", "0.5", "+3", "1e3", "100m"] {
            assert!(is_positive(quantity), "{quantity}");
        }
        for quantity in ["0", "-1", "0k", "0.00", "0e3", "", "k"] {
            assert!(!is_positive(quantity), "{quantity}");
        }
    }

    #[test]
    fn only_the_startup_taint_is_removed_and_only_once_pods_can_use_the_devices() {
        let removed = || Change::RemoveTaint(TAINT.to_owned());
        // The kubelet reports 1000 devices as 1k.
        for count in ["1", "1k", "10", "1500"] {
            let mut node = complete();
            node["status"]["allocatable"] = json!({"x/display": count});
            assert_eq!(changes(node, Some(TAINT)), [removed()], "{count}");
        }
        for allocatable in [json!({}), json!({"x/display": "0"}), json!({"x/compute": "1"})] {
            let mut node = complete();
            node["status"]["allocatable"] = allocatable;
            assert_eq!(changes(node, Some(TAINT)), []);
        }
        assert_eq!(changes(complete(), Some("another/key")), []);
        let node = serde_json::from_value(complete()).unwrap();
        let without_devices = Desired { resources: Vec::new(), ..desired() };
        assert_eq!(without_devices.change(Purpose::Taints, &node, Some(TAINT)), None);
    }
}
