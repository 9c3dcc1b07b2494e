//! A node object: what it says, and the requests that change it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

use http::Method;
use serde_json::{Value, json};

use crate::client::{Body, Call, percent_encoded};
use crate::time::time;
use crate::{Client, ClusterError};

/// A node object as the API server returned it.
#[derive(Clone, Debug)]
pub struct Node(pub(crate) Value);

/// A condition of a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Condition {
    /// Its type.
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Why, for programs.
    pub reason: String,
    /// Why, for administrators.
    pub message: String,
}

/// A taint of a node, with every key that it has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Taint(Value);

impl Taint {
    /// The key of the taint.
    #[must_use]
    pub fn key(&self) -> &str {
        self.0["key"].as_str().unwrap_or_default()
    }
}

impl Node {
    /// The node object `object`.
    #[must_use]
    pub fn new(object: Value) -> Node {
        Node(object)
    }

    /// The value of a label.
    #[must_use]
    pub fn label(&self, name: &str) -> Option<&str> {
        self.0["metadata"]["labels"][name].as_str()
    }

    /// The unique ID of the object.
    #[must_use]
    pub fn uid(&self) -> &str {
        self.0["metadata"]["uid"].as_str().unwrap_or_default()
    }

    /// The names of the labels that `manager` has applied.
    #[must_use]
    pub fn applied_labels(&self, manager: &str) -> BTreeSet<&str> {
        let entries = self.0["metadata"]["managedFields"].as_array().into_iter().flatten();
        let is_ours = |entry: &&Value| {
            entry["manager"] == manager
                && entry["operation"] == "Apply"
                && entry["subresource"].as_str().unwrap_or_default().is_empty()
        };
        let fields = entries.filter(is_ours).map(|entry| &entry["fieldsV1"]["f:metadata"]);
        let names = fields.filter_map(|fields| fields["f:labels"].as_object());
        names.flat_map(serde_json::Map::keys).filter_map(|name| name.strip_prefix("f:")).collect()
    }

    /// Whether `manager` has applied exactly `labels`, and nobody has changed them.
    #[must_use]
    pub fn has_applied(&self, manager: &str, labels: &BTreeMap<String, String>) -> bool {
        let wanted: BTreeSet<&str> = labels.keys().map(String::as_str).collect();
        self.applied_labels(manager) == wanted
            && labels.iter().all(|(name, value)| self.label(name) == Some(value))
    }

    /// The condition of type `kind`.
    #[must_use]
    pub fn condition(&self, kind: &str) -> Option<Condition> {
        let found = self.raw_condition(kind)?;
        let text = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
        let (status, reason, message) = (text("status"), text("reason"), text("message"));
        Some(Condition { kind: kind.to_owned(), status, reason, message })
    }

    fn raw_condition(&self, kind: &str) -> Option<&Value> {
        self.0["status"]["conditions"].as_array()?.iter().find(|entry| entry["type"] == kind)
    }

    /// Its taints.
    #[must_use]
    pub fn taints(&self) -> Vec<Taint> {
        let taints = self.0["spec"]["taints"].as_array();
        taints.into_iter().flatten().cloned().map(Taint).collect()
    }

    /// How much of a resource pods can use; `None` if the node does not offer it.
    #[must_use]
    pub fn allocatable(&self, resource: &str) -> Option<u64> {
        self.0["status"]["allocatable"][resource].as_str()?.parse().ok()
    }

    /// Whether this is an earlier state than `other`. A watch may lag behind the answers to the
    /// requests of the same program.
    #[must_use]
    pub fn is_older_than(&self, other: &Node) -> bool {
        let number =
            |node: &Node| node.version().as_str().and_then(|text| text.parse::<u64>().ok());
        number(self).zip(number(other)).is_some_and(|(this, other)| this < other)
    }

    fn version(&self) -> &Value {
        &self.0["metadata"]["resourceVersion"]
    }
}

impl Client {
    /// Makes `labels` the only labels of node `name` that `manager` has applied. Others stay.
    pub async fn apply_labels(
        &mut self,
        name: &str,
        manager: &str,
        labels: &BTreeMap<String, String>,
    ) -> Result<Node, ClusterError> {
        let body = json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
        });
        let path = node_path(name, "", &format!("?fieldManager={manager}&force=true"));
        self.call(Call { method: Method::PATCH, path, body: Body::Apply(body) }).await.map(Node)
    }

    /// Sets a condition of `node`, which is called `name`. Others stay.
    pub async fn apply_condition(
        &mut self,
        name: &str,
        manager: &str,
        node: &Node,
        condition: &Condition,
        now: SystemTime,
    ) -> Result<Node, ClusterError> {
        let Condition { kind, status, reason, message } = condition;
        let now = Value::from(time(now));
        let before = node.raw_condition(kind).filter(|before| before["status"] == **status);
        let since = before.map_or(&now, |before| &before["lastTransitionTime"]);
        let body = json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
            "status": {"conditions": [{
                "type": kind, "status": status, "reason": reason, "message": message,
                "lastHeartbeatTime": now, "lastTransitionTime": since,
            }]},
        });
        let path = node_path(name, "/status", &format!("?fieldManager={manager}&force=true"));
        self.call(Call { method: Method::PATCH, path, body: Body::Apply(body) }).await.map(Node)
    }

    /// Replaces the taints of `node`, which is called `name`. They are one value, so this is a
    /// conflict if anything has changed since the node was read.
    pub async fn set_taints(
        &mut self,
        name: &str,
        manager: &str,
        node: &Node,
        taints: &[Taint],
    ) -> Result<Node, ClusterError> {
        let taints: Vec<&Value> = taints.iter().map(|taint| &taint.0).collect();
        let body = json!({
            "metadata": {"resourceVersion": node.version()}, "spec": {"taints": taints},
        });
        let path = node_path(name, "", &format!("?fieldManager={manager}"));
        self.call(Call { method: Method::PATCH, path, body: Body::Merge(body) }).await.map(Node)
    }
}

fn node_path(name: &str, subresource: &str, query: &str) -> String {
    format!("/api/v1/nodes/{}{subresource}{query}", percent_encoded(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node() -> Node {
        Node(json!({
            "metadata": {
                "labels": {"a/one": "1", "a/two": "2", "b/three": "3"},
                "managedFields": [
                    {"manager": "m", "operation": "Apply", "fieldsV1": {"f:metadata": {"f:labels":
                        {".": {}, "f:a/one": {}, "f:a/two": {}}}}},
                    {"manager": "m", "operation": "Apply", "subresource": "status", "fieldsV1":
                        {"f:metadata": {"f:labels": {"f:b/three": {}}}}},
                    {"manager": "other", "operation": "Update", "fieldsV1": {"f:metadata":
                        {"f:labels": {"f:b/three": {}}}}},
                ],
            },
        }))
    }

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn labels_are_up_to_date_only_if_none_is_missing_changed_or_left_over() {
        let node = node();
        let applied = |pairs: &[(&str, &str)]| node.has_applied("m", &labels(pairs));
        assert!(applied(&[("a/one", "1"), ("a/two", "2")]));
        assert!(!applied(&[("a/one", "1")]), "one is left over");
        assert!(!applied(&[("a/one", "1"), ("a/two", "3")]), "one has another value");
        assert!(!applied(&[("a/one", "1"), ("a/two", "2"), ("b/three", "3")]), "one is another's");
        assert!(!node.has_applied("n", &labels(&[("a/one", "1")])));
        assert!(node.has_applied("n", &labels(&[])));
    }
}
