//! A node with a plugin and a kubelet, and the random faults that affect them.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use device_plugin::v1beta1::{
    AllocateRequest, ContainerAllocateRequest, Empty, ListAndWatchResponse,
};
use device_plugin::{AdvertisedDevice, Transport};
use fastrand::Rng;
use kubelet_double::{
    Faults, InMemory, Inspection, KubeletDouble, KubeletHost, KubeletOptions, PodRequest,
    RegisterFault, StreamFault,
};
use tokio::io::{AsyncWriteExt, DuplexStream};
use tokio::runtime::Handle;
use tokio::task::{JoinSet, yield_now};
use tokio::time::{sleep, timeout};
use tonic::Streaming;

use crate::LIMIT;
use crate::plugin::{Caller, DIRECTORY, Devices, Node, Plugin, sockets};

/// The resources of the node: name, prefix and maximum number of devices.
const RESOURCES: [(&str, &str, u64); 3] =
    [("example.com/a", "a", 4), ("example.com/b", "b", 40), ("example.com/c", "c", 400)];

/// The number of faults in one round.
const FAULTS: u64 = 12;

/// How often each kind of fault was injected.
#[derive(Clone, Debug, Default)]
pub(crate) struct Totals(BTreeMap<&'static str, u64>);

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(what, count)| write!(f, "{what} {count}  "))
    }
}

pub(crate) struct Simulation {
    host: InMemory,
    kubelet: KubeletDouble<InMemory>,
    plugin: Plugin,
    resources: Vec<Arc<Devices>>,
    clients: Vec<OtherClient>,
    rng: Rng,
    pods: u64,
    totals: Totals,
}

/// The number of tasks that are alive.
pub(crate) fn tasks() -> usize {
    Handle::current().metrics().num_alive_tasks()
}

/// An open connection of a client that is not a kubelet.
enum OtherClient {
    /// A client that reads from its stream occasionally.
    Reader { _caller: Caller, stream: Box<Streaming<ListAndWatchResponse>> },
    /// A client that has called `ListAndWatch` and never reads.
    Stuck { _caller: Caller, _stream: Box<Streaming<ListAndWatchResponse>> },
    /// A client that has sent data that is not HTTP/2, or is incomplete.
    Garbage { _stream: DuplexStream },
}

impl Simulation {
    pub(crate) async fn new(options: KubeletOptions, rng: Rng) -> Self {
        let mut node = Node::new();
        let resources = RESOURCES.map(|(name, prefix, _)| node.add(name, prefix, 2)).to_vec();
        for resource in &resources {
            resource.require("devices");
        }
        let host = node.host.clone();
        let kubelet = KubeletDouble::start(host.clone(), DIRECTORY, options).unwrap();
        let plugin = node.run();
        let mut simulation = Simulation {
            host,
            kubelet,
            plugin,
            resources,
            clients: Vec::new(),
            rng,
            pods: 0,
            totals: Totals::default(),
        };
        simulation.heal().await;
        simulation.check(&|| "before any fault".to_owned()).await;
        simulation
    }

    /// Injects random faults.
    pub(crate) async fn inject_faults(&mut self) {
        for _ in 0..FAULTS {
            match self.rng.u64(0..13) {
                0..3 => self.restart_kubelet().await,
                3 => self.change_faults(),
                4 => self.delete_a_socket(),
                5 => self.empty_the_directory(),
                6 => self.fail_binds(),
                7 | 8 => self.change_devices(),
                9 => self.connect_other_clients().await,
                10 => self.disconnect_other_clients().await,
                11 => self.change_inspection(),
                _ => self.allocation_storm().await,
            }
            self.random_wait().await;
        }
    }

    /// Removes all faults. From now on the plugin must recover by itself.
    pub(crate) async fn heal(&mut self) {
        self.host.fail_binds(None);
        self.host.set_inspection(Inspection::Opens);
        self.kubelet.set_faults(Faults::default());
        self.clients = Vec::new();
        // A kubelet does not replace its own socket after it was deleted.
        let listens = self.host.identity(&Path::new(DIRECTORY).join("kubelet.sock")).unwrap();
        if listens.is_none() {
            self.kubelet.kill();
        }
        self.kubelet.start_again().unwrap();
        // Two minutes are enough for delayed answers to arrive and for idle connections to be
        // closed.
        sleep(Duration::from_mins(2)).await;
    }

