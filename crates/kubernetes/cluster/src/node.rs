//! A node object: what it says, and the requests that change it.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Node, NodeCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use kube::api::{Api, ListParams, Patch, PatchParams};
use serde_json::json;

use crate::client::Client;
use crate::error::ClusterError;

/// How many nodes one answer contains at most. A node with many images and annotations has 100 KiB.
pub(crate) const PAGE: u32 = 100;

/// The names of the labels that `manager` has applied to `node`.
#[must_use]
pub fn applied_labels<'a>(node: &'a Node, manager: &str) -> BTreeSet<&'a str> {
    let entries = node.managed_fields().iter().filter(|entry| {
        entry.manager.as_deref() == Some(manager)
            && entry.operation.as_deref() == Some("Apply")
            && entry.subresource.as_deref().unwrap_or_default().is_empty()
    });
    let fields = entries.filter_map(|entry| entry.fields_v1.as_ref());
    let names = fields.filter_map(|fields| fields.0["f:metadata"]["f:labels"].as_object());
    names.flat_map(serde_json::Map::keys).filter_map(|name| name.strip_prefix("f:")).collect()
}

/// Whether `manager` has applied exactly `labels` to `node`, and nobody has changed them.
#[must_use]
pub fn has_applied(node: &Node, manager: &str, labels: &BTreeMap<String, String>) -> bool {
    applied_labels(node, manager).into_iter().eq(labels.keys())
        && labels.iter().all(|(name, value)| node.labels().get(name) == Some(value))
}

/// The condition of `node` with this type.
#[must_use]
pub fn condition<'a>(node: &'a Node, kind: &str) -> Option<&'a NodeCondition> {
    node.status.as_ref()?.conditions.iter().flatten().find(|condition| condition.type_ == kind)
}

/// The positions of the taints of `node` with this key, one for each effect.
fn taints(node: &Node, key: &str) -> Vec<usize> {
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten()).enumerate();
    taints.filter(|(_, taint)| taint.key == key).map(|(position, _)| position).collect()
}

/// Whether `node` has a taint with this key.
#[must_use]
pub fn has_taint(node: &Node, key: &str) -> bool {
    !taints(node, key).is_empty()
}

/// Whether `node` is an earlier state of the same object than `other`. A watch may lag behind the
/// answers to the requests of the same program. After a restore of the server's storage, the
/// versions begin again at an earlier one.
#[must_use]
pub fn is_older(node: &Node, other: &Node) -> bool {
    node.metadata.uid == other.metadata.uid
        && version(node).zip(version(other)).is_some_and(|(this, other)| this < other)
}

fn version(node: &Node) -> Option<u64> {
    node.resource_version()?.parse().ok()
}

/// The condition as it is written at this time. It keeps the time of its last transition unless
/// its status changes.
fn written_at(now: &Time, node: &Node, wanted: &NodeCondition) -> NodeCondition {
    let before = condition(node, &wanted.type_).filter(|before| before.status == wanted.status);
    let since = before.and_then(|before| before.last_transition_time.clone());
    NodeCondition {
        last_transition_time: since.or_else(|| Some(now.clone())),
        last_heartbeat_time: Some(now.clone()),
        ..wanted.clone()
    }
}

impl Client {
    /// A page of the list of all nodes: the first one, or the one with this token. Returns the token
    /// of the next page, if there is one. All pages are as the nodes were at the first one; after
    /// some minutes, the server no longer knows that and answers with 410.
    pub async fn nodes_page(
        &self,
        token: Option<&str>,
    ) -> Result<(Vec<Node>, Option<String>), ClusterError> {
        let mut params = ListParams::default().limit(PAGE);
        params.continue_token = token.map(str::to_owned);
        let page = self.answer("list the nodes", self.nodes().list(&params)).await?;
        Ok((page.items, page.metadata.continue_.filter(|token| !token.is_empty())))
    }

    pub async fn node(&self) -> Result<Node, ClusterError> {
        self.answer("read the node", self.nodes().get(&self.node)).await
    }

