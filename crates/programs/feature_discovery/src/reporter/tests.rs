//! The reporter with a server in memory and a paused clock.

use std::path::Path;
use std::time::Duration;

use cluster::TestServer;
use config::{EmptyEnvironment, Flags};
use devices::{Catalog, DeviceSet, DriverModel, Moment};
use host::{Attribute, CORDON_ANNOTATION, DeviceName, HostSnapshot, License};
use plugin_status::answering_daemons::{NodeListing, SilenceReason, SilentDaemon};
use plugin_status::cordon_file;
use process::logging::test_log::Log;
use report::{Message, NodeReport};
use serde_json::{Value, json};

use super::*;
use crate::policy_check::LABEL;

const TAINT: &str = "directx.microsoft.com/not-ready";
const WATCH: &str = "GET /api/v1/nodes";
const NODE: &str = "PATCH /api/v1/nodes/node-1";
const STATUS: &str = "PATCH /api/v1/nodes/node-1/status";
const EVENTS: &str = "POST /apis/events.k8s.io/v1/namespaces/default/events";
const MINUTE: Duration = Duration::from_mins(1);

fn host() -> HostSnapshot {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fixtures/inventories");
    config::inventory::read(&folder.join("aws-t4-two.yaml")).unwrap()
}

/// What the plugin lists on this host.
fn listed(host: &HostSnapshot) -> NodeListing {
    let policy = config::load(&Flags::default(), &EmptyEnvironment).unwrap().policy;
    let set = DeviceSet::next(None, Catalog::new(policy).offer(host), Moment::default());
    NodeListing::registered(NodeReport::of(&set), 1)
}

fn known(listing: NodeListing) -> NodeState {
    NodeState::Known(Box::new(listing))
}

/// A plugin that does not answer.
fn not_reported() -> NodeState {
    let name = "the plugin at x".to_owned();
    NodeState::NotReported(SilentDaemon { name, reason: SilenceReason::Busy })
}

/// Two GPUs.
fn healthy() -> NodeState {
    known(listed(&host()))
}

/// Two GPUs; the first one is unhealthy.
fn unhealthy() -> NodeState {
    let mut host = host();
    host.adapters[0].pnp.as_mut().unwrap().problem_code = 43;
    known(listed(&host))
}

/// Runs `test` while a reporter reports what the plugin of `test` reports.
async fn report(server: &TestServer, test: impl AsyncFnOnce(watch::Sender<NodeState>)) {
    report_with(server, None, test).await;
}

async fn report_with(
    server: &TestServer,
    plugin: Option<PathBuf>,
    test: impl AsyncFnOnce(watch::Sender<NodeState>),
) {
    let startup_taint = Some(TAINT.to_owned());
    let settings = Settings { startup_taint, plugin, ..Settings::default() };
    report_as(server, settings, test).await;
}

async fn report_as(
    server: &TestServer,
    settings: Settings,
    test: impl AsyncFnOnce(watch::Sender<NodeState>),
) {
    let (send, states) = watch::channel(NodeState::NotServed);
    let reporter = Reporter::new(server.client(), settings);
    tokio::select! {
        never = Box::pin(reporter.run(states)) => match never {},
        () = test(send) => {}
    }
}

/// The condition with this type: its status and its reason.
fn condition(server: &TestServer, kind: &str) -> (String, String) {
    let node = serde_json::from_value(server.node()).unwrap();
    let condition = cluster::condition(&node, kind).cloned().unwrap_or_default();
    (condition.status, condition.reason.unwrap_or_default())
}

fn is_healthy(server: &TestServer) -> (String, String) {
    condition(server, "DirectXDevicesHealthy")
}

fn is_ready(server: &TestServer) -> (String, String) {
    condition(server, "DirectXDevicesReady")
}

fn both(status: &str, reason: &str) -> (String, String) {
    (status.to_owned(), reason.to_owned())
}

fn set_allocatable(server: &TestServer, count: &str) {
    server.change(|node| {
        node["status"]["allocatable"] = json!({"directx.microsoft.com/display": count});
    });
}

/// The names of the Events that were reported since the last call of `requests`.
fn events(server: &TestServer) -> Vec<String> {
    let mut events = server.requests();
    events.retain(|request| request.name == EVENTS);
    events.iter().map(|event| event.body["reason"].as_str().unwrap().to_owned()).collect()
}

fn heartbeat(server: &TestServer, number: u32) {
    server.change(|node| node["status"]["images"] = json!([{"sizeBytes": number}]));
}

/// Method and path of the requests since the last call.
fn requests(server: &TestServer) -> Vec<String> {
    server.requests().into_iter().map(|request| request.name).collect()
}

fn writes(server: &TestServer) -> usize {
    requests(server).iter().filter(|request| *request != WATCH).count()
}

