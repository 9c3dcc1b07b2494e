//! What a node object is to say, and what is missing for that. Pure.

use cluster::{Condition, Node, Taint};
use devices::DeviceSet;
use node_report::{CONDITION, LabelFamily, Labels};

/// The field manager of labels and condition.
pub(crate) const MANAGER: &str = "directx-feature-discovery";

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
}

/// A change of the node object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Change {
    /// Apply the labels.
    Labels(Labels),
    /// Set the condition.
    Condition(Condition),
    /// Remove the startup taint; these taints stay.
    Taints(Vec<Taint>),
}

/// The next change that `node` needs.
pub(crate) fn next_change(
    node: &Node,
    desired: &Desired,
    startup_taint: Option<&str>,
) -> Option<Change> {
    if !node.has_applied(MANAGER, &desired.labels) {
        return Some(Change::Labels(desired.labels.clone()));
    }
    if node.condition(CONDITION).as_ref() != Some(&desired.condition) {
        return Some(Change::Condition(desired.condition.clone()));
    }
    let key = startup_taint?;
    let is_startup_taint = |taint: &Taint| taint.key() == key;
    let taints = node.taints();
    if !taints.iter().any(is_startup_taint) || !advertises(node, &desired.resources) {
        return None;
    }
    Some(Change::Taints(taints.into_iter().filter(|taint| !is_startup_taint(taint)).collect()))
}

/// Whether pods can use every one of these resources of the node.
fn advertises(node: &Node, resources: &[String]) -> bool {
    resources.iter().all(|resource| node.allocatable(resource).is_some_and(|count| count > 0))
}