    /// Checks that the plugin is ready and the kubelet has the correct lists.
    pub(crate) async fn check(&mut self, context: &impl Fn() -> String) {
        let Ok(()) = timeout(LIMIT, self.plugin.wait_until_ready()).await else {
            panic!("not ready but {:?}: {}", *self.plugin.readiness.borrow(), context());
        };
        let resources = &self.resources;
        let correct = self.kubelet.wait_for(|views| {
            views.len() == resources.len()
                && views.iter().zip(resources).all(|(view, resource)| resource.matches(view))
        });
        let correct = timeout(LIMIT, correct).await.is_ok();
        assert!(correct, "the kubelet has {:?}: {}", self.kubelet.resources(), context());
        let sockets = sockets(&self.host);
        assert_eq!(sockets.len(), self.resources.len(), "{sockets:?}: {}", context());
        for resource in &self.resources {
            assert_eq!(resource.streams(), 1, "{}: {}", resource.label(), context());
        }
    }

    /// Restores the initial devices and opens new connections, so that rounds can be compared.
    pub(crate) async fn reset(&mut self, context: &impl Fn() -> String) {
        for (resource, (_, prefix, _)) in self.resources.iter().zip(RESOURCES) {
            let devices = (0..2).map(|n| device(prefix, n, true)).collect();
            resource.change(|now| *now = devices);
        }
        self.kubelet.restart().await.unwrap();
        self.check(context).await;
        sleep(Duration::from_mins(1)).await;
    }

    /// Ends the plugin and the kubelet.
    pub(crate) async fn end(self) -> Totals {
        self.plugin.stop().await.unwrap();
        assert_eq!(sockets(&self.host), Vec::<std::path::PathBuf>::new());
        self.totals
    }

    /// Waits for a random time, from a few scheduler steps to 20 seconds.
    async fn random_wait(&mut self) {
        match self.rng.u64(0..4) {
            0 => {}
            1 => {
                for _ in 0..self.rng.u64(0..60) {
                    yield_now().await;
                }
            }
            2 => sleep(Duration::from_millis(self.rng.u64(0..300))).await,
            _ => sleep(Duration::from_millis(self.rng.u64(0..20_000))).await,
        }
    }

    fn count(&mut self, what: &'static str) {
        *self.totals.0.entry(what).or_default() += 1;
    }

    async fn restart_kubelet(&mut self) {
        self.count("kubelet restarts");
        if self.rng.u64(0..2) == 0 {
            self.kubelet.stop().await;
        } else {
            self.kubelet.kill();
        }
        self.random_wait().await;
        // The kubelet fails to start if its binds fail too.
        if self.kubelet.start_again().is_err() {
            self.count("failed kubelet starts");
        }
    }

    fn change_faults(&mut self) {
        self.count("kubelet faults");
        let delay = Duration::from_millis(self.rng.u64(0..40_000));
        let register = match self.rng.u64(0..8) {
            0 => RegisterFault::Refuse("no".to_owned()),
            1 => RegisterFault::Hang,
            2 => RegisterFault::AnswerLate(delay),
            3 => RegisterFault::ActLate(delay),
            4 => RegisterFault::RefuseAfterDial("odd".to_owned()),
            _ => RegisterFault::None,
        };
        let stream = match self.rng.u64(0..8) {
            0 => StreamFault::NeverOpen,
            1 => StreamFault::NeverRead,
            2 => StreamFault::DropAfter(delay / 20),
            _ => StreamFault::None,
        };
        self.kubelet.set_faults(Faults { register, stream });
    }

    fn delete_a_socket(&mut self) {
        self.count("deleted sockets");
        let sockets = sockets(&self.host);
        if let Some(socket) = self.rng.choice(&sockets) {
            self.host.remove(socket).unwrap();
        }
    }

    fn empty_the_directory(&mut self) {
        self.count("emptied directories");
        self.host.remove_directory(Path::new(DIRECTORY));
        if self.rng.u64(0..2) == 0 {
            self.host.create_directory(Path::new(DIRECTORY)).unwrap();
        }
    }

    fn fail_binds(&mut self) {
        self.count("full disks");
        let errors = [io::ErrorKind::StorageFull, io::ErrorKind::PermissionDenied];
        let error = self.rng.choice(&errors).copied().filter(|_| self.rng.u64(0..2) == 0);
        self.host.fail_binds(error);
    }

