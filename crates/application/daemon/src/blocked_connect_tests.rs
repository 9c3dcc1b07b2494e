//! The end of a plugin whose connect to the kubelet hangs.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use device_plugin::{DevicePlugin, Identity, KUBELET_SOCKET, Transport};
use devices::{Catalog, DriverModel};
use kubelet_double::{InMemory, KubeletHost as _, MemoryListener};
use tokio::io::DuplexStream;
use tokio::sync::Notify;

use crate::node_devices::NodeDevices;
use command_line::configuration;
use process::event_loop;

const DIRECTORY: &str = "/kubelet";

/// A host on which a connect blocks its thread for ever, as on Windows while the process that
/// listens does not accept.
#[derive(Clone)]
struct BlockedConnect {
    host: InMemory,
    blocked: std::sync::Arc<Notify>,
}

impl Transport for BlockedConnect {
    type Stream = DuplexStream;
    type Listener = MemoryListener;
    type Lock = <InMemory as Transport>::Lock;

    fn bind(&self, path: &Path) -> io::Result<MemoryListener> {
        self.host.bind(path)
    }

    async fn connect(&self, _: &Path) -> io::Result<DuplexStream> {
        let blocked = std::sync::Arc::clone(&self.blocked);
        let call = move || {
            blocked.notify_one();
            loop {
                std::thread::park();
            }
        };
        tokio::task::spawn_blocking(call).await?
    }

    fn identity(&self, path: &Path) -> io::Result<Option<Identity>> {
        self.host.identity(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.host.remove(path)
    }

    fn lock(&self, directory: &Path, name: &str) -> io::Result<Self::Lock> {
        self.host.lock(directory, name)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        self.host.list(directory)
    }
}

/// Runs a plugin until its connect to the kubelet blocks, and shuts it down.
fn run_until_connect_blocks() {
    let transport =
        BlockedConnect { host: InMemory::default(), blocked: std::sync::Arc::default() };
    transport.host.create_directory(DIRECTORY.as_ref()).unwrap();
    let _kubelet = transport.bind(&Path::new(DIRECTORY).join(KUBELET_SOCKET)).unwrap();
    let event_loop = event_loop::build().unwrap();
    let _entered = event_loop.enter();
    let text = "schema: directx-inventory/v1\nadapters: []\n";
    let snapshot = config::inventory::parse("host.yaml", text).unwrap();
    let driver_models = vec![DriverModel::Wddm];
    let flags = config::Flags { driver_models, ..Default::default() };
    let config = configuration::load(&flags).unwrap();
    let devices = NodeDevices::fixed(Catalog::new(config.policy), snapshot).unwrap();
    let blocked = std::sync::Arc::clone(&transport.blocked);
    let shutdown = async move { blocked.notified().await };
    let plugin = DevicePlugin::following(DIRECTORY, devices.served())
        .with_transport(transport)
        .with_graceful_shutdown(shutdown);
    event_loop.block_on(plugin.run()).unwrap();
}

#[test]
fn a_blocked_connect_does_not_delay_the_end() {
    let (done, ended) = mpsc::channel();
    std::thread::spawn(move || {
        run_until_connect_blocks();
        done.send(()).unwrap();
    });
    ended.recv_timeout(Duration::from_mins(2)).expect("the plugin does not end");
}
