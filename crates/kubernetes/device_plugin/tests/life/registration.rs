//! Registration with kubelets that are not running, refuse, hang or stop, and after sockets were
//! deleted. The campaign restarts kubelets of every release.

use std::io;
use std::path::Path;
use std::time::Duration;

use device_plugin::Transport;
use device_plugin::status::Phase;
use device_plugin::v1beta1::Empty;
use kubelet_double::{
    Faults, KubeletDouble, KubeletHost, KubeletOptions, RegisterFault, Release, StreamFault,
};
use tokio::time::{Instant, sleep, timeout};

use crate::plugin::{Caller, DIRECTORY, GPU, Node, Plugin, sockets};

const SECOND: Duration = Duration::from_secs(1);

fn node() -> Node {
    let mut node = Node::new();
    node.add(GPU, "gpu", 2);
    node
}

fn kubelet(node: &Node) -> KubeletDouble<kubelet_double::InMemory> {
    KubeletDouble::start(node.host.clone(), DIRECTORY, KubeletOptions::default()).unwrap()
}

async fn ready_within(plugin: &Plugin, limit: Duration) {
    let started = Instant::now();
    let ready = timeout(Duration::from_mins(10), plugin.wait_until_ready()).await;
    let took = started.elapsed();
    assert!(ready.is_ok() && took <= limit, "ready after {took:?}, not {limit:?}");
}

#[tokio::test(start_paused = true)]
async fn waits_for_a_kubelet_that_is_not_running() {
    let node = node();
    let plugin = node.run();
    sleep(Duration::from_hours(1)).await;
    let socket = Path::new(DIRECTORY).join("kubelet.sock");
    assert_eq!(
        plugin.last_error().unwrap(),
        format!("kubelet socket `{}` does not exist", socket.display())
    );
    let since = plugin.readiness.borrow().resources[0].since;
    assert!(since.elapsed() > Duration::from_secs(3590));
    let kubelet = kubelet(&node);
    ready_within(&plugin, SECOND).await;
    assert_eq!(kubelet.registrations(GPU), 1);
}

#[tokio::test(start_paused = true)]
async fn waits_for_a_directory_that_does_not_exist() {
    let node = node();
    node.host.remove_directory(Path::new(DIRECTORY));
    let plugin = node.run();
    sleep(Duration::from_mins(1)).await;
    let error = plugin.last_error().unwrap();
    assert!(error.contains(DIRECTORY), "{error}");
    let _kubelet = kubelet(&node);
    ready_within(&plugin, SECOND).await;
}

#[tokio::test(start_paused = true)]
async fn does_not_change_a_settled_registration() {
    let node = node();
    let kubelet = kubelet(&node);
    let plugin = node.run();
    ready_within(&plugin, SECOND).await;
    let before = sockets(&node.host);
    sleep(Duration::from_hours(6)).await;
    assert_eq!(kubelet.registrations(GPU), 1);
    assert_eq!(sockets(&node.host), before);
}

