//! Several daemons with the same resource on one node.

use std::path::{Path, PathBuf};
use std::time::Duration;

use kubelet::status::{Phase, query_all};
use kubelet::{Readiness, ResourceState, Takeover, Transport};
use kubelet_double::{InMemory, KubeletDouble, Options};
use tokio::time::{sleep, timeout};

use crate::plugin::{DIRECTORY, GPU, Node, Plugin, sockets};

/// Longer than a daemon takes to notice another one and to take over from it.
const NOTICED: Duration = Duration::from_secs(4);

fn start() -> (Node, KubeletDouble<InMemory>) {
    let mut node = Node::new();
    node.add(GPU, "gpu", 2);
    let kubelet = KubeletDouble::start(node.host.clone(), DIRECTORY, Options::default()).unwrap();
    (node, kubelet)
}

fn waits(readiness: &Readiness) -> bool {
    let state = readiness.resources.first().map(|resource| &resource.state);
    matches!(state, Some(ResourceState::WaitingForOtherDaemon { .. }))
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
async fn daemons_that_start_at_the_same_time_agree() {
    for takeover in [Takeover::Wait, Takeover::Replace] {
        let (node, kubelet) = start();
        let plugins: Vec<Plugin> = (0..5).map(|_| node.run_with(takeover)).collect();
        sleep(NOTICED * 2).await;
        let ready = |p: &&Plugin| p.readiness.borrow().is_ready();
        let waiting = |p: &&Plugin| waits(&p.readiness.borrow());
        assert_eq!(plugins.iter().filter(ready).count(), 1, "{takeover:?}");
        assert_eq!(plugins.iter().filter(waiting).count(), 4, "{takeover:?}");
        let registrations = kubelet.registrations(GPU);
        sleep(Duration::from_secs(20)).await;
        assert_eq!(kubelet.registrations(GPU), registrations, "{takeover:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_replaced_daemon_waits_and_registers_again() {
    let (node, kubelet) = start();
    let first = node.run();
    first.wait_until_ready().await;
    let second = node.run_with(Takeover::Replace);
    within(NOTICED, &second, Readiness::is_ready).await;
    assert!(waits(&first.readiness.borrow()));
    // One daemon gives the resource up before the other one registers it.
    assert_eq!(kubelet.registrations(GPU), 2);
    sleep(Duration::from_secs(20)).await;
    assert_eq!(kubelet.registrations(GPU), 2);

    second.stop().await.unwrap();
    within(NOTICED, &first, Readiness::is_ready).await;
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

/// A process accepts connections and never answers.
#[tokio::test(start_paused = true)]
async fn a_daemon_that_hangs_is_waited_for_unless_it_is_replaced() {
    let (node, kubelet) = start();
    let path = Path::new(DIRECTORY).join("gpu-1.sock");
    let hanging = node.host.bind(&path).unwrap();
    let waiting = node.run();
    within(NOTICED, &waiting, waits).await;
    let state = waiting.readiness.borrow().resources[0].state.clone();
    assert!(matches!(state, ResourceState::WaitingForOtherDaemon { socket, .. } if socket == path));
    sleep(Duration::from_secs(20)).await;
    assert_eq!(kubelet.registrations(GPU), 0);

    let replacing = node.run_with(Takeover::Replace);
    within(NOTICED * 2, &replacing, Readiness::is_ready).await;
    drop(hanging);
    sleep(NOTICED).await;
    assert!(replacing.readiness.borrow().is_ready() && waits(&waiting.readiness.borrow()));
    assert!(!sockets(&node.host).contains(&path), "the dead socket is removed");
}

/// What an earlier process left behind is not another daemon.
#[tokio::test(start_paused = true)]
async fn a_dead_socket_delays_nothing() {
    let (node, _kubelet) = start();
    drop(node.host.bind(&Path::new(DIRECTORY).join("gpu-1.sock")).unwrap());
    let plugin = node.run();
    within(Duration::from_millis(100), &plugin, Readiness::is_ready).await;
}

#[tokio::test(start_paused = true)]
async fn the_status_names_the_other_daemon() {
    let (node, _kubelet) = start();
    let first = node.run();
    first.wait_until_ready().await;
    let before: Vec<PathBuf> = sockets(&node.host);
    let second = node.run();
    within(NOTICED, &second, waits).await;
    let own = sockets(&node.host).into_iter().find(|path| !before.contains(path)).unwrap();
    sleep(Duration::from_secs(5)).await;
    let report = query_all(&node.host, &[own]).await.remove(0).unwrap();
    assert!(!report.is_ready());
    let status = &report.resources[0];
    assert_eq!(status.phase(), Phase::WaitingForOtherDaemon);
    assert!(status.waiting_ms >= 5000, "{}", status.waiting_ms);
    let named = before[0].display().to_string();
    assert!(status.last_error.contains(&named), "{}", status.last_error);
}
