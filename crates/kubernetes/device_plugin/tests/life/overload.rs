//! Clients that send more, or read less, than a kubelet does.

use std::sync::atomic::Ordering;
use std::time::Duration;

use device_plugin::v1beta1::{
    AllocateRequest, ContainerPreferredAllocationRequest, Empty, PreferredAllocationRequest,
};
use kubelet_double::{InMemory, KubeletDouble, KubeletOptions, PodRequest};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::time::{sleep, timeout};
use tonic::Code;

use crate::plugin::{Caller, DIRECTORY, GPU, Node, sockets};
use crate::service::{container, raw, serving};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A SETTINGS frame without settings, and one with an initial flow-control window of 0 bytes.
const SETTINGS: &[u8] = b"\0\0\0\x04\0\0\0\0\0";
const SETTINGS_WITHOUT_WINDOW: &[u8] = b"\0\0\x06\x04\0\0\0\0\0\0\x04\0\0\0\0";

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const END_HEADERS: u8 = 4;
const END_STREAM: u8 = 1;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// The headers of a call of the `DevicePlugin` service.
fn call(stream: u32, method: &str) -> Vec<u8> {
    let text = |index: u8, value: &str| {
        [&[index, u8::try_from(value.len()).unwrap()], value.as_bytes()].concat()
    };
    let path = text(4, &format!("/v1beta1.DevicePlugin/{method}"));
    let block = [vec![0x83, 0x86], path, text(1, "localhost")].concat();
    frame(HEADERS, END_HEADERS, stream, &block)
}

/// Sends `calls` requests that are one MiB long and incomplete, each on a separate connection.
async fn send_unfinished(host: &InMemory, calls: usize) -> Vec<DuplexStream> {
    let mut connections = Vec::new();
    for _ in 0..calls {
        let start = [PREFACE, SETTINGS, &call(1, "Allocate")].concat();
        let mut connection = raw(host, &start).await;
        let message = [&[0, 0, 0x20, 0, 0][..], &vec![0; 1024 * 1024]].concat();
        for part in message.chunks(16 * 1024) {
            // The plugin may have refused the call and closed the connection.
            let _ = connection.write_all(&frame(DATA, 0, 1, part)).await;
            sleep(Duration::from_millis(1)).await;
        }
        connections.push(connection);
    }
    connections
}

fn preferred(available: usize, size: i32) -> PreferredAllocationRequest {
    let container = ContainerPreferredAllocationRequest {
        available_device_ids: (0..available).map(|n| format!("gpu-{n:016}")).collect(),
        must_include_device_ids: Vec::new(),
        allocation_size: size,
    };
    PreferredAllocationRequest { container_requests: vec![container] }
}

#[tokio::test(start_paused = true)]
async fn a_request_for_too_many_containers_or_ids_is_refused_before_it_is_answered() {
    let (_node, devices, _plugin, mut caller) = serving().await;
    let request = AllocateRequest { container_requests: vec![container(&["gpu-0"]); 60_000] };
    let refused = caller.plugin.allocate(request).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert_eq!(refused.message(), "request has more than 16 containers");
    let ids = vec!["gpu-0"; 500_000];
    let request = AllocateRequest { container_requests: vec![container(&ids)] };
    let refused = caller.plugin.allocate(request).await.unwrap_err();
    assert_eq!(refused.message(), "request has more than 16384 device IDs");
    assert_eq!(devices.answered.load(Ordering::Relaxed), 0);
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

/// Incomplete requests are those of one connection each, and have a time limit.
#[tokio::test(start_paused = true)]
async fn incomplete_requests_delay_no_other_connection() {
    let mut node = Node::new();
    node.add(GPU, "gpu", 10_000);
    let kubelet =
        KubeletDouble::start(node.host.clone(), DIRECTORY, KubeletOptions::default()).unwrap();
    let plugin = node.run();
    plugin.wait_until_ready().await;
    let mut unfinished = send_unfinished(&node.host, 6).await;
    assert!(kubelet.admit(PodRequest::single("a", GPU, 5_000)).await.is_ok());
    let mut caller = Caller::connect(&node.host, &sockets(&node.host)[0]).await;
    caller.plugin.get_preferred_allocation(preferred(10_000, 1)).await.unwrap();
    for connection in &mut unfinished {
        let mut answer = Vec::new();
        let ended = timeout(Duration::from_mins(1), connection.read_to_end(&mut answer)).await;
        assert!(ended.is_ok(), "the connection stays open");
    }
}

/// Only one request of a connection is in memory before it is complete.
#[tokio::test(start_paused = true)]
async fn a_connection_receives_one_request_after_the_other() {
    let (node, devices, _plugin, _caller) = serving().await;
    let start = [PREFACE, SETTINGS, &call(1, "Allocate"), &frame(DATA, 0, 1, &[0, 0, 0, 0, 2])];
    let mut connection = raw(&node.host, &start.concat()).await;
    let complete = frame(DATA, END_STREAM, 3, &[0, 0, 0, 0, 2, 0x0A, 0]);
    connection.write_all(&[call(3, "Allocate"), complete].concat()).await.unwrap();
    sleep(Duration::from_secs(10)).await;
    assert_eq!(devices.answered.load(Ordering::Relaxed), 0);
    connection.write_all(&frame(RST_STREAM, 0, 1, &[0; 4])).await.unwrap();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(devices.answered.load(Ordering::Relaxed), 1);
}

/// A peer that grants no flow-control window for its stream is disconnected.
#[tokio::test(start_paused = true)]
async fn a_peer_without_window_is_disconnected() {
    let (node, devices, _plugin, _caller) = serving().await;
    let start = [PREFACE, SETTINGS_WITHOUT_WINDOW, &call(1, "ListAndWatch")].concat();
    let mut peer = raw(&node.host, &start).await;
    peer.write_all(&frame(DATA, END_STREAM, 1, &[0; 5])).await.unwrap();
    sleep(Duration::from_secs(20)).await;
    assert_eq!(devices.streams(), 1);
    let closed = timeout(Duration::from_mins(1), peer.read_to_end(&mut Vec::new())).await;
    assert!(closed.is_ok(), "the connection stays open");
    assert_eq!(devices.streams(), 0);
}

/// Clients that read nothing exhaust the connections and the calls of each, but not the kubelet's.
#[tokio::test(start_paused = true)]
async fn unread_streams_are_limited_and_not_for_the_kubelet() {
    let mut node = Node::new();
    let devices = node.add(GPU, "gpu", 10_000);
    let mut kubelet =
        KubeletDouble::start(node.host.clone(), DIRECTORY, KubeletOptions::default()).unwrap();
    let plugin = node.run();
    plugin.wait_until_ready().await;
    let mut unread = tokio::task::JoinSet::new();
    for _ in 0..12 {
        let caller = Caller::connect(&node.host, &sockets(&node.host)[0]).await;
        for _ in 0..12 {
            let mut plugin = caller.plugin.clone();
            unread.spawn(async move {
                let _stream = plugin.list_and_watch(Empty {}).await;
                std::future::pending::<()>().await;
            });
        }
    }
    sleep(Duration::from_secs(1)).await;
    assert_eq!(devices.streams(), 1 + 7 * 8);
    assert!(kubelet.admit(PodRequest::single("a", GPU, 5_000)).await.is_ok());
    kubelet.restart().await.unwrap();
    timeout(Duration::from_secs(3), kubelet.wait_for_lists(&[GPU])).await.unwrap();
    drop(unread);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(devices.streams(), 1);
}
