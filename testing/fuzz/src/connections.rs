//! Connections to the plugin's socket, whose clients can send anything.
//!
//! The input describes the bytes that a client sends: whole calls, HTTP/2 frames and other
//! bytes. For any input, nothing in the plugin panics, and the next client gets a response.

use std::borrow::Cow;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arbitrary::{Result, Unstructured};
use device_plugin::v1beta1::device_plugin_client::DevicePluginClient;
use device_plugin::v1beta1::{
    AllocateRequest, ContainerAllocateRequest, ContainerPreferredAllocationRequest, Empty,
    PreStartContainerRequest, PreferredAllocationRequest,
};
use device_plugin::{
    AdvertisedDevice, ContainerResponse, DeviceList, DevicePlugin, DevicePluginOptions,
    KUBELET_SOCKET, PreferredRequest, Readiness, Resource, RunError, Status, Transport,
    async_trait,
};
use kubelet_double::{InMemory, KubeletDouble, KubeletOptions};
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

/// Checks one input.
pub fn check(data: &[u8]) {
    let mut sent = Vec::new();
    // An input that ends early describes a client that stops sending.
    let _ = write_client_bytes(&mut Unstructured::new(data), &mut sent);
    NODE.with_borrow_mut(|node| node.get_or_insert_with(Node::start).receive(&sent));
}

/// A plugin with one resource, registered with a kubelet double.
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
            .expect("a runtime without I/O can always be built");
        let host = InMemory::new();
        let (plugin, kubelet) = runtime.block_on(async {
            let kubelet = KubeletDouble::start(host.clone(), DIRECTORY, KubeletOptions::default())
                .expect("no kubelet runs yet");
            let plugin = DevicePlugin::new(DIRECTORY, vec![Arc::new(Gpus::default())])
                .with_transport(host.clone());
            let mut ready = plugin.readiness();
            let plugin = tokio::spawn(plugin.run());
            ready.wait_for(Readiness::is_ready).await.expect("the plugin runs");
            (plugin, kubelet)
        });
        Node { runtime, host, plugin, _kubelet: kubelet }
    }

    fn receive(&mut self, sent: &[u8]) {
        let Node { runtime, host, plugin, .. } = self;
        runtime.block_on(async {
            send(host, sent).await;
            assert!(!plugin.is_finished(), "the plugin has exited");
            call(host).await;
        });
    }
}

fn socket(host: &InMemory) -> PathBuf {
    let mut sockets = host.list(Path::new(DIRECTORY)).expect("the directory exists");
    sockets.retain(|socket| !socket.ends_with(KUBELET_SOCKET));
    sockets.pop().expect("the plugin has a socket")
}

/// Sends the bytes, and reads until the plugin closes the connection.
async fn send(host: &InMemory, sent: &[u8]) {
    let stream = host.connect(&socket(host)).await.expect("the plugin listens");
    let (mut from, mut to) = tokio::io::split(stream);
    let write = async {
        // The plugin may close the connection at any byte.
        let _ = to.write_all(sent).await;
        // The paused clock advances only when no task can run. Closing the connection
        // earlier would cancel the calls before they start.
        sleep(Duration::from_millis(10)).await;
        let _ = to.shutdown().await;
    };
    let read = async {
        let mut buffer = [0; 4096];
        while from.read(&mut buffer).await.is_ok_and(|count| count > 0) {}
    };
    let both = async { tokio::join!(write, read) };
    timeout(Duration::from_mins(10), both).await.expect("the plugin closes the connection");
}

/// A call as a kubelet makes it.
async fn call(host: &InMemory) {
    let stream = host.connect(&socket(host)).await.expect("the plugin listens");
    let client =
        device_plugin::connection::connect(stream).await.expect("the plugin speaks HTTP/2");
    let answer = DevicePluginClient::new(client).get_device_plugin_options(Empty {}).await;
    assert!(answer.is_ok(), "{answer:?}");
}

/// Writes the bytes that a client sends.
fn write_client_bytes(u: &mut Unstructured<'_>, out: &mut Vec<u8>) -> Result<()> {
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
                let body = if u.arbitrary()? { message(u)? } else { short_bytes(u)? };
                let body = if u.ratio(7, 8)? { framed(&body) } else { body };
                frame(out, 0, u.int_in_range(0..=1)?, stream, &body);
                stream += 2;
            }
            4 | 5 => {
                let (kind, flags) = (u.int_in_range(0..=10)?, u.arbitrary()?);
                let number = if u.arbitrary()? { stream } else { u.arbitrary()? };
                frame(out, kind, flags, number, &short_bytes(u)?);
            }
            6 => {
                let flags = u.arbitrary()?;
                frame(out, 1, flags, stream, &short_bytes(u)?);
                stream += 2;
            }
            _ => out.extend(short_bytes(u)?),
        }
    }
    Ok(())
}

/// A request with arbitrary content, possibly of another method.
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

fn short_bytes(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
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

/// The headers of a call, in HPACK without compression (RFC 7541, section 6.2.2).
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
            block.push(u8::try_from(text.len()).expect("the texts are short"));
            block.extend(text.as_bytes());
        }
    }
    block
}

/// A resource with two devices.
struct Gpus(watch::Sender<Arc<DeviceList>>);

impl Default for Gpus {
    fn default() -> Self {
        let devices = ["a", "b"].map(AdvertisedDevice::healthy);
        let list = DeviceList::new(devices).expect("the list is short");
        Gpus(watch::Sender::new(Arc::new(list)))
    }
}

#[async_trait]
impl Resource for Gpus {
    fn name(&self) -> &'static str {
        RESOURCE
    }

    fn socket_prefix(&self) -> Cow<'_, str> {
        "gpu".into()
    }

    fn devices(&self) -> watch::Receiver<Arc<DeviceList>> {
        self.0.subscribe()
    }

    async fn allocate(&self, ids: &[String]) -> std::result::Result<ContainerResponse, Status> {
        match ids.iter().find(|id| !["a", "b"].contains(&id.as_str())) {
            Some(id) => Err(Status::not_found(format!("no device `{id}`"))),
            None => Ok(ContainerResponse::default()),
        }
    }

    fn options(&self) -> DevicePluginOptions {
        DevicePluginOptions { get_preferred_allocation_available: true, ..Default::default() }
    }

    async fn preferred_allocation(
        &self,
        request: PreferredRequest<'_>,
    ) -> std::result::Result<Vec<String>, Status> {
        Ok(request.available.iter().take(request.size).cloned().collect())
    }
}
