//! Events about a node. One that repeats stays one object with a count.

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::events::v1::{Event as Object, EventSeries};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Resource, ResourceExt};
use serde_json::json;

use crate::client::Client;
use crate::error::ClusterError;

/// Events about objects without a namespace are in this one.
const NAMESPACE: &str = "default";
/// The longest note that `events.k8s.io/v1` permits, in bytes.
const MAX_NOTE: usize = 1024;
const REPORT: &str = "report an Event";

/// Something that has happened on a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// The reason, for programs, in `UpperCamelCase`.
    pub reason: &'static str,
    /// What the program was doing: `UpperCamelCase`.
    pub action: &'static str,
    /// Whether an administrator should act on it.
    pub is_warning: bool,
    /// What has happened, for administrators. Longer ones are cut off.
    pub note: String,
    /// How often it has happened since it was reported the last time, at least 1.
    pub count: i32,
}

impl Event {
    fn object(&self, program: &str, node: &Node) -> Object {
        // FNV-1a, which stays the same in every release, unlike the standard library's hash.
        let hash = [self.reason, "\n", &self.note]
            .concat()
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            });
        let ends = self.note.char_indices().map(|(start, char)| start + char.len_utf8());
        let end = ends.take_while(|end| *end <= MAX_NOTE).last().unwrap_or(0);
        Object {
            metadata: ObjectMeta {
                // A note cannot change, so another note is another object. A program that restarts
                // finds its object again.
                name: Some(format!("{}.{hash:016x}", node.name_any())),
                namespace: Some(NAMESPACE.to_owned()),
                ..ObjectMeta::default()
            },
            event_time: Some(MicroTime(Timestamp::now())),
            reporting_controller: Some(program.to_owned()),
            reporting_instance: Some(node.name_any()),
            action: Some(self.action.to_owned()),
            reason: Some(self.reason.to_owned()),
            type_: Some(if self.is_warning { "Warning" } else { "Normal" }.to_owned()),
            note: Some(self.note[..end].to_owned()),
            regarding: Some(node.object_ref(&())),
            // A series has at least two Events.
            series: (self.count > 1).then(|| series(self.count)),
            ..Object::default()
        }
    }
}

fn series(count: i32) -> EventSeries {
    EventSeries { count, last_observed_time: MicroTime(Timestamp::now()) }
}

impl Client {
    /// Reports `event` of `node`.
    pub async fn report(&self, node: &Node, event: &Event) -> Result<(), ClusterError> {
        let events: Api<Object> = Api::namespaced(self.kube.clone(), NAMESPACE);
        let object = event.object(self.program, node);
        let created = self.answer(REPORT, events.create(&PostParams::default(), &object)).await;
        match created {
            Err(ClusterError::Refused(_, status)) if status.code == 409 => {}
            other => return other.map(drop),
        }
        // The Event has happened before.
        let name = object.name_any();
        let before = self.answer(REPORT, events.get(&name)).await?;
        let count = before.series.map_or(1, |series| series.count).saturating_add(event.count);
        let patch = Patch::Merge(json!({"series": series(count)}));
        self.answer(REPORT, events.patch(&name, &PatchParams::default(), &patch)).await.map(drop)
    }
}