    /// Makes `labels` the only labels of the node that this program has applied. Others stay.
    pub async fn apply_labels(
        &self,
        labels: &BTreeMap<String, String>,
    ) -> Result<Node, ClusterError> {
        let name = &self.node;
        let params = self.apply();
        let patch = Patch::Apply(json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
        }));
        self.answer("set the labels of the node", self.nodes().patch(name, &params, &patch)).await
    }

    /// Removes the labels of the node that this program has applied. Others stay.
    pub async fn remove_labels(&self) -> Result<Node, ClusterError> {
        let nodes = self.nodes();
        let name = &self.node;
        let params = self.apply();
        let metadata = json!({"name": name});
        let patch = Patch::Apply(json!({"apiVersion": "v1", "kind": "Node", "metadata": metadata}));
        self.answer("remove the labels of the node", nodes.patch(name, &params, &patch)).await
    }

    /// Makes `wanted` the only conditions of the node, which was `node`, that this program has
    /// applied. Others stay.
    pub async fn apply_conditions(
        &self,
        node: &Node,
        wanted: &[NodeCondition],
    ) -> Result<Node, ClusterError> {
        let now = Time(Timestamp::now());
        let conditions: Vec<NodeCondition> =
            wanted.iter().map(|wanted| written_at(&now, node, wanted)).collect();
        let nodes = self.nodes();
        let name = &self.node;
        let params = self.apply();
        let patch = Patch::Apply(json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
            "status": {"conditions": conditions},
        }));
        let request = nodes.patch_status(name, &params, &patch);
        self.answer("set the conditions of the node", request).await
    }

    /// Removes the conditions with these types from the node.
    pub async fn remove_conditions(&self, kinds: &[&str]) -> Result<Node, ClusterError> {
        let conditions: Vec<_> =
            kinds.iter().map(|kind| json!({"type": kind, "$patch": "delete"})).collect();
        let patch = Patch::Strategic(json!({"status": {"conditions": conditions}}));
        let nodes = self.nodes();
        let params = PatchParams { force: false, ..self.apply() };
        let request = nodes.patch_status(&self.node, &params, &patch);
        self.answer("remove the conditions of the node", request).await
    }

    /// Removes the taints with this key from the node, which was `node` when it was read.
    ///
    /// Taints are one value, so only a JSON patch can keep the others. The server refuses
    /// the patch if the taints have moved since.
    pub async fn remove_taint(&self, node: &Node, key: &str) -> Result<Node, ClusterError> {
        let mut steps = Vec::new();
        // The last taint is removed first, so that the others keep their positions.
        for position in taints(node, key).into_iter().rev() {
            let path = format!("/spec/taints/{position}");
            steps.push(json!({"op": "test", "path": format!("{path}/key"), "value": key}));
            steps.push(json!({"op": "remove", "path": path}));
        }
        let steps = serde_json::from_value(steps.into())
            .map_err(|error| self.failure("remove the taint", kube::Error::SerdeError(error)))?;
        let params = PatchParams { force: false, ..self.apply() };
        let patch = Patch::Json::<Node>(steps);
        let nodes = self.nodes();
        let request = nodes.patch(&self.node, &params, &patch);
        self.answer("remove the taint of the node", request).await
    }

    /// Succeeds if the server would let this program set this label of the node. Nothing is changed.
    pub async fn try_label(&self, label: &str) -> Result<(), ClusterError> {
        let patch = Patch::Merge(json!({"metadata": {"labels": {label: ""}}}));
        let params = PatchParams { dry_run: true, force: false, ..self.apply() };
        let nodes = self.nodes();
        let request = nodes.patch(&self.node, &params, &patch);
        self.answer("try to set a label of the node", request).await.map(drop)
    }

    /// The parameters of server-side apply: what this program applies belongs to it.
    pub(crate) fn apply(&self) -> PatchParams {
        PatchParams::apply(self.program).force()
    }

    pub(crate) fn nodes(&self) -> Api<Node> {
        Api::all(self.kube.clone())
    }
}
