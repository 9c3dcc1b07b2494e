//! The plugin's answers to a kubelet and to other clients.

use std::sync::atomic::Ordering;
use std::time::Duration;

use device_plugin::Transport;
use device_plugin::v1beta1::{
    AllocateRequest, ContainerAllocateRequest, ContainerPreferredAllocationRequest, Empty,
    PreStartContainerRequest, PreferredAllocationRequest,
};
use kubelet_double::{InMemory, KubeletDouble, KubeletOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tonic::Code;

use crate::plugin::{Caller, DIRECTORY, Devices, GPU, Node, Plugin, sockets};

fn container(ids: &[&str]) -> ContainerAllocateRequest {
    ContainerAllocateRequest { devices_ids: ids.iter().map(|id| (*id).to_owned()).collect() }
}

pub(crate) async fn serving() -> (Node, std::sync::Arc<Devices>, Plugin, Caller) {
    let mut node = Node::new();
    let devices = node.add(GPU, "gpu", 4);
    let plugin = node.run();
    while sockets(&node.host).is_empty() {
        tokio::task::yield_now().await;
    }
    let caller = Caller::connect(&node.host, &sockets(&node.host)[0]).await;
    (node, devices, plugin, caller)
}

#[tokio::test(start_paused = true)]
async fn allocates_for_containers_in_order_before_any_stream() {
    let (_node, _devices, _plugin, mut caller) = serving().await;
    let containers = vec![container(&["gpu-3"]), container(&[]), container(&["gpu-0", "gpu-1"])];
    let answer = caller.plugin.allocate(AllocateRequest { container_requests: containers }).await;
    let answer = answer.unwrap().into_inner();
    let hosts: Vec<Vec<String>> = answer
        .container_responses
        .into_iter()
        .map(|container| container.devices.into_iter().map(|d| d.host_path).collect())
        .collect();
    assert_eq!(hosts, [vec!["host://gpu-3"], vec![], vec!["host://gpu-0", "host://gpu-1"]]);
}

/// Kubelets send one container. An answer has much more bytes than its request.
#[tokio::test(start_paused = true)]
async fn a_request_for_too_many_containers_is_refused() {
    let (_node, _devices, _plugin, mut caller) = serving().await;
    let mut allocate = async |count: usize| {
        let container_requests = vec![container(&["gpu-0"]); count];
        caller.plugin.allocate(AllocateRequest { container_requests }).await
    };
    assert_eq!(allocate(16).await.unwrap().into_inner().container_responses.len(), 16);
    let refused = allocate(17).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert_eq!(refused.message(), "request has 17 containers, at most 16 are supported");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_has_its_status_code_and_message() {
    let (_node, _devices, _plugin, mut caller) = serving().await;
    let containers = vec![container(&["gpu-0"]), container(&["gpu-9"])];
    let refused = caller.plugin.allocate(AllocateRequest { container_requests: containers }).await;
    let refused = refused.unwrap_err();
    assert_eq!((refused.code(), refused.message()), (Code::NotFound, "no device `gpu-9`"));
}

#[tokio::test(start_paused = true)]
async fn a_response_that_is_longer_than_a_kubelet_accepts_is_not_sent() {
    let (_node, devices, _plugin, mut caller) = serving().await;
    devices.response_bytes.store(1024 * 1024, Ordering::Relaxed);
    let request = |containers| AllocateRequest {
        container_requests: vec![container(&["gpu-0"]); containers],
    };
    let refused = caller.plugin.allocate(request(16)).await.unwrap_err();
    assert_eq!(refused.code(), Code::OutOfRange);
    assert!(refused.message().contains("message length too large"), "{refused}");
    caller.plugin.allocate(request(3)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn answers_the_other_calls() {
    let (_node, devices, _plugin, mut caller) = serving().await;
    devices.requires_start.store(true, Ordering::Relaxed);
    let options = caller.plugin.get_device_plugin_options(Empty {}).await.unwrap().into_inner();
    assert!(options.get_preferred_allocation_available && options.pre_start_required);
    let started = PreStartContainerRequest { devices_ids: vec!["gpu-0".to_owned()] };
    caller.plugin.pre_start_container(started.clone()).await.unwrap();
    devices.refuses_start.store(true, Ordering::Relaxed);
    let refused = caller.plugin.pre_start_container(started).await.unwrap_err();
    assert_eq!(
        (refused.code(), refused.message()),
        (Code::FailedPrecondition, "cannot reset [\"gpu-0\"]")
    );
    let ask = |size| PreferredAllocationRequest {
        container_requests: vec![ContainerPreferredAllocationRequest {
            available_device_ids: vec!["gpu-2".to_owned(), "gpu-1".to_owned()],
            must_include_device_ids: vec!["gpu-2".to_owned()],
            allocation_size: size,
        }],
    };
    let preferred = caller.plugin.get_preferred_allocation(ask(2)).await.unwrap().into_inner();
    assert_eq!(preferred.container_responses[0].device_ids, ["gpu-2", "gpu-1"]);
    let none = caller.plugin.get_preferred_allocation(ask(-1)).await.unwrap().into_inner();
    assert!(none.container_responses[0].device_ids.is_empty());
}

/// A kubelet starts several pods at the same time. It waits 30 seconds for each
/// `PreStartContainer`.
#[tokio::test]
async fn slow_starts_of_containers_delay_no_other_call() {
    let (_node, devices, _plugin, caller) = serving().await;
    let mut starts = JoinSet::new();
    let gate = devices.starts_gate.lock().await;
    for n in 0..4 {
        let mut plugin = caller.plugin.clone();
        let request = PreStartContainerRequest { devices_ids: vec![format!("gpu-{n}")] };
        starts.spawn(async move { plugin.pre_start_container(request).await });
    }
    let all_start = async {
        while devices.starting.load(Ordering::Relaxed) < 4 {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(Duration::from_secs(10), all_start).await.expect("starts wait for each other");
    let request = AllocateRequest { container_requests: vec![container(&["gpu-0"])] };
    let mut plugin = caller.plugin.clone();
    let allocation = timeout(Duration::from_secs(10), plugin.allocate(request)).await;
    allocation.expect("Allocate waits for the starts").unwrap();
    drop(gate);
    for started in starts.join_all().await {
        started.unwrap();
    }
}

/// Every stream receives every change. An update without a change is not sent.
#[tokio::test(start_paused = true)]
async fn sends_every_change_to_every_stream() {
    let (node, devices, _plugin, _caller) = serving().await;
    let socket = sockets(&node.host).remove(0);
    let mut streams = Vec::new();
    for _ in 0..3 {
        let mut caller = Caller::connect(&node.host, &socket).await;
        let stream = caller.plugin.list_and_watch(Empty {}).await.unwrap().into_inner();
        streams.push((caller, stream));
    }
    for (_, stream) in &mut streams {
        assert_eq!(stream.message().await.unwrap().unwrap().devices.len(), 4);
    }
    devices.change(|_nothing| {});
    sleep(Duration::from_secs(1)).await;
    devices.set_unhealthy("gpu-2");
    for (_, stream) in &mut streams {
        let list = stream.message().await.unwrap().unwrap();
        let health: Vec<&str> = list.devices.iter().map(|d| d.health.as_str()).collect();
        assert_eq!(health, ["Healthy", "Healthy", "Unhealthy", "Healthy"]);
    }
    streams.truncate(1);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(devices.streams(), 1);
}

#[tokio::test(start_paused = true)]
async fn delivers_long_lists_completely_and_the_latest_change_last() {
    let mut node = Node::new();
    let devices = node.add(GPU, "gpu", 20_000);
    let kubelet =
        KubeletDouble::start(node.host.clone(), DIRECTORY, KubeletOptions::default()).unwrap();
    let plugin = node.run();
    assert_eq!(kubelet.wait_for_lists(&[GPU]).await[0].allocatable, 20_000);
    plugin.wait_until_ready().await;
    for n in 0..20 {
        devices.change(|devices| devices.truncate(19_999 - n));
    }
    kubelet.wait_for(|r| r[0].capacity == 19_980).await;
    devices.change(Vec::clear);
    kubelet.wait_for(|r| r[0].capacity == 0).await;
}

/// Peers that open a stream and never read share one list in memory, and do not block others.
#[tokio::test(start_paused = true)]
async fn a_peer_that_never_reads_does_not_delay_others() {
    let mut node = Node::new();
    let devices = node.add(GPU, "gpu", 20_000);
    let kubelet =
        KubeletDouble::start(node.host.clone(), DIRECTORY, KubeletOptions::default()).unwrap();
    let plugin = node.run();
    plugin.wait_until_ready().await;
    let socket = sockets(&node.host).remove(0);
    let mut stuck = Vec::new();
    for _ in 0..3 {
        let mut caller = Caller::connect(&node.host, &socket).await;
        let stream = caller.plugin.list_and_watch(Empty {}).await.unwrap().into_inner();
        stuck.push((caller, stream));
    }
    for n in 0..3 {
        devices.change(|devices| devices.truncate(15_000 - n));
        kubelet.wait_for(|r| r[0].capacity == 15_000 - n).await;
    }
    let started = Instant::now();
    plugin.stop().await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(4), "{:?}", started.elapsed());
}

async fn raw(host: &InMemory, bytes: &[u8]) -> tokio::io::DuplexStream {
    let mut stream = host.connect(&sockets(host)[0]).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    stream
}

#[tokio::test(start_paused = true)]
async fn closes_invalid_connections_and_those_that_answer_no_ping() {
    let (node, _devices, _plugin, _caller) = serving().await;
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".as_slice();
    let settings = [preface, &[0, 0, 0, 4, 0, 0, 0, 0, 0]].concat();
    // The HEADERS frame has a length beyond its data.
    let cut = [&settings[..], &[0, 0, 100, 1, 4, 0, 0, 0, 1]].concat();
    for bytes in [b"GET / HTTP/1.1\r\n\r\n".as_slice(), &[0xFF; 512], preface, &settings, &cut] {
        let mut stream = raw(&node.host, bytes).await;
        let mut answer = Vec::new();
        let closed = timeout(Duration::from_mins(1), stream.read_to_end(&mut answer)).await;
        assert!(closed.is_ok(), "{bytes:?} holds a connection open");
    }
    let mut caller = Caller::connect(&node.host, &sockets(&node.host)[0]).await;
    caller.plugin.get_device_plugin_options(Empty {}).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn idle_connections_do_not_block_the_kubelet() {
    let mut node = Node::new();
    node.add(GPU, "gpu", 1);
    let plugin = node.run();
    sleep(Duration::from_secs(1)).await;
    let mut idle = Vec::new();
    for _ in 0..100 {
        idle.push(raw(&node.host, b"").await);
    }
    let mut options = KubeletOptions::default();
    options.cleanup = kubelet_double::Cleanup::OwnSocket;
    let _kubelet = KubeletDouble::start(node.host.clone(), DIRECTORY, options).unwrap();
    let ready = timeout(Duration::from_secs(90), plugin.wait_until_ready()).await;
    assert!(ready.is_ok());
}

/// A connection with an open stream is never closed as idle.
#[tokio::test(start_paused = true)]
async fn a_stream_without_changes_is_not_idle() {
    let (_node, devices, _plugin, mut caller) = serving().await;
    let mut stream = caller.plugin.list_and_watch(Empty {}).await.unwrap().into_inner();
    stream.message().await.unwrap().unwrap();
    sleep(Duration::from_hours(1)).await;
    devices.set_unhealthy("gpu-0");
    assert_eq!(stream.message().await.unwrap().unwrap().devices[0].health, "Unhealthy");
}
