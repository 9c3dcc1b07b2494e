use daemon::answering_daemons::{NodeListing, NodeState};
use devices::report::NodeReport;
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
    node["status"]["conditions"] = json!(conditions);
    node["status"]["conditions"][0]["lastHeartbeatTime"] = "2026-11-22T08:30:00Z".into();
    node
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
    assert_eq!(due.changes, []);
    let heartbeat = due.next.unwrap() - now;
    assert!(heartbeat > HEARTBEAT / 2 && heartbeat < 2 * HEARTBEAT, "{heartbeat:?}");
}

#[test]
fn an_empty_node_gets_labels_and_both_conditions_in_one_change() {
    let [Change::Labels(_), Change::Conditions(conditions)] = &changes(&json!({}), None)[..] else {
        panic!("two changes")
    };
    let types: Vec<&str> = conditions.iter().map(|condition| condition.type_.as_str()).collect();
    assert_eq!(types, ["DirectXDevicesHealthy", "DirectXDevicesReady"]);
}

#[test]
fn nothing_is_due_before_the_plugin_has_reported() {
    let node = parsed(&json!({"spec": {"taints": [{"key": TAINT, "effect": "NoSchedule"}]}}));
    let desired = Desired::of(&PluginHistory::default(), &node, false, Instant::now());
    let due = reconcile(&node, &desired, Some(TAINT), &Attempts::new(), Instant::now());
    assert_eq!(due, Due::default());
}

#[test]
fn what_others_change_is_corrected() {
    let mut node = complete();
    node["metadata"]["labels"]["directx.microsoft.com/count"] = json!("wrong");
    assert_eq!(changes(&node, None), [labels()]);
    let mut node = complete();
    node["status"]["conditions"][1]["status"] = json!("False");
    assert!(matches!(changes(&node, None)[..], [Change::Conditions(_)]));
}

#[test]
fn only_the_startup_taint_is_removed_and_only_once_pods_can_use_the_devices() {
    let removed = Change::RemoveTaint(TAINT.to_owned());
    assert_eq!(changes(&complete(), Some(TAINT)), [removed]);
    for allocatable in [json!({}), json!({"x/display": "0"}), json!({"x/compute": "1"})] {
        let mut node = complete();
        node["status"]["allocatable"] = allocatable;
        let changes = changes(&node, Some(TAINT));
        assert!(changes.iter().all(|change| change.purpose() != Purpose::Taints), "{changes:?}");
    }
    assert_eq!(changes(&complete(), Some("another/key")), []);
}

#[test]
fn a_request_on_its_way_and_one_that_failed_wait_and_delay_no_other() {
    let node = parsed(&json!({}));
    let now = Instant::now();
    let mut attempts = Attempts::new();
    attempts.of_mut(Purpose::Labels).is_running = true;
    attempts.of_mut(Purpose::Condition).failed("no", None, now);
    let due = reconcile(&node, &desired(&node), None, &attempts, now);
    assert_eq!(due.changes, []);
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
