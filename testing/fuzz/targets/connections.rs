//! Connections to the plugin's socket: whoever may open it may send anything.
//!
//! The input is a conversation: whole calls, HTTP/2 frames and plain bytes. Whatever it
//! is, nothing in the plugin panics, and the next caller is answered.

#![no_main]

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kubelet::http2::{self, Client};
use kubelet::{
    AdvertisedDevice, ContainerResponse, DeviceList, Health, KUBELET_SOCKET, PreferredRequest,
    Readiness, Refusal, RefusalKind, Resource, RunConfig, RunError, Transport,
};
use kubelet_double::v1beta1::device_plugin_client::DevicePluginClient;
use kubelet_double::v1beta1::{
    AllocateRequest, ContainerAllocateRequest, ContainerPreferredAllocationRequest, Empty,
    PreStartContainerRequest, PreferredAllocationRequest,
};
use kubelet_double::{InMemory, KubeletDouble, Options};
use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

const DIRECTORY: &str = "/plugins";
const RESOURCE: &str = "example.com/gpu";
const METHODS: [&str; 7] = [
    "/v1beta1.DevicePlugin/GetDevicePluginOptions",
    "/v1beta1.DevicePlugin/ListAndWatch",
    "/v1beta1.DevicePlugin/GetPreferredAllocation",
    "/v1beta1.DevicePlugin/Allocate",
    "/v1beta1.DevicePlugin/PreStartContainer",
    "/v1beta1.Registration/Register",
    "*",
];

thread_local! {
    static NODE: RefCell<Option<Node>> = const { RefCell::new(None) };
}

fuzz_target!(|data: &[u8]| {
    let mut conversation = Vec::new();
    // An input that ends early is a conversation that breaks off.
    let _ = converse(&mut Unstructured::new(data), &mut conversation);
    NODE.with_borrow_mut(|node| node.get_or_insert_with(Node::start).hear(&conversation));
});

/// A plugin with one resource, and the kubelet that it is registered with.
struct Node {
    runtime: Runtime,
    host: InMemory,
    plugin: JoinHandle<std::result::Result<(), RunError>>,
    _kubelet: KubeletDouble<InMemory>,
}

impl Node {
    fn start() -> Node {
        let runtime = Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("an event loop without sockets can always be made");
        let host = InMemory::new();
        let (plugin, kubelet) = runtime.block_on(async {
            let kubelet = KubeletDouble::start(host.clone(), DIRECTORY, Options::default())
                .expect("the memory is empty");
            let config = RunConfig { directory: DIRECTORY.into() };
            let (readiness, mut ready) = watch::channel(Readiness::default());
            let resources: Vec<Arc<dyn Resource>> = vec![Arc::new(Gpus::default())];
            let running =
                kubelet::run(config, resources, host.clone(), std::future::pending(), readiness);
            let plugin = tokio::spawn(running);
            ready.wait_for(Readiness::is_ready).await.expect("the plugin runs");
            (plugin, kubelet)
        });
        Node { runtime, host, plugin, _kubelet: kubelet }
    }

    fn hear(&mut self, conversation: &[u8]) {
        let Node { runtime, host, plugin, .. } = self;
        runtime.block_on(async {
            send(host, conversation).await;
            assert!(!plugin.is_finished(), "the plugin has ended");
            call(host).await;
        });
    }
}

fn socket(host: &InMemory) -> PathBuf {
    let mut sockets = host.list(Path::new(DIRECTORY)).expect("the directory is there");
    sockets.retain(|socket| !socket.ends_with(KUBELET_SOCKET));
    sockets.pop().expect("the plugin has a socket")
}

/// Sends the conversation and hears the plugin out.
async fn send(host: &InMemory, conversation: &[u8]) {
    let stream = host.connect(&socket(host)).await.expect("the plugin listens");
    let (mut from, mut to) = tokio::io::split(stream);
    let talk = async {
        // The plugin may hang up at any byte.
        let _ = to.write_all(conversation).await;
        // The clock stands still while anything is left to do. To hang up before would
        // end the calls before they have begun.
        sleep(Duration::from_millis(10)).await;
        let _ = to.shutdown().await;
    };
    let listen = async {
        let mut heard = [0; 4096];
        while from.read(&mut heard).await.is_ok_and(|count| count > 0) {}
    };
    let both = async { tokio::join!(talk, listen) };
    timeout(Duration::from_secs(600), both).await.expect("the plugin never hangs up");
}

/// A call as kubelets make it.
async fn call(host: &InMemory) {
    let stream = host.connect(&socket(host)).await.expect("the plugin listens");
    let (client, driver) = http2::connect(stream).await.expect("the plugin speaks HTTP/2");
    let mut plugin = DevicePluginClient::with_origin(client, Client::origin());
    tokio::select! {
        ended = driver => panic!("the connection ended: {ended:?}"),
        answer = plugin.get_device_plugin_options(Empty {}) => {
            assert!(answer.is_ok(), "{answer:?}");
        }
    }
}

