//! A node object: what it says, and the requests that change it.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;

use crate::{Client, ClusterError, Node, NodeCondition, Taint};

/// Whether `manager` has applied exactly `labels` to `node`, and nobody has changed them.
#[must_use]
pub fn has_applied(node: &Node, manager: &str, labels: &BTreeMap<String, String>) -> bool {
    let entries = node.managed_fields().iter().filter(|entry| {
        entry.manager.as_deref() == Some(manager)
            && entry.operation.as_deref() == Some("Apply")
            && entry.subresource.as_deref().unwrap_or_default().is_empty()
    });
    let fields = entries.filter_map(|entry| entry.fields_v1.as_ref());
    let names = fields.filter_map(|fields| fields.0["f:metadata"]["f:labels"].as_object());
    let names = names.flat_map(serde_json::Map::keys).filter_map(|name| name.strip_prefix("f:"));
    let applied: BTreeSet<&str> = names.collect();
    applied.into_iter().eq(labels.keys())
        && labels.iter().all(|(name, value)| node.labels().get(name) == Some(value))
}

/// The condition of `node` with this type.
#[must_use]
pub fn condition<'a>(node: &'a Node, kind: &str) -> Option<&'a NodeCondition> {
    node.status.as_ref()?.conditions.iter().flatten().find(|condition| condition.type_ == kind)
}

/// Whether `node` is an earlier state than `other`. A watch may lag behind the answers to the
/// requests of the same program.
#[must_use]
pub fn is_older(node: &Node, other: &Node) -> bool {
    let number = |node: &Node| node.resource_version()?.parse::<u64>().ok();
    number(node).zip(number(other)).is_some_and(|(this, other)| this < other)
}

impl Client {
    /// Makes `labels` the only labels of the node that this program has applied. Others stay.
    pub async fn apply_labels(
        &self,
        labels: &BTreeMap<String, String>,
    ) -> Result<Node, ClusterError> {
        let (name, params) = (&self.node, self.apply());
        let patch = Patch::Apply(json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
        }));
        self.answer("set the labels of the node", self.nodes().patch(name, &params, &patch)).await
    }

    /// Sets a condition of the node, which was `node`. Others stay.
    pub async fn apply_condition(
        &self,
        node: &Node,
        wanted: &NodeCondition,
    ) -> Result<Node, ClusterError> {
        let before = condition(node, &wanted.type_).filter(|before| before.status == wanted.status);
        let now = Some(Time(Timestamp::now()));
        let since = before.and_then(|before| before.last_transition_time.clone());
        let condition = NodeCondition {
            last_transition_time: since.or_else(|| now.clone()),
            last_heartbeat_time: now,
            ..wanted.clone()
        };
        let (nodes, name, params) = (self.nodes(), &self.node, self.apply());
        let patch = Patch::Apply(json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
            "status": {"conditions": [condition]},
        }));
        let request = nodes.patch_status(name, &params, &patch);
        self.answer("set the condition of the node", request).await
    }

    /// Replaces the taints of the node, which was `node`. They are one value, so this is a conflict if
    /// anything has changed since.
    pub async fn set_taints(&self, node: &Node, taints: &[Taint]) -> Result<Node, ClusterError> {
        let patch = Patch::Merge(json!({
            "metadata": {"resourceVersion": node.resource_version()}, "spec": {"taints": taints},
        }));
        let (nodes, name) = (self.nodes(), &self.node);
        let params = PatchParams { force: false, ..self.apply() };
        self.answer("set the taints of the node", nodes.patch(name, &params, &patch)).await
    }

    /// The parameters of server-side apply: what this program applies belongs to it.
    pub(crate) fn apply(&self) -> PatchParams {
        PatchParams::apply(self.program).force()
    }

    pub(crate) fn nodes(&self) -> Api<Node> {
        Api::all(self.kube.clone())
    }
}