/// Nothing else changes meanwhile that would wake the reporter.
#[tokio::test(start_paused = true)]
async fn a_device_that_gets_no_license_is_an_event_after_15_minutes() {
    let server = TestServer::new(json!({}));
    report(&server, async |states| {
        let mut host = host();
        host.adapters[0].nvidia.license = Some(License::MISSING);
        states.send(known(listed(&host))).unwrap();
        sleep(Duration::from_secs(899)).await;
        assert_eq!(events(&server), [""; 0]);
        sleep(Duration::from_secs(2)).await;
        assert_eq!(events(&server), ["DirectXDeviceUnlicensed"]);
        sleep(60 * MINUTE).await;
        assert_eq!(events(&server), [""; 0]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_start_needs_three_requests_and_a_restart_one() {
    let server = TestServer::new(json!({}));
    for expected in [&[WATCH, NODE, STATUS][..], &[WATCH]] {
        report(&server, async |states| {
            states.send(healthy()).unwrap();
            sleep(MINUTE).await;
            assert_eq!(requests(&server), expected);
        })
        .await;
    }
}

/// An earlier version set the label `hcs-schema`.
#[tokio::test(start_paused = true)]
async fn a_label_that_is_no_longer_computed_is_removed() {
    let server = TestServer::new(json!({
        "metadata": {
            "labels": {"directx.microsoft.com/hcs-schema": "2.5", "example.com/team": "graphics"},
            "managedFields": [{"manager": "directx-feature-discovery", "operation": "Apply",
                "fieldsV1": {"f:metadata": {"f:labels": {"f:directx.microsoft.com/hcs-schema": {}}}}}],
        },
    }));
    report(&server, async |states| {
        states.send(healthy()).unwrap();
        sleep(MINUTE).await;
    })
    .await;
    let labels = server.node()["metadata"]["labels"].clone();
    assert_eq!(labels["directx.microsoft.com/hcs-schema"], Value::Null);
    assert_eq!(
        [&labels["directx.microsoft.com/count"], &labels["example.com/team"]],
        ["2", "graphics"]
    );
}

#[tokio::test(start_paused = true)]
async fn only_heartbeats_are_written_while_nothing_changes() {
    let server = TestServer::new(json!({}));
    report(&server, async |states| {
        states.send(healthy()).unwrap();
        sleep(MINUTE).await;
        assert_eq!(writes(&server), 2);
        let mut heartbeats = 0;
        for number in 0..100 {
            heartbeat(&server, number);
            states.send(healthy()).unwrap();
            sleep(5 * MINUTE).await;
            let requests = requests(&server);
            assert!(requests.iter().all(|request| request == STATUS || request == WATCH));
            heartbeats += requests.iter().filter(|request| *request == STATUS).count();
        }
        // In 500 minutes.
        assert!((6..=8).contains(&heartbeats), "{heartbeats}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_device_that_flaps_changes_the_condition_every_ten_seconds() {
    let server = TestServer::new(json!({}));
    report(&server, async |states| {
        for _ in 0..60 {
            states.send(healthy()).unwrap();
            sleep(MINUTE / 120).await;
            states.send(unhealthy()).unwrap();
            sleep(MINUTE / 120).await;
        }
        let changes = requests(&server).iter().filter(|request| *request == STATUS).count();
        assert!((2..=7).contains(&changes), "{changes}");
        sleep(MINUTE / 4).await;
        assert_eq!(is_healthy(&server).0, "False");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_reported_and_retried_until_it_ends() {
    for (code, hint) in
        [(401, "expired"), (403, "deploy/feature-discovery.yml"), (409, ""), (500, "")]
    {
        let log = Log::start();
        let server = TestServer::new(json!({}));
        report(&server, async |states| {
            states.send(healthy()).unwrap();
            sleep(MINUTE).await;
            server.refuse(code, "the reason", "");
            states.send(unhealthy()).unwrap();
            let _ = server.requests();
            sleep(60 * MINUTE).await;
            // The delays are at least 0.5, 1, 2, ... and 30 s, and less than twice as long.
            let attempts = writes(&server);
            assert!((60..500).contains(&attempts), "{attempts}");
            let text = log.text();
            assert!(text.contains(&format!("with {code}: the reason")), "{text}");
            assert!(text.contains(hint), "{text}");
            let lines = text.matches("cannot change the node object").count();
            assert!((1..=9).contains(&lines), "{lines} lines: {text}");
            server.accept();
            sleep(2 * MINUTE).await;
        })
        .await;
        assert_eq!(is_healthy(&server).0, "False");
        let text = log.text();
        assert!(text.contains("the API server accepts changes of the node again"), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_outage_is_reported_and_changes_meanwhile_are_written_after_it() {
    let log = Log::start();
    let server = TestServer::new(json!({}));
    report(&server, async |states| {
        states.send(healthy()).unwrap();
        sleep(MINUTE).await;
        server.run(false);
        // Until the connections are broken.
        sleep(Duration::from_millis(1)).await;
        states.send(unhealthy()).unwrap();
        let _ = server.requests();
        sleep(60 * MINUTE).await;
        assert_eq!(requests(&server).len(), 0);
        let text = log.text();
        assert!(text.matches("cannot follow the node object").count() < 10, "{text}");
        assert!(text.contains("cannot reach the API server https://127.0.0.1:1"), "{text}");
        server.run(true);
        sleep(2 * MINUTE).await;
        assert_eq!(requests(&server).iter().filter(|request| *request == WATCH).count(), 1);
    })
    .await;
    assert_eq!(is_healthy(&server).0, "False");
    assert!(log.text().contains("following the node object again"), "{}", log.text());
}

#[tokio::test(start_paused = true)]
async fn a_program_that_undoes_a_change_each_time_causes_few_requests() {
    let server = TestServer::new(json!({}));
    report(&server, async |states| {
        states.send(healthy()).unwrap();
        sleep(MINUTE).await;
        let _ = server.requests();
        for _ in 0..600 {
            server.change(|node| node["status"]["conditions"] = json!([]));
            sleep(Duration::from_secs(1)).await;
        }
        let count = writes(&server);
        assert!((18..=22).contains(&count), "{count}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_startup_taint_is_removed_with_the_newest_version_of_the_node() {
    let taint = |key: &&str| json!({"key": key, "effect": "NoSchedule"});
    let taints = |keys: &[&str]| -> Value { keys.iter().map(taint).collect() };
    let node = json!({"spec": {"taints": taints(&[TAINT, "other"])}});
    let server = TestServer::new(node);
    report(&server, async |states| {
        states.send(healthy()).unwrap();
        sleep(MINUTE).await;
        assert_eq!(server.node()["spec"]["taints"], taints(&[TAINT, "other"]));
        let _ = server.requests();
        // The first attempt is made before the second change is known.
        server.change(|node| {
            node["status"]["allocatable"] = json!({"directx.microsoft.com/display": "2"});
        });
        server.refuse(409, "the object has been modified", "");
        sleep(Duration::from_millis(1)).await;
        server.change(|node| node["spec"]["taints"] = taints(&[TAINT, "other", "new"]));
        server.accept();
        sleep(MINUTE).await;
    })
    .await;
    assert_eq!(server.node()["spec"]["taints"], taints(&["other", "new"]));
    let mut changes = requests(&server);
    changes.retain(|request| request == NODE);
    assert_eq!(changes.len(), 2, "a refused one and one with the newest version");
}

#[tokio::test(start_paused = true)]
async fn a_device_that_is_unhealthy_at_the_start_is_an_event_but_not_after_a_restart() {
    let server = TestServer::new(json!({}));
    for expected in [&[WATCH, NODE, STATUS, EVENTS][..], &[WATCH]] {
        report(&server, async |states| {
            states.send(unhealthy()).unwrap();
            sleep(MINUTE).await;
            assert_eq!(requests(&server), expected);
        })
        .await;
    }
    // The second GPU also became unhealthy while the program was not running.
    report(&server, async |states| {
        let mut host = host();
        for adapter in &mut host.adapters {
            adapter.pnp.as_mut().unwrap().problem_code = 43;
        }
        states.send(known(listed(&host))).unwrap();
        sleep(MINUTE).await;
        // The Event of the first one exists already.
        let mut sent = requests(&server);
        let events = sent.split_off(2);
        assert_eq!(sent, [WATCH, STATUS]);
        let methods: Vec<&str> = events.iter().filter_map(|name| name.split(' ').next()).collect();
        assert_eq!(methods, ["POST", "GET", "PATCH", "POST"], "{events:?}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn each_rejected_configuration_is_one_event_also_one_before_the_start() {
    let server = TestServer::new(json!({}));
    report(&server, async |states| {
        for (error, expected) in [
            (Some("first"), 1),
            (Some("first"), 0),
            (None, 0),
            (Some("second"), 1),
            (Some("second"), 0),
        ] {
            let mut listing = listed(&host());
            listing.rejected_configurations.extend(error.map(str::to_owned));
            states.send_replace(known(listing));
            sleep(MINUTE).await;
            assert_eq!(events(&server).len(), expected, "{error:?}");
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_annotation_becomes_the_file_and_a_name_of_no_device_one_event() {
    let log = Log::start();
    let directory = tempfile::tempdir().unwrap();
    let file = cordon_file::path_in(directory.path());
    // What an earlier run has left.
    cordon_file::write(&file, &DeviceName::list("PCIROOT(7)")).unwrap();
    let names = || std::fs::read_to_string(&file).unwrap_or_default();
    let server = TestServer::new(json!({}));
    report_with(&server, Some(directory.path().into()), async |states| {
        assert_eq!(names(), "PCIROOT(7)\n", "the node is not known");
        states.send(healthy()).unwrap();
        sleep(MINUTE).await;
        assert!(!file.exists());

        server.change(|node| {
            let names = "PCIROOT(9), PCIROOT(0)#PCI(1B00)\n";
            node["metadata"]["annotations"] = json!({CORDON_ANNOTATION: names, "other": "x"});
        });
        sleep(MINUTE).await;
        assert_eq!(names(), "PCIROOT(0)#PCI(1B00)\nPCIROOT(9)\n");
        let mut host = host();
        host.cordoned = cordon_file::devices_in(file.clone());
        let _ = requests(&server);
        for expected in [2, 0] {
            states.send(known(listed(&host))).unwrap();
            sleep(MINUTE).await;
            let events = requests(&server).iter().filter(|request| *request == EVENTS).count();
            assert_eq!(events, expected, "an unhealthy device and a wrong name");
        }

        server.run(false);
        sleep(MINUTE).await;
        assert_eq!(names().lines().count(), 2, "the last known names");
        server.run(true);
        server.change(|node| node["metadata"]["annotations"] = json!({"other": "x"}));
        sleep(2 * MINUTE).await;
        assert!(!file.exists());
    })
    .await;
    assert!(log.text().contains("`PCIROOT(9)` in the node's annotation"), "{}", log.text());
}

#[tokio::test(start_paused = true)]
async fn a_file_for_the_plugin_that_cannot_be_written_is_written_later() {
    for is_right_already in [false, true] {
        let log = Log::start();
        let directory = tempfile::tempdir().unwrap();
        let missing = directory.path().join("device-plugins");
        let file = cordon_file::path_in(&missing);
        let annotations = json!({CORDON_ANNOTATION: "PCIROOT(0)"});
        let server = TestServer::new(json!({"metadata": {"annotations": annotations}}));
        report_with(&server, Some(missing.clone()), async |states| {
            states.send(healthy()).unwrap();
            sleep(MINUTE).await;
            assert_eq!(events(&server), ["DirectXCordonNotApplied"]);
            std::fs::create_dir(&missing).unwrap();
            if is_right_already {
                cordon_file::write(&file, &DeviceName::list("PCIROOT(0)")).unwrap();
            }
            sleep(MINUTE).await;
            assert!(file.exists());
        })
        .await;
        let text = log.text();
        let lines = text.matches("cannot hand cordoned devices to the plugin").count();
        assert!((1..=5).contains(&lines), "{lines} lines: {text}");
        assert!(text.contains("the plugin gets cordoned devices again"), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_asks_for_a_pause_of_seven_seconds_gets_it() {
    let server = TestServer::new(json!({}));
    server.refuse(429, "", "PATCH");
    report(&server, async |states| {
        states.send(healthy()).unwrap();
        for expected in [[NODE, STATUS], [NODE, STATUS]] {
            sleep(Duration::from_millis(6900)).await;
            let mut sent = requests(&server);
            sent.retain(|request| request != WATCH);
            sent.sort();
            assert_eq!(sent, expected);
            sleep(Duration::from_millis(600)).await;
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_change_that_is_refused_delays_no_other() {
    for (path, others) in [
        ("/status", &[NODE, EVENTS][..]),
        ("/nodes/node-1", &[EVENTS]),
        ("/events", &[NODE, STATUS]),
    ] {
        let server = TestServer::new(json!({}));
        server.refuse(403, "no", path);
        report(&server, async |states| {
            states.send(unhealthy()).unwrap();
            sleep(MINUTE).await;
        })
        .await;
        let sent = requests(&server);
        for other in others {
            let count = sent.iter().filter(|request| request == other).count();
            assert_eq!(count, 1, "{path}: {other}: {sent:?}");
        }
        assert!(sent.iter().filter(|request| request.contains(path)).count() > 3, "{sent:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_server_starves_no_watch_while_devices_change() {
    let server = TestServer::new(json!({}));
    server.answer_after(Duration::from_secs(12), "");
    report(&server, async |states| {
        for state in [healthy(), unhealthy(), healthy(), unhealthy()] {
            states.send(state).unwrap();
            sleep(Duration::from_secs(10)).await;
        }
    })
    .await;
    let mut sent = requests(&server);
    sent.truncate(3);
    sent.sort();
    assert_eq!(sent, [WATCH, NODE, STATUS]);
}

#[tokio::test(start_paused = true)]
async fn a_change_that_is_not_answered_delays_no_other() {
    let server = TestServer::new(json!({
        "spec": {"taints": [{"key": TAINT, "effect": "NoSchedule"}]},
        "status": {"allocatable": {"directx.microsoft.com/display": "1k"}},
    }));
    server.answer_after(Duration::from_hours(1), "/status");
    report(&server, async |states| {
        states.send(unhealthy()).unwrap();
        sleep(Duration::from_secs(1)).await;
        let mut sent = requests(&server);
        sent.sort();
        assert_eq!(sent, [WATCH, NODE, NODE, EVENTS]);
        assert_eq!(server.node()["spec"]["taints"], json!([]));
        // Other devices have other labels.
        let mut host = host();
        host.adapters.pop();
        states.send(known(listed(&host))).unwrap();
        sleep(Duration::from_secs(1)).await;
        assert_eq!(requests(&server)[0], NODE);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn watches_that_end_at_once_begin_again_after_growing_pauses() {
    let server = TestServer::new(json!({}));
    report(&server, async |states| {
        states.send(healthy()).unwrap();
        for _ in 0..600 {
            sleep(MINUTE / 600).await;
            server.end_watches();
        }
    })
    .await;
    let count = requests(&server).iter().filter(|request| *request == WATCH).count();
    // The pauses are at least 2, 4, 8, 16 and 30 s, and less than twice as long.
    assert!((4..=6).contains(&count), "{count}");
}

#[tokio::test(start_paused = true)]
async fn watches_that_lasted_and_end_together_begin_again_soon_and_not_together() {
    let server = TestServer::new(json!({}));
    let mut pauses = std::collections::HashSet::new();
    report(&server, async |states| {
        states.send(healthy()).unwrap();
        for _ in 0..20 {
            sleep(2 * MINUTE).await;
            let _ = server.requests();
            server.end_watches();
            let ended = Instant::now();
            while !requests(&server).contains(&WATCH.to_owned()) {
                sleep(Duration::from_millis(1)).await;
            }
            let pause = ended.elapsed();
            // The pause is seen up to two steps of the loop above late.
            let latest = 2 * PAUSE + Duration::from_millis(2);
            assert!(pause >= PAUSE && pause <= latest, "{pause:?}");
            pauses.insert(pause);
        }
    })
    .await;
    assert!(pauses.len() > 10, "{pauses:?}");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_applied_before_the_first_report_and_an_outage_is_one_event() {
    let server = TestServer::new(json!({"status": {"conditions": [
        {"type": "DirectXDevicesHealthy", "status": "True", "reason": "AllHealthy"},
    ]}}));
    report(&server, async |states| {
        sleep(Duration::from_secs(59)).await;
        assert_eq!(requests(&server), [WATCH]);
        // A node whose plugin does not run is not healthy.
        sleep(10 * MINUTE).await;
        assert_eq!(is_healthy(&server), both("Unknown", "PluginNotRunning"));
        assert_eq!(is_ready(&server), both("Unknown", "PluginNotRunning"));
        assert_eq!(server.node()["metadata"]["labels"], Value::Null);
        assert_eq!(events(&server), ["DirectXPluginNotRunning"]);

        states.send(healthy()).unwrap();
        sleep(MINUTE).await;
        assert_eq!(is_healthy(&server), both("True", "AllHealthy"));
        let labels = server.node()["metadata"]["labels"].clone();
        let _ = requests(&server);
        for state in [NodeState::NotServed, not_reported()] {
            states.send(state).unwrap();
            sleep(MINUTE / 3).await;
        }
        assert_eq!(requests(&server).len(), 0, "a restart takes less than a minute");
        sleep(20 * MINUTE).await;
        assert_eq!(is_healthy(&server), both("Unknown", "PluginNotResponding"));
        assert_eq!(server.node()["metadata"]["labels"], labels);
        assert_eq!(events(&server), ["DirectXPluginNotResponding"]);
    })
    .await;
}

/// After a restart of the node, both daemons and this program start at the same time.
#[tokio::test(start_paused = true)]
async fn labels_ready_and_taint_wait_for_the_second_daemon_and_the_health_does_not() {
    let taint = json!({"key": TAINT, "effect": "NoSchedule"});
    let labels = json!({"directx.microsoft.com/count": "9"});
    let node = json!({"metadata": {"labels": labels}, "spec": {"taints": [taint]}});
    for (is_announced, is_back) in [(true, true), (true, false), (false, false)] {
        let server = TestServer::new(node.clone());
        set_allocatable(&server, "2");
        let has_taint = || server.node()["spec"]["taints"] != json!([]);
        let count = || server.node()["metadata"]["labels"]["directx.microsoft.com/count"].clone();
        let mut one = listed(&host());
        one.free_models = vec![DriverModel::Mcdm];
        if is_announced {
            let name = "the plugin for the driver model mcdm".to_owned();
            one.silent = vec![SilentDaemon { name, reason: SilenceReason::NotRunning }];
        }
        report(&server, async |states| {
            states.send(known(one)).unwrap();
            sleep(Duration::from_secs(59)).await;
            assert_eq!((count(), has_taint()), ("9".into(), true));
            assert_eq!(is_healthy(&server), both("True", "AllHealthy"));
            assert_eq!(is_ready(&server), both("", ""));
            if is_back {
                states.send(healthy()).unwrap();
                sleep(Duration::from_secs(20)).await;
                assert_eq!(is_ready(&server), both("True", "DevicesReady"));
            } else {
                sleep(Duration::from_secs(20)).await;
            }
            assert_eq!(count(), "2");
            assert_eq!(
                has_taint(),
                is_announced && !is_back,
                "it waits for a daemon that is announced"
            );
            if is_announced && !is_back {
                assert_eq!(is_ready(&server), both("False", "PluginNotRunning"));
                let events = events(&server);
                assert!(events.contains(&"DirectXPluginNotRunning".to_owned()), "{events:?}");
            }
        })
        .await;
    }
}

/// A GPU that fails is reported, although another daemon hangs.
#[tokio::test(start_paused = true)]
async fn a_daemon_that_hangs_does_not_hide_a_device_of_another_one() {
    let server = TestServer::new(json!({}));
    set_allocatable(&server, "2");
    report(&server, async |states| {
        states.send(healthy()).unwrap();
        sleep(2 * MINUTE).await;
        let NodeState::Known(mut listing) = unhealthy() else { unreachable!() };
        let name = "the plugin at /x/mcdm-1.sock".to_owned();
        listing.silent = vec![SilentDaemon { name, reason: SilenceReason::Busy }];
        states.send(known(*listing)).unwrap();
        sleep(MINUTE / 2).await;
        assert_eq!(is_healthy(&server), both("False", "UnhealthyDevices"));
        assert_eq!(is_ready(&server), both("True", "DevicesReady"));
        assert_eq!(events(&server), ["DirectXDeviceUnhealthy"]);
        sleep(MINUTE).await;
        assert_eq!(is_healthy(&server), both("False", "UnhealthyDevices"));
        assert_eq!(is_ready(&server), both("False", "PluginNotResponding"));
        assert_eq!(events(&server), ["DirectXPluginNotResponding"]);
        states.send(healthy()).unwrap();
        sleep(MINUTE).await;
        assert_eq!(is_ready(&server), both("True", "DevicesReady"));
    })
    .await;
}

/// The plugin ends and is back before the kubelet forgets its devices.
#[tokio::test(start_paused = true)]
async fn a_restart_of_the_plugin_changes_nothing() {
    let server = TestServer::new(json!({}));
    set_allocatable(&server, "2");
    report(&server, async |states| {
        states.send(healthy()).unwrap();
        sleep(MINUTE).await;
        let _ = requests(&server);
        states.send(NodeState::NotServed).unwrap();
        sleep(MINUTE / 2).await;
        let mut listing = listed(&host());
        for served in listing.served.values_mut() {
            served.instance = 2;
        }
        states.send(known(listing)).unwrap();
        sleep(2 * MINUTE).await;
        assert_eq!(requests(&server).len(), 0);
    })
    .await;
}

/// As after the installation of a driver with a restart of the plugin.
#[tokio::test(start_paused = true)]
async fn a_device_that_moves_to_another_resource_is_one_event() {
    let server = TestServer::new(json!({}));
    report(&server, async |states| {
        states.send(healthy()).unwrap();
        sleep(MINUTE).await;
        assert_eq!(events(&server), [""; 0]);
        let mut host = host();
        host.adapters[0].attributes = [Attribute::D3d12CoreCompute].into_iter().collect();
        for instance in 2..4 {
            states.send(NodeState::NotServed).unwrap();
            sleep(MINUTE / 2).await;
            let mut listing = listed(&host);
            listing.served.values_mut().for_each(|served| served.instance = instance);
            states.send(known(listing)).unwrap();
            sleep(MINUTE).await;
        }
        assert_eq!(events(&server), ["DirectXDeviceMoved"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_host_without_devices_has_none() {
    let server = TestServer::new(json!({}));
    report(&server, async |states| {
        states.send(known(listed(&HostSnapshot::default()))).unwrap();
        sleep(MINUTE).await;
    })
    .await;
    assert_eq!(server.node()["metadata"]["labels"]["directx.microsoft.com/count"], "0");
    assert_eq!(is_healthy(&server), both("Unknown", "NoDevices"));
    assert_eq!(is_ready(&server), both("False", "NoHealthyDevices"));
}

#[tokio::test(start_paused = true)]
async fn devices_are_ready_when_the_node_reports_them() {
    let server = TestServer::new(json!({}));
    report(&server, async |states| {
        let mut listing = listed(&host());
        for served in listing.served.values_mut() {
            served.not_registered = Some("waiting for the kubelet".to_owned().into());
        }
        states.send(known(listing)).unwrap();
        sleep(MINUTE).await;
        assert_eq!(is_ready(&server), both("False", "NotRegistered"));
        states.send(healthy()).unwrap();
        sleep(MINUTE).await;
        assert_eq!(is_ready(&server), both("False", "NotAllocatable"));
        set_allocatable(&server, "2");
        sleep(MINUTE).await;
        assert_eq!(is_ready(&server), both("True", "DevicesReady"));
        // Another plugin waits and has more devices of the resource.
        let mut listing = listed(&host());
        for served in listing.served.values_mut() {
            served.incomplete = Some("none lists PCI".to_owned());
        }
        states.send(known(listing)).unwrap();
        sleep(MINUTE).await;
        assert_eq!(is_ready(&server), both("False", "NotRegistered"));
        states.send(healthy()).unwrap();
        set_allocatable(&server, "0");
        sleep(MINUTE).await;
        assert_eq!(is_ready(&server), both("False", "NotAllocatable"));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_the_startup_taint_waits_for_is_an_event_after_a_minute() {
    let log = Log::start();
    let taints = json!([{"key": TAINT, "effect": "NoSchedule"}]);
    let server = TestServer::new(json!({"spec": {"taints": taints}}));
    report(&server, async |states| {
        states.send(healthy()).unwrap();
        sleep(Duration::from_secs(59)).await;
        assert!(events(&server).is_empty());
        sleep(10 * MINUTE).await;
        let mut sent = server.requests();
        sent.retain(|request| request.name == EVENTS);
        let [event] = &sent[..] else { panic!("one Event") };
        let note = "the startup taint directx.microsoft.com/not-ready stays: \
                    directx.microsoft.com/display is not allocatable yet";
        assert_eq!(
            (&event.body["reason"], &event.body["note"]),
            (&json!("DirectXDevicesNotReady"), &json!(note))
        );
        set_allocatable(&server, "2");
        sleep(MINUTE).await;
        assert_eq!(server.node()["spec"]["taints"], json!([]));
    })
    .await;
    assert!(log.text().contains("the startup taint stays"), "{}", log.text());
}

/// The cluster has the policy of an earlier version of this program.
#[tokio::test(start_paused = true)]
async fn a_policy_that_knows_only_the_first_condition_does_not_prevent_it() {
    let log = Log::start();
    let server = TestServer::new(json!({}));
    let policy = "ValidatingAdmissionPolicy 'directx-feature-discovery' denied request";
    server.refuse(422, policy, "DirectXDevicesReady");
    report(&server, async |states| {
        states.send(healthy()).unwrap();
        sleep(MINUTE).await;
        assert_eq!(is_healthy(&server), both("True", "AllHealthy"));
        assert_eq!(is_ready(&server).0, "");
        states.send(unhealthy()).unwrap();
        sleep(MINUTE).await;
        assert_eq!(is_healthy(&server), both("False", "UnhealthyDevices"));
        let _ = requests(&server);
        sleep(60 * MINUTE).await;
        let count = writes(&server);
        assert!((12..=40).contains(&count), "{count}");
        server.accept();
        sleep(10 * MINUTE).await;
        assert_eq!(is_ready(&server), both("False", "NotAllocatable"));
    })
    .await;
    assert!(log.text().contains("deploy/feature-discovery.yml"), "{}", log.text());
}

/// The refusals of the API server's admission, of RBAC, and of a server that restarts.
const BY_POLICY: &str = "nodes \"node-1\" is forbidden: ValidatingAdmissionPolicy 'team-directx-feature-discovery' \
     with binding 'team-directx-feature-discovery' denied request: directx-feature-discovery may set \
     only its own labels";
const BY_WEBHOOK: &str = "admission webhook \"validate.example.com\" denied the request: no";
const BY_RBAC: &str = "nodes \"node-1\" is forbidden: User \
     \"system:serviceaccount:kube-system:directx-feature-discovery\" cannot patch resource \"nodes\" \
     in API group \"\" at the cluster scope";

/// Runs `test` while a reporter checks the policy, and returns the log.
async fn checked(server: &TestServer, test: impl AsyncFnOnce()) -> String {
    let log = Log::start();
    let settings = Settings { check_policy: true, ..Settings::default() };
    report_as(server, settings, async |states| {
        states.send(healthy()).unwrap();
        test().await;
    })
    .await;
    log.text()
}

/// How many labels were tried since the last call of `requests`.
fn tries(server: &TestServer) -> usize {
    let requests = server.requests();
    let tried = requests.iter().filter(|request| request.body.to_string().contains(LABEL));
    tried
        .inspect(|request| assert!(request.query.contains("dryRun=All"), "{}", request.query))
        .count()
}

#[tokio::test(start_paused = true)]
async fn an_account_that_no_policy_restricts_is_one_warning() {
    let server = TestServer::new(json!({}));
    let text = checked(&server, async || {
        sleep(Duration::from_secs(59)).await;
        assert_eq!(tries(&server), 0, "the policy may be created after the program");
        server.answer_after(Duration::from_secs(5), NODE);
        for number in 0..10 {
            heartbeat(&server, number);
            sleep(Duration::from_secs(1)).await;
        }
        sleep(60 * MINUTE).await;
        assert_eq!(tries(&server), 1);
    })
    .await;
    assert_eq!(text.matches("WARN").count(), 1, "{text}");
    assert!(text.contains("no admission policy restricts the account of this pod"), "{text}");
    assert!(text.contains("hint=") && text.contains("its-account"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn an_account_that_admission_restricts_is_asked_about_once() {
    for (code, reason) in [(422, BY_POLICY), (403, BY_POLICY), (403, BY_WEBHOOK)] {
        let server = TestServer::new(json!({}));
        server.refuse(code, reason, LABEL);
        let text = checked(&server, async || {
            sleep(60 * MINUTE).await;
            assert_eq!(tries(&server), 1, "{reason}");
        })
        .await;
        assert!(!text.contains("WARN"), "{text}");
    }
}

/// RBAC refuses before a policy is asked, and an overloaded server asks none.
#[tokio::test(start_paused = true)]
async fn other_refusals_say_nothing_about_the_policy() {
    for (code, reason) in [(403, BY_RBAC), (503, "shutting down")] {
        let server = TestServer::new(json!({}));
        server.refuse(code, reason, LABEL);
        let text = checked(&server, async || {
            sleep(60 * MINUTE).await;
            let count = tries(&server);
            assert!((60..150).contains(&count), "{count}");
            server.refuse(422, BY_POLICY, LABEL);
            sleep(2 * MINUTE).await;
            assert_eq!(tries(&server), 1);
            sleep(60 * MINUTE).await;
            assert_eq!(tries(&server), 0);
        })
        .await;
        assert!(!text.contains("WARN"), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_policy_is_checked_when_the_server_runs() {
    let server = TestServer::new(json!({}));
    server.run(false);
    let text = checked(&server, async || {
        sleep(60 * MINUTE).await;
        assert_eq!(tries(&server), 0);
        server.run(true);
        sleep(4 * MINUTE).await;
        assert_eq!(tries(&server), 1);
    })
    .await;
    assert!(text.contains("no admission policy restricts the account"), "{text}");
}

/// The policy is switched off in the chart.
#[tokio::test(start_paused = true)]
async fn the_policy_is_not_checked_without_the_setting() {
    let log = Log::start();
    let server = TestServer::new(json!({}));
    report(&server, async |states| {
        states.send(healthy()).unwrap();
        sleep(60 * MINUTE).await;
    })
    .await;
    assert_eq!(tries(&server), 0);
    assert!(!log.text().contains("WARN"), "{}", log.text());
}

#[tokio::test(start_paused = true)]
async fn the_program_is_ready_when_it_has_the_node_and_nothing_fails() {
    let server = TestServer::new(json!({}));
    server.run(false);
    let (states, follow) = watch::channel(healthy());
    let reporter = Reporter::new(server.client(), Settings::default());
    let requests = reporter.requests();
    let problem = || requests.problem().unwrap_or_default();
    let test = async {
        sleep(MINUTE).await;
        assert_eq!(problem(), "the node object is not known");
        server.run(true);
        sleep(MINUTE).await;
        assert_eq!(problem(), "");
        server.refuse(403, "no", "/status");
        states.send(unhealthy()).unwrap();
        sleep(MINUTE).await;
        assert_eq!(problem(), "cannot set the conditions; the log has the reason");
        // The condition is right again, so nothing is due.
        states.send(healthy()).unwrap();
        sleep(Duration::from_secs(1)).await;
        assert_eq!(problem(), "");
    };
    tokio::select! {
        never = Box::pin(reporter.run(follow)) => match never {},
        () = test => {}
    }
}

/// The storage of the API server was restored from an older backup.
#[tokio::test(start_paused = true)]
async fn a_node_with_an_older_version_counts_after_a_minute() {
    let directory = tempfile::tempdir().unwrap();
    let server = TestServer::new(json!({}));
    report_with(&server, Some(directory.path().into()), async |states| {
        states.send(healthy()).unwrap();
        for _ in 0..50 {
            server.change(|_| {});
        }
        sleep(MINUTE).await;
        server.set_version(1);
        server.end_watches();
        server.change(|node| {
            node["metadata"]["labels"] = json!({});
            node["metadata"]["annotations"] = json!({CORDON_ANNOTATION: "PCIROOT(1)"});
        });
        sleep(2 * MINUTE).await;
        assert!(cordon_file::path_in(directory.path()).exists());
        assert_eq!(server.node()["metadata"]["labels"]["directx.microsoft.com/count"], "2");
    })
    .await;
}

/// The plugin cannot hear of changes of the node while its writes succeed.
#[tokio::test(start_paused = true)]
async fn a_watch_that_fails_for_a_minute_is_a_problem_and_answers_still_cordon() {
    let log = Log::start();
    let directory = tempfile::tempdir().unwrap();
    let file = cordon_file::path_in(directory.path());
    let server = TestServer::new(json!({}));
    let (states, follow) = watch::channel(healthy());
    let settings = Settings { plugin: Some(directory.path().into()), ..Settings::default() };
    let reporter = Reporter::new(server.client(), settings);
    let requests = reporter.requests();
    let problem = || requests.problem().unwrap_or_default();
    let test = async {
        sleep(MINUTE).await;
        assert_eq!(problem(), "");
        server.refuse(403, "no", "GET");
        server.end_watches();
        sleep(MINUTE).await;
        assert_eq!(problem(), "", "a server that restarts takes some time");
        server.change(|node| {
            node["metadata"]["annotations"] = json!({CORDON_ANNOTATION: "PCIROOT(1)"});
        });
        states.send(unhealthy()).unwrap();
        sleep(MINUTE).await;
        assert_eq!(problem(), "cannot follow the node object; the log has the reason");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "PCIROOT(1)\n");
        assert_eq!(is_healthy(&server).0, "False");
        server.accept();
        sleep(2 * MINUTE).await;
        assert_eq!(problem(), "");
    };
    tokio::select! {
        never = Box::pin(reporter.run(follow)) => match never {},
        () = test => {}
    }
    assert!(log.text().contains("following the node object again"), "{}", log.text());
}

/// A proxy answers with 200 and ends the answer.
#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_before_it_has_the_node_is_a_failure() {
    let log = Log::start();
    let server = TestServer::new(json!({}));
    server.end_new_watches(true);
    report(&server, async |states| {
        states.send(healthy()).unwrap();
        sleep(10 * MINUTE).await;
    })
    .await;
    let text = log.text();
    let lines = text.matches("cannot follow the node object").count();
    assert!((2..=6).contains(&lines), "{text}");
    assert!(text.contains("before it contained anything"), "{text}");
}

/// When the requests for a watch arrive, in seconds, and the pauses that the log names.
async fn watches(server: &TestServer, time: Duration) -> (Vec<f32>, Vec<f32>) {
    let log = Log::start();
    let began = Instant::now();
    let mut times = Vec::new();
    report(server, async |states| {
        states.send(healthy()).unwrap();
        while began.elapsed() < time {
            sleep(Duration::from_millis(20)).await;
            let count = requests(server).iter().filter(|request| *request == WATCH).count();
            times.extend((0..count).map(|_| began.elapsed().as_secs_f32()));
        }
    })
    .await;
    let text = log.text();
    let logged = text.split("retry_in_s=").skip(1).filter_map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        rest[..end].parse().ok()
    });
    (times, logged.collect())
}

#[tokio::test(start_paused = true)]
async fn the_log_names_the_pause_after_a_failed_watch_which_is_two_to_ten_seconds_at_first() {
    let mut first = Vec::new();
    for _ in 0..30 {
        let server = TestServer::new(json!({}));
        server.refuse(500, "no", "GET");
        let (times, logged) = watches(&server, Duration::from_secs(25)).await;
        let pauses: Vec<f32> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        // The first, second and fourth failure are logged.
        for (pause, logged) in pauses.iter().zip(&logged).take(2) {
            assert!((pause - logged).abs() < 0.1, "{pauses:?} {logged:?}");
        }
        assert!((2.0..10.2).contains(&pauses[0]), "{pauses:?}");
        first.push(pauses[0]);
    }
    let late = first.iter().filter(|pause| **pause > 6.0).count();
    assert!((3..=27).contains(&late), "{first:?}");
}

/// As after `kubectl delete node`, when the kubelet registers the node again.
#[tokio::test(start_paused = true)]
async fn a_node_object_that_is_made_again_gets_everything_at_once() {
    let node = |uid: &str| {
        json!({
            "metadata": {"uid": uid},
            "spec": {"taints": [{"key": TAINT, "effect": "NoSchedule"}]},
            "status": {"allocatable": {"directx.microsoft.com/display": "2"}},
        })
    };
    let server = TestServer::new(node("first"));
    report(&server, async |states| {
        states.send(healthy()).unwrap();
        sleep(Duration::from_secs(1)).await;
        let expected = server.node()["metadata"]["labels"].clone();
        assert_eq!(server.node()["spec"]["taints"], json!([]));
        server.change(|object| *object = node("second"));
        sleep(Duration::from_secs(1)).await;
        assert_eq!(server.node()["metadata"]["labels"], expected);
        assert_eq!(server.node()["spec"]["taints"], json!([]));
        assert_eq!(is_ready(&server), both("True", "DevicesReady"));

        server.delete();
        sleep(MINUTE).await;
        let _ = requests(&server);
        states.send(unhealthy()).unwrap();
        sleep(MINUTE).await;
        assert_eq!(requests(&server), [""; 0], "there is no node");
        states.send(healthy()).unwrap();
        server.change(|object| *object = node("third"));
        sleep(Duration::from_secs(1)).await;
        assert_eq!(server.node()["metadata"]["labels"], expected);
        assert_eq!(server.node()["spec"]["taints"], json!([]));
        assert_eq!(is_ready(&server), both("True", "DevicesReady"));
    })
    .await;
}

/// A kubelet names the plugin's new socket each time it refuses it.
#[tokio::test(start_paused = true)]
async fn words_of_the_kubelet_that_change_cause_no_writes_and_delay_no_event() {
    let taints = json!([{"key": TAINT, "effect": "NoSchedule"}]);
    let server = TestServer::new(json!({"spec": {"taints": taints}}));
    report(&server, async |states| {
        let refused = async |number: usize| {
            let words = format!("dial unix wddm-{number}.sock: refused");
            let mut listing = listed(&host());
            for served in listing.served.values_mut() {
                let state = "waiting for the kubelet".to_owned();
                served.not_registered = Some(Message::quoting(state, &words));
            }
            states.send_replace(known(listing));
            sleep(Duration::from_secs(10)).await;
        };
        for number in 0..12 {
            refused(number).await;
        }
        let sent = server.requests();
        let count = |name: &str| sent.iter().filter(|request| request.name == name).count();
        assert_eq!(count(STATUS), 1);
        assert_eq!(count(EVENTS), 1, "DirectXDevicesNotReady after a minute");
        for number in 12..90 {
            refused(number).await;
        }
        let count = requests(&server).iter().filter(|name| *name == STATUS).count();
        assert!((2..=3).contains(&count), "every five minutes: {count}");
        let message = server.node()["status"]["conditions"][1]["message"].to_string();
        assert!(message.contains(".sock: refused"), "{message}");
    })
    .await;
}
