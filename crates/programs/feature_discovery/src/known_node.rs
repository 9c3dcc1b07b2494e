//! The node object as far as it is known. Pure.

use std::time::Duration;

use cluster::{Node, ResourceExt as _, is_older};
use tokio::time::Instant;

/// How long a watch may lag behind the answers to requests. A server whose storage was restored
/// from a backup stays behind.
const LAG: Duration = Duration::from_mins(1);

/// The node object as far as it is known.
#[derive(Default)]
pub(crate) struct KnownNode {
    node: Option<Node>,
    /// The newest state that the watch reports, if that is an earlier one, and since when the watch
    /// is behind.
    behind: Option<(Node, Instant)>,
}

impl KnownNode {
    /// The node, if it exists.
    pub(crate) fn get(&self) -> Option<&Node> {
        self.node.as_ref()
    }

    /// The watch reports this state. Returns whether it is another object than the known one.
    pub(crate) fn watched(&mut self, node: Node, now: Instant) -> bool {
        let is_other = !self.is_same_object(&node);
        if self.is_earlier(&node) {
            let since = self.behind.take().map_or(now, |(_, since)| since);
            self.behind = Some((node, since));
        } else {
            self.node = Some(node);
            self.behind = None;
        }
        is_other
    }

    /// The answer to a request has this state. Answers and the changes of the watch arrive in any
    /// order. Returns whether it is about the known object, and not about one that was deleted.
    pub(crate) fn answered(&mut self, node: Node) -> bool {
        let is_same = self.is_same_object(&node);
        if is_same && !self.is_earlier(&node) {
            self.node = Some(node);
        }
        is_same
    }

    /// The node was deleted.
    pub(crate) fn deleted(&mut self) {
        *self = KnownNode::default();
    }

    /// Believes a watch that stays behind, and returns whether that is so.
    pub(crate) fn advance(&mut self, now: Instant) -> bool {
        if self.deadline().is_none_or(|deadline| now < deadline) {
            return false;
        }
        self.node = self.behind.take().map(|(node, _)| node);
        true
    }

    /// When to believe the watch.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.behind.as_ref().map(|(_, since)| *since + LAG)
    }

    fn is_same_object(&self, node: &Node) -> bool {
        self.node.as_ref().is_some_and(|known| known.uid() == node.uid())
    }

    fn is_earlier(&self, node: &Node) -> bool {
        self.node.as_ref().is_some_and(|known| is_older(node, known))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn node(version: &str) -> Node {
        object("1", version)
    }

    fn object(uid: &str, version: &str) -> Node {
        serde_json::from_value(json!({"metadata": {"uid": uid, "resourceVersion": version}}))
            .unwrap()
    }

    fn version(known: &KnownNode) -> Option<String> {
        known.get()?.resource_version()
    }

    #[test]
    fn an_earlier_state_does_not_count_while_the_watch_catches_up() {
        let start = Instant::now();
        let mut known = KnownNode::default();
        assert!(known.watched(node("7"), start), "it was not known");
        assert!(known.answered(node("10")));
        assert!(!known.watched(node("8"), start));
        known.watched(node("9"), start + SECOND);
        assert_eq!(version(&known).as_deref(), Some("10"));
        known.watched(node("10"), start + SECOND);
        assert_eq!(known.deadline(), None);
        known.watched(node("11"), start + SECOND);
        // A slow answer.
        known.answered(node("10"));
        assert!(!known.advance(start + 2 * LAG));
        assert_eq!(version(&known).as_deref(), Some("11"));
    }

    #[test]
    fn a_watch_that_stays_behind_for_a_minute_is_right() {
        let start = Instant::now();
        let mut known = KnownNode::default();
        known.watched(node("1000"), start);
        known.watched(node("5"), start);
        known.watched(node("6"), start + SECOND);
        assert_eq!(known.deadline(), Some(start + LAG));
        assert!(!known.advance(start + LAG - SECOND));
        assert_eq!(version(&known).as_deref(), Some("1000"));
        assert!(known.advance(start + LAG));
        assert_eq!((version(&known).as_deref(), known.deadline()), (Some("6"), None));
    }

    /// A node object is deleted and created again, and the answer to an earlier request is late.
    #[test]
    fn a_late_answer_about_a_deleted_object_does_not_count() {
        let start = Instant::now();
        let mut known = KnownNode::default();
        known.watched(object("old", "10"), start);
        known.deleted();
        assert!(!known.answered(object("old", "11")));
        assert_eq!(version(&known), None);
        assert!(known.watched(object("new", "12"), start));
        assert!(!known.answered(object("old", "13")));
        assert_eq!(version(&known).as_deref(), Some("12"));
        // The watch may miss the deletion.
        assert!(known.watched(object("newest", "14"), start));
    }
}
