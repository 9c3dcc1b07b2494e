//! Events about a node. One that repeats stays one object with a count.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::SystemTime;

use http::Method;
use serde_json::{Value, json};

use crate::client::{Body, Call, percent_encoded};
use crate::time::micro_time;
use crate::{Client, ClusterError, Node};

/// Events about objects without a namespace are in this one.
const NAMESPACE: &str = "default";
/// The longest note, in characters; `events.k8s.io/v1` permits 1024 bytes.
const MAX_NOTE: usize = 256;

/// Something that has happened on a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// Why, for programs: `UpperCamelCase`.
    pub reason: &'static str,
    /// What the program was doing: `UpperCamelCase`.
    pub action: &'static str,
    /// Whether an administrator should act on it.
    pub is_warning: bool,
    /// What has happened, for administrators. Longer ones are cut off.
    pub note: String,
    /// To what on the node. Events with the same reason and subject are one object.
    pub subject: String,
    /// How often it has happened since the program started, at least 1.
    pub count: u64,
}

impl Event {
    /// The name of the object.
    fn object(&self, node: &str) -> String {
        // A fixed key: a restarted program finds its object again.
        let mut hasher = DefaultHasher::new();
        (self.reason, &self.subject).hash(&mut hasher);
        format!("{node}.{:016x}", hasher.finish())
    }
}

impl Client {
    /// Reports `event` of `node`, which is called `name`, as `reporter`.
    pub async fn report(
        &mut self,
        name: &str,
        node: &Node,
        reporter: &str,
        event: &Event,
        now: SystemTime,
    ) -> Result<(), ClusterError> {
        let now = micro_time(now);
        let path = format!("/apis/events.k8s.io/v1/namespaces/{NAMESPACE}/events");
        let object = event.object(name);
        let repeated = json!({
            // A series counts from two.
            "series": {"count": event.count.max(2), "lastObservedTime": now},
        });
        let change = Call {
            method: Method::PATCH,
            path: format!("{path}/{}", percent_encoded(&object)),
            body: Body::Merge(repeated),
        };
        let new = Call {
            method: Method::POST,
            path,
            body: Body::Json(event_object(name, node, reporter, event, &now)),
        };
        match event.count {
            1 => match self.call(new).await {
                // From before a restart.
                Err(error) if error.is_conflict() => self.call(change).await.map(drop),
                other => other.map(drop),
            },
            _ => match self.call(change).await {
                // It was deleted after an hour.
                Err(error) if error.is_not_found() => self.call(new).await.map(drop),
                other => other.map(drop),
            },
        }
    }
}

fn event_object(name: &str, node: &Node, reporter: &str, event: &Event, now: &str) -> Value {
    let text: String = event.note.chars().take(MAX_NOTE).collect();
    json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event",
        "metadata": {"name": event.object(name), "namespace": NAMESPACE},
        "eventTime": now,
        "reportingController": reporter, "reportingInstance": name,
        "action": event.action, "reason": event.reason,
        "type": if event.is_warning { "Warning" } else { "Normal" },
        "note": text,
        "regarding": {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node.uid()},
    })
}