fn converse(u: &mut Unstructured<'_>, out: &mut Vec<u8>) -> Result<()> {
    if u.ratio(15, 16)? {
        out.extend(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        frame(out, 4, 0, 0, &[]);
    }
    let mut stream = 1;
    while !u.is_empty() {
        match u.int_in_range(0..=7)? {
            0..=3 => {
                let method = u.choose(&METHODS)?;
                let flags = if u.ratio(7, 8)? { 4 } else { u.arbitrary()? };
                frame(out, 1, flags, stream, &headers(method));
                let body = if u.arbitrary()? { message(u)? } else { short(u)? };
                let body = if u.ratio(7, 8)? { framed(&body) } else { body };
                frame(out, 0, u.int_in_range(0..=1)?, stream, &body);
                stream += 2;
            }
            4 | 5 => {
                let (kind, flags) = (u.int_in_range(0..=10)?, u.arbitrary()?);
                let number = if u.arbitrary()? { stream } else { u.arbitrary()? };
                frame(out, kind, flags, number, &short(u)?);
            }
            6 => {
                let flags = u.arbitrary()?;
                frame(out, 1, flags, stream, &short(u)?);
                stream += 2;
            }
            _ => out.extend(short(u)?),
        }
    }
    Ok(())
}

/// A request with anything in it, perhaps of another method.
fn message(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    Ok(match u.int_in_range(0..=3)? {
        0 => {
            let container_requests = vec![ContainerAllocateRequest { devices_ids: ids(u)? }];
            AllocateRequest { container_requests }.encode_to_vec()
        }
        1 | 2 => {
            let container = ContainerPreferredAllocationRequest {
                available_device_ids: ids(u)?,
                must_include_device_ids: ids(u)?,
                allocation_size: u.arbitrary()?,
            };
            PreferredAllocationRequest { container_requests: vec![container] }.encode_to_vec()
        }
        _ => PreStartContainerRequest { devices_ids: ids(u)? }.encode_to_vec(),
    })
}

fn ids(u: &mut Unstructured<'_>) -> Result<Vec<String>> {
    (0..u.int_in_range(0..=3)?).map(|_| Ok((*u.choose(&["a", "b", "", "é"])?).to_owned())).collect()
}

fn short(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let length = u.int_in_range(0..=64)?;
    Ok(u.bytes(length.min(u.len()))?.to_vec())
}

/// One HTTP/2 frame (RFC 9113, section 4.1).
fn frame(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    let length = u32::try_from(payload.len()).unwrap_or(0).to_be_bytes();
    out.extend(&length[1..]);
    out.extend([kind, flags]);
    out.extend(stream.to_be_bytes());
    out.extend(payload);
}

/// A gRPC message: a flag, a length, and the bytes.
fn framed(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap_or(0).to_be_bytes();
    [&[0], length.as_slice(), message].concat()
}

/// The headers of a call, HPACK without compression (RFC 7541, section 6.2.2).
fn headers(path: &str) -> Vec<u8> {
    let fields = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", path),
        (":authority", "localhost"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ];
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            block.push(u8::try_from(text.len()).expect("these texts are short"));
            block.extend(text.as_bytes());
        }
    }
    block
}

/// Two devices.
struct Gpus(watch::Sender<Arc<DeviceList>>);

impl Default for Gpus {
    fn default() -> Self {
        let devices = ["a", "b"].map(|id| AdvertisedDevice {
            id: id.to_owned(),
            health: Health::Healthy,
            numa_node: None,
        });
        let list = DeviceList::new(devices).expect("the list is short");
        Gpus(watch::Sender::new(Arc::new(list)))
    }
}

impl Resource for Gpus {
    fn name(&self) -> &'static str {
        RESOURCE
    }

    fn socket_prefix(&self) -> &'static str {
        "gpu"
    }

    fn devices(&self) -> watch::Receiver<Arc<DeviceList>> {
        self.0.subscribe()
    }

    fn allocate(&self, ids: &[String]) -> std::result::Result<ContainerResponse, Refusal> {
        match ids.iter().find(|id| !["a", "b"].contains(&id.as_str())) {
            Some(id) => Err(Refusal::new(RefusalKind::NotFound, format!("no device `{id}`"))),
            None => Ok(ContainerResponse::default()),
        }
    }

    fn prefer(&self, request: PreferredRequest<'_>) -> std::result::Result<Vec<String>, Refusal> {
        Ok(request.available.iter().take(request.size).cloned().collect())
    }
}
