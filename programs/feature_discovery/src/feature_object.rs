//! The labels in a `NodeFeature` object, from which Node Feature Discovery sets them on the node.
//!
//! The object is applied when the labels change, and when a label disappears from the node: another
//! program has then changed or deleted the object. This needs no watch of the objects.

use std::time::Duration;

use cluster::{Client, ClusterError, Node, ResourceExt, has_applied};
use node_report::Labels;
use tokio::time::Instant;

use crate::node_state::MANAGER;

/// How long labels that disappear from the node are not applied again. Node Feature Discovery may
/// not accept them.
const REPEAT: Duration = Duration::from_secs(30);

/// The `NodeFeature` object of this node.
#[derive(Default)]
pub(crate) struct FeatureObject {
    wanted: Option<Labels>,
    applied: Option<Applied>,
}

/// What the API server has accepted.
struct Applied {
    labels: Labels,
    /// The UID of the node that the object belongs to.
    owner: Option<String>,
    at: Instant,
    /// Whether the node has lost one of the labels since.
    is_lost: bool,
}

impl FeatureObject {
    /// Makes `labels` those of the object.
    pub(crate) fn set_labels(&mut self, labels: Labels) {
        self.wanted = Some(labels);
    }

    /// The node object was `before` and is `after` now.
    pub(crate) fn node_changed(&mut self, before: &Node, after: &Node) {
        if let Some(applied) = &mut self.applied {
            applied.is_lost |= loses(&applied.labels, before, after);
        }
    }

    /// When to apply the labels, if they are not applied: not before the node has no labels of this
    /// program, which Node Feature Discovery would take for somebody else's.
    pub(crate) fn due(&self, node: &Node) -> Option<Instant> {
        let wanted = self.wanted.as_ref()?;
        if !has_applied(node, MANAGER, &Labels::new()) {
            return None;
        }
        match &self.applied {
            Some(applied) if applied.labels == *wanted && applied.owner == node.uid() => {
                applied.is_lost.then_some(applied.at + REPEAT)
            }
            _ => Some(Instant::now()),
        }
    }

    /// Applies the labels for the node.
    pub(crate) async fn apply(&mut self, client: &Client, node: &Node) -> Result<(), ClusterError> {
        let labels = self.wanted.clone().unwrap_or_default();
        client.apply_node_feature(node, &labels).await?;
        tracing::info!(labels = labels.len(), "NodeFeature applied");
        let (owner, at) = (node.uid(), Instant::now());
        self.applied = Some(Applied { labels, owner, at, is_lost: false });
        Ok(())
    }
}

/// Whether the node had one of `labels` and no longer has it.
fn loses(labels: &Labels, before: &Node, after: &Node) -> bool {
    let has = |node: &Node, name: &str, value: &String| node.labels().get(name) == Some(value);
    labels.iter().any(|(name, value)| has(before, name, value) && !has(after, name, value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parsed(node: serde_json::Value) -> Node {
        serde_json::from_value(node).unwrap()
    }

    fn node(value: Option<&str>) -> Node {
        let mut labels = json!({"other": "x"});
        if let Some(value) = value {
            labels["a/b"] = value.into();
        }
        parsed(json!({"metadata": {"uid": "1", "labels": labels}}))
    }

    fn labels(value: &str) -> Labels {
        Labels::from([("a/b".to_owned(), value.to_owned())])
    }

    /// The object after the labels were applied for the node with the UID `1`.
    fn applied() -> FeatureObject {
        let (owner, at) = (Some("1".to_owned()), Instant::now());
        FeatureObject {
            wanted: Some(labels("c")),
            applied: Some(Applied { labels: labels("c"), owner, at, is_lost: false }),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_object_is_applied_at_once_for_other_labels_or_another_node() {
        let mut object = FeatureObject::default();
        assert_eq!(object.due(&node(None)), None);
        object.set_labels(labels("c"));
        assert_eq!(object.due(&node(None)), Some(Instant::now()));
        assert_eq!(applied().due(&node(None)), None);
        let mut object = applied();
        object.set_labels(labels("d"));
        assert_eq!(object.due(&node(None)), Some(Instant::now()));
        let replaced = parsed(json!({"metadata": {"uid": "2"}}));
        assert_eq!(applied().due(&replaced), Some(Instant::now()));
    }

    #[tokio::test(start_paused = true)]
    async fn the_object_is_applied_again_once_the_node_has_lost_a_label() {
        let later = Instant::now() + REPEAT;
        for (before, after, due) in [
            (Some("c"), None, Some(later)),
            (Some("c"), Some("changed"), Some(later)),
            (Some("c"), Some("c"), None),
            // Node Feature Discovery has not set it yet, or does not accept it.
            (None, None, None),
            (None, Some("c"), None),
        ] {
            let mut object = applied();
            object.node_changed(&node(before), &node(after));
            assert_eq!(object.due(&node(after)), due, "{before:?} {after:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn labels_of_this_program_on_the_node_are_removed_first() {
        let own = json!({"manager": MANAGER, "operation": "Apply",
            "fieldsV1": {"f:metadata": {"f:labels": {"f:a/b": {}}}}});
        let node = parsed(json!({"metadata": {"uid": "2", "managedFields": [own]}}));
        assert_eq!(applied().due(&node), None);
    }
}