#[tokio::test(start_paused = true)]
async fn replaces_and_registers_a_deleted_socket() {
    for release in [Release::V1_26, Release::V1_36, Release::V1_37] {
        let node = node();
        let mut options = KubeletOptions::default();
        options.release = release;
        let kubelet = KubeletDouble::start(node.host.clone(), DIRECTORY, options).unwrap();
        let plugin = node.run();
        ready_within(&plugin, SECOND).await;
        for round in 1..10 {
            let before = sockets(&node.host);
            node.host.remove(&before[0]).unwrap();
            sleep(Duration::from_secs(3)).await;
            ready_within(&plugin, SECOND).await;
            assert_ne!(sockets(&node.host), before);
            assert_eq!(kubelet.registrations(GPU), 1 + round, "{release:?}");
            assert_eq!(kubelet.resources()[0].allocatable, 2, "{release:?}");
        }
        let counts = &plugin.readiness.borrow().resources[0].registrations;
        assert_eq!((counts["startup"], counts["socket_lost"]), (1, 9), "{release:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn does_not_take_another_socket_for_its_own() {
    let node = node();
    let kubelet = kubelet(&node);
    let plugin = node.run();
    ready_within(&plugin, SECOND).await;
    let socket = sockets(&node.host).remove(0);
    node.host.remove(&socket).unwrap();
    let _other_listener = node.host.bind(&socket).unwrap();
    sleep(Duration::from_secs(3)).await;
    ready_within(&plugin, SECOND).await;
    assert_eq!(kubelet.registrations(GPU), 2);
    // The other socket is not removed either.
    assert!(sockets(&node.host).contains(&socket));
    plugin.stop().await.unwrap();
    assert_eq!(sockets(&node.host), [socket]);
}

/// Without the kubelet's socket, a new socket cannot be registered. So the plugin keeps the stream
/// that the kubelet still holds open, and listens again for probes and `status`.
#[tokio::test(start_paused = true)]
async fn stays_registered_in_an_emptied_directory_while_the_stream_is_open() {
    let node = node();
    let mut kubelet = kubelet(&node);
    let plugin = node.run();
    ready_within(&plugin, SECOND).await;
    node.host.remove_directory(Path::new(DIRECTORY));
    sleep(Duration::from_hours(1)).await;
    assert_eq!(kubelet.resources()[0].allocatable, 2);
    assert!(plugin.readiness.borrow().is_ready());
    node.host.create_directory(Path::new(DIRECTORY)).unwrap();
    sleep(Duration::from_secs(2)).await;
    let socket = sockets(&node.host).remove(0);
    assert!(node.host.connect(&socket).await.is_ok());
    sleep(Duration::from_hours(1)).await;
    assert_eq!(sockets(&node.host), [socket]);
    assert_eq!((kubelet.resources()[0].allocatable, kubelet.registrations(GPU)), (2, 1));
    kubelet.restart().await.unwrap();
    kubelet.wait_for_lists(&[GPU]).await;
    ready_within(&plugin, SECOND).await;
    assert_eq!(kubelet.registrations(GPU), 2);
    sleep(Duration::from_secs(5)).await;
    assert_eq!(sockets(&node.host).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn retries_until_a_socket_can_be_bound() {
    for error in [io::ErrorKind::StorageFull, io::ErrorKind::PermissionDenied] {
        let node = node();
        node.host.fail_binds(Some(error));
        let plugin = node.run();
        sleep(Duration::from_mins(1)).await;
        let last = plugin.last_error().unwrap();
        assert!(last.contains(DIRECTORY), "{last}");
        node.host.fail_binds(None);
        let kubelet = kubelet(&node);
        ready_within(&plugin, SECOND).await;
        // A socket that is deleted while no new one can be bound keeps its stream.
        node.host.fail_binds(Some(error));
        node.host.remove(&sockets(&node.host)[0]).unwrap();
        sleep(Duration::from_mins(1)).await;
        assert!(plugin.readiness.borrow().is_ready());
        assert_eq!(kubelet.resources()[0].allocatable, 2);
        node.host.fail_binds(None);
        sleep(SECOND).await;
        ready_within(&plugin, SECOND).await;
        assert_eq!(kubelet.registrations(GPU), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn reports_a_refused_registration_and_retries() {
    let node = node();
    let kubelet = kubelet(&node);
    kubelet.set_faults(Faults {
        register: RegisterFault::Refuse("not today".to_owned()),
        ..Faults::default()
    });
    let plugin = node.run();
    sleep(Duration::from_mins(5)).await;
    assert_eq!(
        plugin.last_error().unwrap(),
        "kubelet refused the registration: not today (Unknown)"
    );
    // The stream of another client is not the kubelet's.
    let mut client = Caller::connect(&node.host, &sockets(&node.host)[0]).await;
    let stream = client.plugin.list_and_watch(Empty {}).await;
    sleep(SECOND).await;
    assert!(stream.is_ok() && plugin.last_error().is_some());
    drop((stream, client));
    kubelet.set_faults(Faults::default());
    ready_within(&plugin, Duration::from_secs(30)).await;
    // The sockets of the earlier attempts were removed.
    assert_eq!(sockets(&node.host).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn registers_at_once_with_a_new_kubelet_after_many_refusals() {
    let node = node();
    let mut kubelet = kubelet(&node);
    kubelet.set_faults(Faults {
        register: RegisterFault::Refuse("never".to_owned()),
        ..Faults::default()
    });
    let plugin = node.run();
    sleep(Duration::from_hours(1)).await;
    kubelet.set_faults(Faults::default());
    kubelet.restart().await.unwrap();
    ready_within(&plugin, SECOND).await;
}

#[tokio::test(start_paused = true)]
async fn retries_after_a_kubelet_that_hangs() {
    let node = node();
    let kubelet = kubelet(&node);
    kubelet.set_faults(Faults { register: RegisterFault::Hang, ..Faults::default() });
    let plugin = node.run();
    sleep(Duration::from_secs(20)).await;
    assert_eq!(plugin.last_error().unwrap(), "kubelet did not answer within 15 s");
    kubelet.set_faults(Faults::default());
    ready_within(&plugin, Duration::from_secs(16)).await;
}

#[tokio::test(start_paused = true)]
async fn registers_again_after_a_kubelet_stopped_during_registration() {
    for millis in [0, 1, 50, 300, 1_000, 14_900, 15_100, 20_000] {
        let node = node();
        let mut kubelet = kubelet(&node);
        kubelet.set_faults(Faults { register: RegisterFault::Hang, ..Faults::default() });
        let plugin = node.run();
        sleep(Duration::from_millis(millis)).await;
        kubelet.kill();
        kubelet.set_faults(Faults::default());
        sleep(Duration::from_millis(700)).await;
        kubelet.start_again().unwrap();
        ready_within(&plugin, SECOND).await;
        assert_eq!(kubelet.wait_for_lists(&[GPU]).await[0].allocatable, 2);
    }
}

#[tokio::test(start_paused = true)]
async fn accepts_an_answer_after_the_timeout() {
    for release in [Release::V1_26, Release::V1_36, Release::V1_37] {
        let node = node();
        let mut options = KubeletOptions::default();
        options.release = release;
        let kubelet = KubeletDouble::start(node.host.clone(), DIRECTORY, options).unwrap();
        let late = RegisterFault::AnswerLate(Duration::from_secs(40));
        kubelet.set_faults(Faults { register: late, ..Faults::default() });
        let plugin = node.run();
        // The kubelet receives the list before its answer arrives.
        ready_within(&plugin, Duration::from_secs(16)).await;
        sleep(Duration::from_mins(10)).await;
        assert!(plugin.readiness.borrow().is_ready(), "{release:?}");
        assert_eq!(kubelet.registrations(GPU), 1, "{release:?}");
        assert_eq!(kubelet.resources()[0].allocatable, 2);
    }
}

#[tokio::test(start_paused = true)]
async fn ignores_a_refusal_from_a_kubelet_with_an_open_stream() {
    let node = node();
    let kubelet = kubelet(&node);
    let fault = RegisterFault::RefuseAfterDial("odd".to_owned());
    kubelet.set_faults(Faults { register: fault, ..Faults::default() });
    let plugin = node.run();
    sleep(Duration::from_mins(1)).await;
    assert!(plugin.readiness.borrow().is_ready());
    assert_eq!(kubelet.registrations(GPU), 1);
}

#[tokio::test(start_paused = true)]
async fn registers_with_a_kubelet_that_acts_after_the_timeout() {
    for release in [Release::V1_26, Release::V1_36, Release::V1_37] {
        for seconds in [14, 16, 29, 31] {
            let node = node();
            let mut options = KubeletOptions::default();
            options.release = release;
            let kubelet = KubeletDouble::start(node.host.clone(), DIRECTORY, options).unwrap();
            let late = RegisterFault::ActLate(Duration::from_secs(seconds));
            kubelet.set_faults(Faults { register: late, ..Faults::default() });
            let plugin = node.run();
            sleep(Duration::from_mins(2)).await;
            // A later kubelet gives up with the call. An earlier one connects after it, when the pause
            // before the next attempt is long enough.
            let is_late = seconds > if release == Release::V1_26 { 16 } else { 14 };
            assert!(is_late || plugin.readiness.borrow().is_ready(), "{release:?} {seconds}");
            kubelet.set_faults(Faults::default());
            ready_within(&plugin, Duration::from_mins(1)).await;
            sleep(Duration::from_mins(2)).await;
            assert!(plugin.readiness.borrow().is_ready(), "{release:?} {seconds}");
            assert_eq!(kubelet.resources()[0].allocatable, 2);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn registers_again_if_the_kubelet_does_not_call_list_and_watch() {
    let node = node();
    let kubelet = kubelet(&node);
    kubelet.set_faults(Faults { stream: StreamFault::NeverOpen, ..Faults::default() });
    let plugin = node.run();
    sleep(Duration::from_secs(4)).await;
    assert_eq!(plugin.readiness.borrow().resources[0].phase, Phase::Registered);
    assert_eq!(kubelet.registrations(GPU), 1);
    sleep(Duration::from_secs(3)).await;
    assert_eq!(kubelet.registrations(GPU), 2);
    kubelet.set_faults(Faults::default());
    ready_within(&plugin, Duration::from_secs(15)).await;
}

#[tokio::test(start_paused = true)]
async fn limits_the_rate_of_registrations_if_the_kubelet_drops_the_stream() {
    let node = node();
    let kubelet = kubelet(&node);
    let drops = StreamFault::DropAfter(Duration::from_millis(10));
    kubelet.set_faults(Faults { stream: drops, ..Faults::default() });
    let plugin = node.run();
    sleep(Duration::from_mins(1)).await;
    let registrations = kubelet.registrations(GPU);
    assert!((8..12).contains(&registrations), "{registrations}");
    let error = "kubelet closed the ListAndWatch stream";
    let reported = plugin.wait_for(|readiness| readiness.resources[0].last_error == error);
    timeout(31 * SECOND, reported).await.expect(error);
    kubelet.set_faults(Faults::default());
    // 30 s is the longest delay between two attempts.
    ready_within(&plugin, 31 * SECOND).await;
    assert_eq!(sockets(&node.host).len(), 1);
}

/// Kubelets before 1.37 end the new registration of a resource when the stream of an earlier
/// registration ends. Here that is the stream of a process that a rolling update replaces.
#[tokio::test(start_paused = true)]
async fn stays_registered_after_a_rolling_update() {
    for release in [Release::V1_26, Release::V1_36, Release::V1_37] {
        let node = node();
        let mut options = KubeletOptions::default();
        options.release = release;
        let kubelet = KubeletDouble::start(node.host.clone(), DIRECTORY, options).unwrap();
        let old = node.run();
        ready_within(&old, SECOND).await;
        let new = node.run();
        sleep(3 * SECOND).await;
        old.stop().await.unwrap();
        ready_within(&new, 3 * SECOND).await;
        assert_eq!(kubelet.resources()[0].allocatable, 2, "{release:?}");
        sleep(Duration::from_mins(1)).await;
        assert!(new.readiness.borrow().is_ready());
    }
}

#[tokio::test(start_paused = true)]
async fn registers_several_resources() {
    let mut node = Node::new();
    let names: Vec<String> = (0..5).map(|n| format!("example.com/gpu-{n}")).collect();
    for name in &names {
        // All resources have one prefix, like the resources of one driver model.
        node.add(name, "gpu", 3);
    }
    let mut kubelet = kubelet(&node);
    let plugin = node.run();
    ready_within(&plugin, SECOND).await;
    kubelet.wait_for(|resources| resources.len() == 5).await;
    assert_eq!(sockets(&node.host).len(), 5);
    kubelet.restart().await.unwrap();
    kubelet.wait_for(|r| r.len() == 5 && r.iter().all(|r| r.allocatable == 3)).await;
    ready_within(&plugin, SECOND).await;
}
