//! What a node object is to say, and what is missing for that. Pure.

use cluster::{Condition, Node, Taint};
use devices::DeviceSet;
use node_report::{CONDITION, LabelFamily, Labels};

/// The field manager of labels and condition.
pub const MANAGER: &str = "directx-feature-discovery";

/// What a node object is to say.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Desired {
    pub(crate) labels: Labels,
    pub(crate) condition: Condition,
    /// The resources with healthy devices.
    pub(crate) resources: Vec<String>,
}

impl Desired {
    /// What the object of a node with these devices is to say.
    pub(crate) fn of(set: &DeviceSet, family: LabelFamily) -> Desired {
        let condition = node_report::condition(set);
        let is_usable = |resource: &&std::sync::Arc<devices::ResourceDevices>| {
            resource.entries().iter().any(|entry| entry.health.is_healthy())
        };
        let usable = set.resources.iter().filter(is_usable);
        Desired {
            labels: node_report::labels(set, family),
            condition: Condition {
                kind: CONDITION.to_owned(),
                status: condition.status.name().to_owned(),
                reason: condition.reason.to_owned(),
                message: condition.message,
            },
            resources: usable.map(|resource| resource.spec.name.to_string()).collect(),
        }
    }

    /// Whether `node` has the condition already.
    pub(crate) fn has_condition(&self, node: &Node) -> bool {
        node.condition(CONDITION).as_ref() == Some(&self.condition)
    }
}

/// A change of the node object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Change {
    /// Apply the labels.
    Labels(Labels),
    /// Set the condition.
    Condition(Condition),
    /// Replace the taints.
    Taints(Vec<Taint>),
}

/// The next change that `node` needs. `startup_taint` is the key of the taint to remove once pods can
/// use the devices.
pub(crate) fn next_change(
    node: &Node,
    desired: &Desired,
    startup_taint: Option<&str>,
) -> Option<Change> {
    if !node.has_applied(MANAGER, &desired.labels) {
        return Some(Change::Labels(desired.labels.clone()));
    }
    if !desired.has_condition(node) {
        return Some(Change::Condition(desired.condition.clone()));
    }
    let mut taints = node.taints();
    let count = taints.len();
    taints.retain(|taint| Some(taint.key()) != startup_taint);
    let is_due = taints.len() < count && advertises(node, &desired.resources);
    is_due.then_some(Change::Taints(taints))
}

/// Whether pods can use every one of these resources of the node.
fn advertises(node: &Node, resources: &[String]) -> bool {
    resources.iter().all(|resource| node.allocatable(resource).is_some_and(|count| count > 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const TAINT: &str = "directx.microsoft.com/not-ready";

    fn desired() -> Desired {
        let condition = Condition {
            kind: CONDITION.to_owned(),
            status: "True".to_owned(),
            reason: "AllHealthy".to_owned(),
            message: "1 of 1 devices are healthy".to_owned(),
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
            "spec": {"taints": [{"key": TAINT, "effect": "NoSchedule"}, {"key": "other"}]},
            "status": {
                "allocatable": {"x/display": "1"},
                "conditions": [{"type": "Ready", "status": "False"}, {"type": CONDITION,
                    "status": "True", "reason": "AllHealthy",
                    "message": "1 of 1 devices are healthy", "lastHeartbeatTime": "earlier"}],
            },
        })
    }

    fn next(node: Value, taint: Option<&str>) -> Option<Change> {
        next_change(&Node::new(node), &desired(), taint)
    }

    #[test]
    fn a_node_that_says_everything_needs_no_request() {
        assert_eq!(next(complete(), None), None);
    }

    #[test]
    fn an_empty_node_gets_labels_and_then_the_condition() {
        assert_eq!(next(json!({}), None), Some(Change::Labels(desired().labels)));
        let mut node = complete();
        node["status"]["conditions"] = json!([]);
        assert_eq!(next(node, None), Some(Change::Condition(desired().condition)));
    }

    #[test]
    fn what_somebody_else_changes_is_corrected() {
        let mut node = complete();
        node["metadata"]["labels"]["a/b"] = json!("wrong");
        assert!(matches!(next(node, None), Some(Change::Labels(_))));
        let mut node = complete();
        node["status"]["conditions"][1]["status"] = json!("False");
        assert!(matches!(next(node, None), Some(Change::Condition(_))));
    }

    #[test]
    fn only_the_startup_taint_is_removed_and_only_once_pods_can_use_the_devices() {
        let Some(Change::Taints(rest)) = next(complete(), Some(TAINT)) else {
            panic!("the taint stays")
        };
        assert_eq!(rest.iter().map(Taint::key).collect::<Vec<_>>(), ["other"]);
        for allocatable in [json!({}), json!({"x/display": "0"}), json!({"x/compute": "1"})] {
            let mut node = complete();
            node["status"]["allocatable"] = allocatable;
            assert_eq!(next(node, Some(TAINT)), None);
        }
        assert_eq!(next(complete(), Some("another/key")), None);
    }
}
