//! How a plugin ends: shutdowns, panics and invalid resources.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use device_plugin::v1beta1::Empty;
use device_plugin::{Identity, Listener, Resource, Transport};
use kubelet_double::{InMemory, KubeletDouble, KubeletOptions, MemoryListener, PodRequest};
use tokio::io::DuplexStream;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep, timeout};
use tonic::Code;

use crate::plugin::{Caller, DIRECTORY, Devices, GPU, Node, Plugin, sockets};

#[tokio::test(start_paused = true)]
async fn shutdown_closes_streams_with_a_reason_and_removes_everything() {
    let tasks = Handle::current().metrics().num_alive_tasks();
    let mut node = Node::new();
    let devices = node.add(GPU, "gpu", 4);
    let kubelet =
        KubeletDouble::start(node.host.clone(), DIRECTORY, KubeletOptions::default()).unwrap();
    let plugin = node.run();
    plugin.wait_until_ready().await;
    let mut caller = Caller::connect(&node.host, &sockets(&node.host)[0]).await;
    let mut stream = caller.plugin.list_and_watch(Empty {}).await.unwrap().into_inner();
    stream.message().await.unwrap().unwrap();
    let started = Instant::now();
    plugin.stop().await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
    let end = stream.message().await.unwrap_err();
    assert_eq!(
        (end.code(), end.message()),
        (Code::Unavailable, "device plugin is closing this socket")
    );
    assert_eq!(sockets(&node.host), Vec::<PathBuf>::new());
    assert_eq!(devices.streams(), 0);
    drop((caller, stream, kubelet));
    sleep(Duration::from_secs(1)).await;
    assert_eq!(Handle::current().metrics().num_alive_tasks(), tasks);
}

/// The whole shutdown of a `HostProcess` container has five seconds.
#[tokio::test(start_paused = true)]
async fn a_call_that_does_not_end_delays_the_shutdown_by_less_than_two_seconds() {
    let mut node = Node::new();
    // The list is longer than the 2 MiB that a client accepts before it reads.
    let devices = node.add(GPU, "gpu", 150_000);
    let kubelet =
        KubeletDouble::start(node.host.clone(), DIRECTORY, KubeletOptions::default()).unwrap();
    let plugin = node.run();
    plugin.wait_until_ready().await;
    let mut caller = Caller::connect(&node.host, &sockets(&node.host)[0]).await;
    let _unread = caller.plugin.list_and_watch(Empty {}).await.unwrap().into_inner();
    assert_eq!(devices.streams(), 2);
    let started = Instant::now();
    plugin.stop().await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    assert_eq!(sockets(&node.host), Vec::<PathBuf>::new());
    drop((caller, kubelet));
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_a_call_fails_only_this_call() {
    let mut node = Node::new();
    let devices = node.add(GPU, "gpu", 2);
    let kubelet =
        KubeletDouble::start(node.host.clone(), DIRECTORY, KubeletOptions::default()).unwrap();
    let plugin = node.run();
    plugin.wait_until_ready().await;
    *devices.panic_on.lock().unwrap() = Some("gpu-1".to_owned());
    kubelet.admit(PodRequest::single("a", GPU, 2)).await.unwrap_err();
    sleep(Duration::from_secs(10)).await;
    assert!(plugin.readiness.borrow().is_ready());
    assert_eq!(kubelet.registrations(GPU), 1);
    *devices.panic_on.lock().unwrap() = None;
    kubelet.admit(PodRequest::single("b", GPU, 2)).await.unwrap();
}

/// A host whose sockets panic.
#[derive(Clone)]
struct Broken {
    host: InMemory,
    what: &'static str,
}

struct BrokenListener(MemoryListener, &'static str);

impl Listener for BrokenListener {
    type Stream = DuplexStream;

    async fn accept(&mut self) -> io::Result<DuplexStream> {
        assert!(self.1 != "accept", "accept is broken");
        self.0.accept().await
    }
}

impl Transport for Broken {
    type Stream = DuplexStream;
    type Listener = BrokenListener;
    type Lock = <InMemory as Transport>::Lock;

    fn bind(&self, path: &Path) -> io::Result<BrokenListener> {
        self.host.bind(path).map(|listener| BrokenListener(listener, self.what))
    }

    async fn connect(&self, path: &Path) -> io::Result<DuplexStream> {
        assert!(self.what != "connect", "connect is broken");
        self.host.connect(path).await
    }

    fn identity(&self, path: &Path) -> io::Result<Option<Identity>> {
        self.host.identity(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.host.remove(path)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        self.host.list(directory)
    }

    fn lock(&self, directory: &Path, name: &str) -> io::Result<Self::Lock> {
        self.host.lock(directory, name)
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_any_task_ends_the_plugin() {
    for what in ["accept", "connect"] {
        let host = Node::new().host;
        let kubelet =
            KubeletDouble::start(host.clone(), DIRECTORY, KubeletOptions::default()).unwrap();
        let resource: Arc<dyn Resource> = Devices::new(GPU, "gpu", 1);
        let broken = Broken { host: host.clone(), what };
        let plugin = Plugin::run(broken, DIRECTORY, vec![resource]);
        let ended = timeout(Duration::from_secs(10), plugin.task).await.unwrap();
        let panic = ended.unwrap_err().into_panic();
        assert_eq!(*panic.downcast_ref::<&str>().unwrap(), format!("{what} is broken"));
        assert_eq!(sockets(&host), Vec::<PathBuf>::new());
        drop(kubelet);
    }
}

#[tokio::test(start_paused = true)]
async fn shuts_down_while_waiting_for_the_kubelet() {
    let mut node = Node::new();
    node.add(GPU, "gpu", 4);
    let plugin = node.run();
    sleep(Duration::from_secs(10)).await;
    plugin.stop().await.unwrap();
    assert_eq!(node.host.list(DIRECTORY.as_ref()).unwrap(), Vec::<PathBuf>::new());
}

#[tokio::test(start_paused = true)]
async fn rejects_duplicate_resources() {
    let mut node = Node::new();
    node.add(GPU, "a", 1);
    node.add(GPU, "b", 1);
    let twice = node.run().task.await.unwrap().unwrap_err();
    assert_eq!(twice.to_string(), "duplicate resource `example.com/gpu`");
}