    fn change_inspection(&mut self) {
        self.count("changed inspections");
        let denied = Inspection::Fails(io::ErrorKind::PermissionDenied);
        let inspections = [Inspection::Opens, Inspection::Lists, denied];
        self.host.set_inspection(*self.rng.choice(&inspections).unwrap());
    }

    fn change_devices(&mut self) {
        self.count("device changes");
        for (resource, (_, prefix, most)) in self.resources.iter().zip(RESOURCES) {
            let count = self.rng.u64(0..=most);
            let rng = &mut self.rng;
            let devices = (0..count).map(|n| device(prefix, n, rng.u64(0..4) > 0)).collect();
            resource.change(|now| *now = devices);
        }
    }

    async fn connect_other_clients(&mut self) {
        self.count("waves of other clients");
        for socket in sockets(&self.host) {
            for _ in 0..self.rng.u64(0..20) {
                if let Some(client) = self.other_client(&socket).await {
                    self.clients.push(client);
                }
            }
        }
    }

    /// Connects another client, if the plugin accepts the connection.
    async fn other_client(&mut self, socket: &Path) -> Option<OtherClient> {
        let mut io = self.host.connect(socket).await.ok()?;
        if self.rng.u64(0..3) == 0 {
            let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec();
            let cut = usize::try_from(self.rng.u64(0..preface.len() as u64)).unwrap();
            let mut bytes = preface[..cut].to_vec();
            bytes.extend((0..self.rng.u64(0..40)).map(|_| self.rng.u8(..)));
            // The plugin may have closed the connection already.
            let _ = io.write_all(&bytes).await;
            return Some(OtherClient::Garbage { _stream: io });
        }
        let mut caller = Caller::over(io).await?;
        let response =
            timeout(Duration::from_secs(5), caller.plugin.list_and_watch(Empty {})).await;
        let stream = Box::new(response.ok()?.ok()?.into_inner());
        Some(if self.rng.u64(0..3) == 0 {
            OtherClient::Stuck { _caller: caller, _stream: stream }
        } else {
            OtherClient::Reader { _caller: caller, stream }
        })
    }

    async fn disconnect_other_clients(&mut self) {
        self.count("disconnections of other clients");
        for client in &mut self.clients {
            if let OtherClient::Reader { stream, .. } = client {
                let _ = timeout(Duration::from_millis(10), stream.message()).await;
            }
        }
        self.rng.shuffle(&mut self.clients);
        let left = usize::try_from(self.rng.u64(0..=self.clients.len() as u64)).unwrap();
        self.clients.truncate(left);
    }

    /// Admits and terminates pods, and lets other clients allocate devices that may not exist,
    /// while the devices change.
    async fn allocation_storm(&mut self) {
        self.count("allocation storms");
        let mut callers = JoinSet::new();
        for socket in sockets(&self.host) {
            let host = self.host.clone();
            let ids: Vec<String> = (0..20).map(|_| format!("a-{}", self.rng.u64(0..6))).collect();
            callers.spawn(async move {
                let Ok(io) = host.connect(&socket).await else { return };
                let Some(mut caller) = Caller::over(io).await else { return };
                for id in ids {
                    let container = ContainerAllocateRequest { devices_ids: vec![id] };
                    let request = AllocateRequest { container_requests: vec![container] };
                    let _ = timeout(Duration::from_secs(5), caller.plugin.allocate(request)).await;
                }
            });
        }
        for _ in 0..5 {
            self.change_devices();
            self.pods += 1;
            let count = u32::try_from(1 + self.rng.u64(0..3)).unwrap();
            let (resource, ..) = *self.rng.choice(&RESOURCES).unwrap();
            let pod = PodRequest::single(format!("pod-{}", self.pods), resource, count);
            let _ = timeout(Duration::from_secs(5), self.kubelet.admit(pod)).await;
            self.kubelet.terminate_pod(&format!("pod-{}", self.pods));
        }
        while callers.join_next().await.is_some() {}
    }
}

fn device(prefix: &str, n: u64, healthy: bool) -> AdvertisedDevice {
    let mut device = AdvertisedDevice::healthy(format!("{prefix}-{n}"));
    device.healthy = healthy;
    device
}
