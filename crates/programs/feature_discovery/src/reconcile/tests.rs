use plugin_status::answering_daemons::{NodeListing, NodeState};
use report::{ConditionKind, Message, NodeReport};
use serde_json::{Value, json};

use super::*;
use crate::plugin_history::PluginHistory;

const TAINT: &str = "directx.microsoft.com/not-ready";

fn report() -> NodeReport {
    serde_json::from_value(json!({
        "host": {"platform": "windows"},
        "resources": [{"name": "x/display", "replicas": 1, "devices": [{
            "id": "D", "description": "GPU", "vendorId": 1, "deviceId": 2, "driverModel": "wddm",
            "integrated": false, "detachable": false,
        }]}],
    }))
    .unwrap()
}

/// What is desired of this node, whose plugin lists a healthy device.
fn desired(node: &Node) -> Desired {
    let now = Instant::now();
    let mut plugin = PluginHistory::default();
    plugin.update(NodeState::Known(Box::new(NodeListing::registered(report(), 1))), now);
    Desired::of(&plugin, node, false, now)
}

/// A node that says everything, and has the startup taint and another.
fn complete() -> Value {
    let mut node = json!({
        "metadata": {"labels": {"other": "stays"}},
        "spec": {"taints": [{"key": TAINT, "effect": "NoSchedule"},
            {"key": "other", "effect": "NoSchedule"}]},
        "status": {"allocatable": {"x/display": "1"}},
    });
    let Desired { labels, conditions, .. } = desired(&parsed(&node));
    let fields: Value =
        labels.iter().flatten().map(|(name, _)| (format!("f:{name}"), json!({}))).collect();
    for (name, value) in labels.into_iter().flatten() {
        node["metadata"]["labels"][name] = value.into();
    }
    node["metadata"]["managedFields"] = json!([{"manager": MANAGER, "operation": "Apply",
        "fieldsV1": {"f:metadata": {"f:labels": fields}}}]);
    node["status"]["conditions"] = conditions.iter().map(written).collect();
    node["status"]["conditions"][0]["lastHeartbeatTime"] = "2026-11-22T08:30:00Z".into();
    node
}

fn written(condition: &Condition) -> Value {
    json!({
        "type": condition.kind.name(), "status": condition.status.to_string(),
        "reason": condition.reason, "message": condition.message.to_string(),
    })
}

fn parsed(node: &Value) -> Node {
    serde_json::from_value(node.clone()).unwrap()
}

fn due(node: &Value, taint: Option<&str>) -> Due {
    let node = parsed(node);
    reconcile(&node, &desired(&node), taint, &Attempts::new(), Instant::now())
}

fn changes(node: &Value, taint: Option<&str>) -> Vec<Change> {
    due(node, taint).changes
}

fn labels() -> Change {
    Change::Labels(desired(&parsed(&complete())).labels.unwrap())
}

#[test]
fn a_node_that_says_everything_needs_no_request_but_the_heartbeat() {
    let now = Instant::now();
    let due = due(&complete(), None);
    assert!(due.changes.is_empty());
    let heartbeat = due.next.unwrap() - now;
    assert!(heartbeat >= HEARTBEAT && heartbeat < 2 * HEARTBEAT, "{heartbeat:?}");
}

#[test]
fn an_empty_node_gets_labels_and_both_conditions_in_one_change() {
    let [Change::Labels(_), Change::Conditions(conditions)] = &changes(&json!({}), None)[..] else {
        panic!("two changes")
    };
    let types: Vec<&str> = conditions.iter().map(|condition| condition.kind.name()).collect();
    assert_eq!(types, ["DirectXDevicesHealthy", "DirectXDevicesReady"]);
}

#[test]
fn nothing_is_due_before_the_plugin_has_reported() {
    let node = parsed(&json!({"spec": {"taints": [{"key": TAINT, "effect": "NoSchedule"}]}}));
    let desired = Desired::of(&PluginHistory::default(), &node, false, Instant::now());
    let due = reconcile(&node, &desired, Some(TAINT), &Attempts::new(), Instant::now());
    assert!(due.changes.is_empty() && due.next.is_none() && due.failing.is_empty());
}

