//! Several plugins with the same resource or the same devices on one node.

use std::path::Path;
use std::time::Duration;

use device_plugin::status::{Phase, query_all};
use device_plugin::{Readiness, Resource, ResourceReadiness, Transport, UnixSockets};
use kubelet_double::{Cleanup, InMemory, KubeletDouble, KubeletOptions};
use tokio::time::{sleep, timeout};

use crate::plugin::{DIRECTORY, Devices, GPU, Node, Plugin, sockets};

/// Longer than a daemon takes to notice another one and to take over from it.
const NOTICED: Duration = Duration::from_secs(4);

fn start() -> (Node, KubeletDouble<InMemory>) {
    let mut node = Node::new();
    node.add(GPU, "gpu", 2);
    let kubelet =
        KubeletDouble::start(node.host.clone(), DIRECTORY, KubeletOptions::default()).unwrap();
    (node, kubelet)
}

fn waits(readiness: &Readiness) -> bool {
    readiness.resources.first().is_some_and(|r| r.phase == Phase::WaitingForOtherDaemon)
}

async fn within(limit: Duration, plugin: &Plugin, condition: impl FnMut(&Readiness) -> bool) {
    timeout(limit, plugin.wait_for(condition)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_second_daemon_waits_until_the_first_one_has_ended() {
    let (node, kubelet) = start();
    let first = node.run();
    first.wait_until_ready().await;
    let second = node.run();
    within(NOTICED, &second, waits).await;
    let used = sockets(&node.host);
    sleep(Duration::from_secs(20)).await;
    assert!(first.readiness.borrow().is_ready() && waits(&second.readiness.borrow()));
    assert_eq!((kubelet.registrations(GPU), sockets(&node.host)), (1, used));

    first.stop().await.unwrap();
    within(NOTICED, &second, Readiness::is_ready).await;
    kubelet.wait_for(|resources| resources[0].allocatable == 2).await;
    assert_eq!(kubelet.registrations(GPU), 2);
}

/// Up to 1.36, a kubelet that handles the end of the first daemon's stream removes whatever is
/// registered under the name by then. The double handles it at once, a kubelet some time later.
#[tokio::test(start_paused = true)]
async fn a_daemon_that_takes_over_registers_half_a_second_after_it_has_the_lock() {
    let (node, kubelet) = start();
    let first = node.run();
    first.wait_until_ready().await;
    let second = node.run();
    within(NOTICED, &second, waits).await;
    first.stop().await.unwrap();
    within(NOTICED, &second, |readiness| !waits(readiness)).await;
    sleep(Duration::from_millis(450)).await;
    assert_eq!(kubelet.registrations(GPU), 1, "the second one registered at once");
    within(Duration::from_millis(500), &second, Readiness::is_ready).await;
    assert_eq!(kubelet.registrations(GPU), 2);
}

#[tokio::test(start_paused = true)]
async fn a_second_daemon_that_ends_disturbs_nothing() {
    let (node, kubelet) = start();
    let first = node.run();
    first.wait_until_ready().await;
    for _ in 0..3 {
        let second = node.run();
        within(NOTICED, &second, waits).await;
        second.stop().await.unwrap();
        sleep(NOTICED).await;
        assert!(first.readiness.borrow().is_ready());
    }
    assert_eq!(kubelet.registrations(GPU), 1);
}

#[tokio::test(start_paused = true)]
async fn of_daemons_that_start_at_the_same_time_one_serves() {
    let (node, kubelet) = start();
    let plugins: Vec<Plugin> = (0..5).map(|_| node.run()).collect();
    sleep(NOTICED * 2).await;
    let ready = |p: &&Plugin| p.readiness.borrow().is_ready();
    let waiting = |p: &&Plugin| waits(&p.readiness.borrow());
    assert_eq!(plugins.iter().filter(ready).count(), 1);
    assert_eq!(plugins.iter().filter(waiting).count(), 4);
    sleep(Duration::from_secs(20)).await;
    assert_eq!(kubelet.registrations(GPU), 1);
}

#[tokio::test(start_paused = true)]
async fn a_crash_lets_the_next_daemon_register() {
    let (node, kubelet) = start();
    let first = node.run();
    first.wait_until_ready().await;
    let second = node.run();
    within(NOTICED, &second, waits).await;
    first.task.abort();
    within(NOTICED, &second, Readiness::is_ready).await;
    kubelet.wait_for(|resources| resources[0].allocatable == 2).await;
}

#[tokio::test(start_paused = true)]
async fn waiting_daemons_survive_a_restart_of_the_kubelet() {
    let (node, mut kubelet) = start();
    let first = node.run();
    first.wait_until_ready().await;
    let second = node.run();
    within(NOTICED, &second, waits).await;
    for round in 1..=5 {
        kubelet.restart().await.unwrap();
        sleep(NOTICED).await;
        assert!(first.readiness.borrow().is_ready() && waits(&second.readiness.borrow()));
        assert_eq!(kubelet.registrations(GPU), 1 + round);
    }
}

/// What an earlier process left behind is not another daemon, and is removed.
#[tokio::test(start_paused = true)]
async fn removes_only_stale_sockets() {
    let mut node = Node::new();
    node.add(GPU, "gpu", 2);
    let path = |name: &str| Path::new(DIRECTORY).join(name);
    drop(node.host.bind(&path("gpu-1.sock")).unwrap());
    drop(node.host.bind(&path("gpu-x.sock")).unwrap());
    drop(node.host.bind(&path("other-1.sock")).unwrap());
    let _alive = node.host.bind(&path("gpu-2.sock")).unwrap();
    let mut options = KubeletOptions::default();
    options.cleanup = Cleanup::OwnSocket;
    let _kubelet = KubeletDouble::start(node.host.clone(), DIRECTORY, options).unwrap();
    let plugin = node.run();
    within(Duration::from_millis(100), &plugin, Readiness::is_ready).await;
    sleep(NOTICED).await;
    let mut left = sockets(&node.host);
    // The name of the plugin's own socket contains the time.
    left.retain(|socket| socket.file_name().unwrap().len() < "gpu-1000000000000.sock".len());
    assert_eq!(left, [path("gpu-2.sock"), path("gpu-x.sock"), path("other-1.sock")]);
}

/// A daemon that waited and was killed leaves its socket behind too.
#[tokio::test(start_paused = true)]
async fn a_daemon_that_waits_removes_stale_sockets() {
    let (node, _kubelet) = start();
    let first = node.run();
    first.wait_until_ready().await;
    let stale = Path::new(DIRECTORY).join("gpu-1.sock");
    drop(node.host.bind(&stale).unwrap());
    let second = node.run();
    within(NOTICED, &second, waits).await;
    sleep(Duration::from_millis(100)).await;
    assert!(!sockets(&node.host).contains(&stale));
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_was_removed_is_taken_again() {
    let (node, kubelet) = start();
    let first = node.run();
    first.wait_until_ready().await;
    node.host.remove_directory(&Path::new(DIRECTORY).join("locks"));
    sleep(NOTICED).await;
    let second = node.run();
    within(NOTICED, &second, waits).await;
    sleep(NOTICED).await;
    assert!(first.readiness.borrow().is_ready() && waits(&second.readiness.borrow()));
    assert_eq!(kubelet.registrations(GPU), 1);
}

#[tokio::test(start_paused = true)]
async fn a_daemon_that_lost_its_lock_to_another_one_gives_way() {
    let (node, kubelet) = start();
    let first = node.run();
    first.wait_until_ready().await;
    node.host.remove_directory(&Path::new(DIRECTORY).join("locks"));
    let taken = node.host.lock(Path::new(DIRECTORY), GPU).unwrap();
    within(NOTICED, &first, waits).await;
    timeout(NOTICED, kubelet.wait_for(|resources| resources[0].allocatable == 0)).await.unwrap();
    drop(taken);
    within(NOTICED, &first, Readiness::is_ready).await;
    assert_eq!(kubelet.registrations(GPU), 2);
}

#[tokio::test(start_paused = true)]
async fn the_status_says_that_another_daemon_serves() {
    let (node, _kubelet) = start();
    let first = node.run();
    first.wait_until_ready().await;
    let before = sockets(&node.host);
    let second = node.run();
    within(NOTICED, &second, waits).await;
    let own = sockets(&node.host).into_iter().find(|path| !before.contains(path)).unwrap();
    sleep(Duration::from_secs(5)).await;
    let report = query_all(&node.host, &[own]).await.remove(0).unwrap();
    let status = &report.resources[0];
    assert!(!status.is_ready());
    assert_eq!(status.phase(), Phase::WaitingForOtherDaemon);
    assert!(status.waiting_ms >= 5000, "{}", status.waiting_ms);
    assert_eq!(status.last_error, "another plugin has the lock");
}

/// The name of GPUs that several pods share.
const SHARED: &str = "example.com/gpu.shared";

/// The lock of the GPUs, whatever the resource is called.
const GPUS: &str = "gpus";

/// A daemon on this host with resources that need locks.
fn run_locked(host: &InMemory, resources: &[(&str, &[&str])]) -> Plugin {
    let mut node = Node::new();
    node.host = host.clone();
    for (name, locks) in resources {
        let devices = node.add(name, &name.replace('/', "-"), 2);
        for lock in *locks {
            devices.require(lock);
        }
    }
    node.run()
}

/// The resources that have allocatable devices.
fn allocatable(kubelet: &KubeletDouble<InMemory>) -> Vec<String> {
    let mut views = kubelet.resources();
    views.retain(|view| view.allocatable > 0);
    views.into_iter().map(|view| view.name).collect()
}

#[tokio::test(start_paused = true)]
async fn the_same_devices_are_not_advertised_under_two_names() {
    let (node, kubelet) = start();
    let first = run_locked(&node.host, &[(GPU, &[GPUS])]);
    first.wait_until_ready().await;
    let second = run_locked(&node.host, &[(SHARED, &[GPUS]), ("example.com/big", &[GPUS])]);
    let all_wait = |readiness: &Readiness| {
        let mut phases = readiness.resources.iter().map(|resource| resource.phase);
        readiness.resources.len() == 2 && phases.all(|phase| phase == Phase::WaitingForOtherDaemon)
    };
    within(NOTICED, &second, all_wait).await;
    sleep(Duration::from_secs(20)).await;
    assert!(first.readiness.borrow().is_ready() && all_wait(&second.readiness.borrow()));
    assert_eq!(second.readiness.borrow().resources[0].last_error, "another plugin has the lock");
    assert_eq!(allocatable(&kubelet), [GPU]);

    first.task.abort();
    within(NOTICED, &second, Readiness::is_ready).await;
    kubelet.wait_for(|_| allocatable(&kubelet) == ["example.com/big", SHARED]).await;
}

#[tokio::test(start_paused = true)]
async fn a_lock_stays_with_the_daemon_when_its_resources_change() {
    let (node, kubelet) = start();
    let first = run_locked(&node.host, &[(GPU, &[GPUS])]);
    first.wait_until_ready().await;
    let second = run_locked(&node.host, &[(SHARED, &[GPUS])]);
    within(NOTICED, &second, waits).await;
    first.served.send_modify(|served| served.resources = Vec::new());
    sleep(NOTICED).await;
    assert!(waits(&second.readiness.borrow()));
    assert!(allocatable(&kubelet).is_empty());

    let big = Devices::new("example.com/big", "big", 2);
    big.require(GPUS);
    first.served.send_modify(|served| served.resources = vec![big]);
    within(Duration::from_millis(100), &first, Readiness::is_ready).await;
    sleep(NOTICED).await;
    assert_eq!(allocatable(&kubelet), ["example.com/big"]);
}

#[tokio::test(start_paused = true)]
async fn a_resource_waits_for_all_of_its_locks_and_keeps_none_meanwhile() {
    let (node, kubelet) = start();
    let gpus = run_locked(&node.host, &[(GPU, &[GPUS])]);
    gpus.wait_until_ready().await;
    let both = run_locked(&node.host, &[(SHARED, &["npus", GPUS])]);
    within(NOTICED, &both, waits).await;
    let npus = run_locked(&node.host, &[("example.com/npu", &["npus"])]);
    within(NOTICED, &npus, Readiness::is_ready).await;
    gpus.stop().await.unwrap();
    sleep(NOTICED).await;
    assert!(waits(&both.readiness.borrow()));
    npus.stop().await.unwrap();
    within(NOTICED, &both, Readiness::is_ready).await;
    kubelet.wait_for(|_| allocatable(&kubelet) == [SHARED]).await;
}

/// The resources of a daemon that has one of its locks are served, as far as they need no other.
#[tokio::test(start_paused = true)]
async fn only_the_resources_wait_that_need_the_lock() {
    let (node, kubelet) = start();
    let gpus = run_locked(&node.host, &[(GPU, &[GPUS])]);
    gpus.wait_until_ready().await;
    let all = run_locked(&node.host, &[(SHARED, &[GPUS]), ("example.com/npu", &["npus"])]);
    within(NOTICED, &all, |readiness| {
        waits(readiness) && readiness.resources.last().is_some_and(ResourceReadiness::is_ready)
    })
    .await;
    sleep(NOTICED).await;
    assert_eq!(allocatable(&kubelet), [GPU, "example.com/npu"]);
    gpus.stop().await.unwrap();
    within(NOTICED, &all, Readiness::is_ready).await;
}

/// Two daemons that start at the same time could otherwise get one lock each, and both would wait
/// with what needs both.
#[tokio::test(start_paused = true)]
async fn a_daemon_takes_all_locks_before_it_serves() {
    let node = Node::new();
    node.host.fail_binds(Some(std::io::ErrorKind::StorageFull));
    let resources: [(&str, &[&str]); 3] =
        [(GPU, &[GPUS]), (SHARED, &[GPUS]), ("example.com/npu", &["npus"])];
    let _plugin = run_locked(&node.host, &resources);
    sleep(Duration::from_millis(1)).await;
    for lock in [GPUS, "npus"] {
        let taken = node.host.lock(Path::new(DIRECTORY), lock);
        assert!(taken.is_err(), "{lock}");
    }
}

/// The daemon that took the lock can also need the name of the resource.
#[tokio::test(start_paused = true)]
async fn a_daemon_that_lost_the_lock_of_its_devices_gives_way() {
    let (node, kubelet) = start();
    let first = run_locked(&node.host, &[(GPU, &[GPUS])]);
    first.wait_until_ready().await;
    let second = run_locked(&node.host, &[(GPU, &[GPUS])]);
    within(NOTICED, &second, waits).await;
    node.host.remove_directory(&Path::new(DIRECTORY).join("locks").join(GPUS));
    let taken = node.host.lock(Path::new(DIRECTORY), GPUS).unwrap();
    within(NOTICED, &first, waits).await;
    timeout(NOTICED, kubelet.wait_for(|_| allocatable(&kubelet).is_empty())).await.unwrap();
    assert!(node.host.lock(Path::new(DIRECTORY), GPU).is_ok());
    drop(taken);
    sleep(NOTICED).await;
    let is_ready = |plugin: &Plugin| plugin.readiness.borrow().is_ready();
    assert!(is_ready(&first) != is_ready(&second));
    assert_eq!(allocatable(&kubelet), [GPU]);
}

/// The host's own lock survives a kubelet that empties its directory.
#[tokio::test]
async fn a_second_daemon_waits_for_the_lock_of_the_host() {
    if device_plugin::unix_sockets::skips_test() {
        return;
    }
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("device-plugins");
    let mut options = KubeletOptions::default();
    options.cleanup = Cleanup::EverythingButCheckpoint;
    let mut kubelet = KubeletDouble::start(UnixSockets, &directory, options).unwrap();
    let run = || -> Plugin {
        let gpus: std::sync::Arc<dyn Resource> = Devices::new(GPU, "gpu", 2);
        Plugin::run(UnixSockets, &directory, vec![gpus])
    };
    let limit = Duration::from_mins(1);
    let first = run();
    within(limit, &first, Readiness::is_ready).await;
    let second = run();
    within(limit, &second, waits).await;
    kubelet.restart().await.unwrap();
    timeout(limit, kubelet.wait_for_lists(&[GPU])).await.unwrap();
    within(limit, &first, Readiness::is_ready).await;
    assert!(waits(&second.readiness.borrow()));

    first.stop().await.unwrap();
    within(limit, &second, Readiness::is_ready).await;
    timeout(limit, kubelet.wait_for(|views| views[0].allocatable == 2)).await.unwrap();
}