#[test]
fn what_others_change_is_corrected() {
    let mut node = complete();
    node["metadata"]["labels"]["directx.microsoft.com/count"] = json!("wrong");
    let [change] = &changes(&node, None)[..] else { panic!("one change") };
    assert!(change.is_same_as(&labels()));
    let mut node = complete();
    node["status"]["conditions"][1]["status"] = json!("False");
    assert!(matches!(changes(&node, None)[..], [Change::Conditions(_)]));
}

#[test]
fn only_the_startup_taint_is_removed_and_only_once_pods_can_use_the_devices() {
    let removed = changes(&complete(), Some(TAINT));
    assert!(matches!(&removed[..], [Change::RemoveTaint(key)] if key == TAINT), "{removed:?}");
    for allocatable in [json!({}), json!({"x/display": "0"}), json!({"x/compute": "1"})] {
        let mut node = complete();
        node["status"]["allocatable"] = allocatable;
        let changes = changes(&node, Some(TAINT));
        assert!(changes.iter().all(|change| change.purpose() != Purpose::Taints), "{changes:?}");
    }
    assert!(changes(&complete(), Some("another/key")).is_empty());
}

#[test]
fn a_request_on_its_way_and_one_that_failed_wait_and_delay_no_other() {
    let node = parsed(&json!({}));
    let now = Instant::now();
    let mut attempts = Attempts::new();
    attempts.of_mut(Purpose::Labels).is_running = true;
    attempts.of_mut(Purpose::Condition).failed(FailureKind::Timeout, None, now);
    let due = reconcile(&node, &desired(&node), None, &attempts, now);
    assert!(due.changes.is_empty());
    assert!(due.next.is_some_and(|next| next > now));
    assert_eq!(due.failing, [Purpose::Condition]);
}

#[test]
fn delays_grow_to_a_minute_and_are_random() {
    let mut delays = growing(Duration::from_millis(500));
    for limit in [1, 2, 4, 8, 16, 32, 60, 60, 60] {
        let delay = delays.next().unwrap();
        let limit = Duration::from_secs(limit);
        assert!(delay >= limit / 2 && delay <= limit, "{delay:?} of {limit:?}");
    }
    let first = || growing(Duration::from_millis(500)).next();
    let first: std::collections::HashSet<Option<Duration>> = (0..20).map(|_| first()).collect();
    assert!(first.len() > 10, "{first:?}");
}

/// A kubelet that refuses a registration may name another socket each time.
#[test]
fn new_words_of_another_program_are_written_every_five_minutes() {
    let start = Instant::now();
    let refused = |words: &str| {
        let mut desired = desired(&parsed(&complete()));
        let message = Message::quoting("waiting for the kubelet".to_owned(), words);
        desired.conditions[1] = ConditionKind::Ready.is_not("NotRegistered", message);
        desired
    };
    let mut attempts = Attempts::new();
    let first = refused("dial unix wddm-1.sock");
    let mut node = complete();
    node["status"]["conditions"] = first.conditions.iter().map(written).collect();
    attempts.accepted(Change::Conditions(first.conditions), start);
    let due = |node: &Value, attempts: &Attempts, words: &str, now| {
        reconcile(&parsed(node), &refused(words), None, attempts, now)
    };
    let second = "dial unix wddm-2.sock";
    let after = due(&node, &attempts, second, start + REPEAT);
    assert!(after.changes.is_empty() && after.next == Some(start + WORDS), "{after:?}");
    let after = due(&node, &attempts, second, start + WORDS);
    assert!(matches!(after.changes[..], [Change::Conditions(_)]), "{after:?}");
    // Another program has changed the condition.
    node["status"]["conditions"][1]["status"] = "True".into();
    let after = due(&node, &attempts, second, start + REPEAT);
    assert!(matches!(after.changes[..], [Change::Conditions(_)]), "{after:?}");
}
