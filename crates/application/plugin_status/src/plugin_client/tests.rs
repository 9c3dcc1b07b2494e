//! The client with real sockets.

use std::os::unix::fs::chown;
use std::sync::Arc;

use config::{EmptyEnvironment, Flags};
use device_plugin::{DevicePlugin, Resource, Served};
use devices::{Catalog, DriverModel};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::*;
use crate::answering_daemons::NodeState;
use daemon::node_devices::NodeDevices;

/// A daemon without a kubelet, which lists the devices of a recorded host.
struct Running {
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
    served: watch::Sender<Served>,
}

impl Running {
    fn start(directory: &Path, models: &[DriverModel]) -> Running {
        let flags = Flags { driver_models: models.to_vec(), ..Flags::default() };
        let policy = config::load(&flags, &EmptyEnvironment).unwrap().policy;
        let inventories =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fixtures/inventories");
        let host = config::inventory::read(&inventories.join("made-up-npu-beside-gpu.yaml"));
        let devices = NodeDevices::fixed(Catalog::new(policy), host.unwrap()).unwrap();
        let served = devices.served().borrow().clone();
        let served = watch::Sender::new(served);
        let (stop, stopped) = oneshot::channel::<()>();
        let plugin = DevicePlugin::following(directory, served.subscribe());
        let plugin = plugin.with_graceful_shutdown(async { _ = stopped.await });
        let task = tokio::spawn(async { plugin.run().await.unwrap() });
        Running { stop: Some(stop), task, served }
    }

    async fn stop(mut self) {
        drop(self.stop.take());
        self.task.await.unwrap();
    }
}

/// The answers once as many daemons with this many resources in all answer.
async fn asked(client: &mut PluginClient, daemons: usize, resources: usize) -> Answers {
    for _ in 0..500 {
        let answers = client.ask().await;
        let found: usize = answers.daemons.iter().map(|daemon| daemon.resources.len()).sum();
        if (answers.daemons.len(), found) == (daemons, resources) {
            return answers;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{:?}", client.ask().await);
}

fn names(answers: &Answers) -> Vec<String> {
    let NodeState::Known(listing) = answers.node_state() else { panic!("{answers:?}") };
    listing.node.resources.iter().map(|resource| resource.name.to_string()).collect()
}

#[tokio::test]
async fn each_daemon_is_asked_over_one_connection() {
    let folder = tempfile::tempdir().unwrap();
    let mut client = PluginClient::new(folder.path().to_owned());
    assert_eq!(client.ask().await, Answers::default());
    let first = Running::start(folder.path(), &[DriverModel::Wddm, DriverModel::Mcdm]);
    let answers = asked(&mut client, 1, 2).await;
    assert_eq!(names(&answers), ["directx.microsoft.com/display", "directx.microsoft.com/compute"]);
    while client.others.is_empty() {
        client.ask().await;
    }
    assert_eq!((client.connections.len(), client.others.len()), (1, 1));

    let second = Running::start(folder.path(), &[DriverModel::Legacy]);
    let answers = asked(&mut client, 2, 3).await;
    assert_eq!(names(&answers).len(), 2, "the second one waits");
    let connected: Vec<PathBuf> = client.connections.keys().cloned().collect();
    client.ask().await;
    assert_eq!(client.connections.keys().cloned().collect::<Vec<_>>(), connected);

    first.stop().await;
    let mut answers = asked(&mut client, 1, 1).await;
    while answers.node_state() == NodeState::NotServed {
        answers = asked(&mut client, 1, 1).await;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(names(&answers), ["microsoft.com/directx"]);
    assert_eq!((client.connections.len(), client.others.len()), (1, 0));
    second.stop().await;
    assert_eq!(client.ask().await, Answers::default());
}

/// The socket that has the connection is that of a resource that is no longer configured.
#[tokio::test]
async fn another_socket_of_the_daemon_is_asked_when_one_ends() {
    let folder = tempfile::tempdir().unwrap();
    let mut client = PluginClient::new(folder.path().to_owned());
    let daemon = Running::start(folder.path(), &[DriverModel::Wddm, DriverModel::Mcdm]);
    asked(&mut client, 1, 2).await;
    let connected = client.connections.keys().next().unwrap().clone();
    let name = connected.file_name().unwrap().to_string_lossy().into_owned();
    let is_kept = |resource: &Arc<dyn Resource>| !name.starts_with(&*resource.socket_prefix());
    daemon.served.send_modify(|served| served.resources.retain(is_kept));
    while client.connections.contains_key(&connected) {
        asked(&mut client, 1, 1).await;
    }
    asked(&mut client, 1, 1).await;
    daemon.stop().await;
}

#[tokio::test]
async fn the_socket_of_an_ordinary_user_is_not_believed() {
    let folder = tempfile::tempdir().unwrap();
    let mut client = PluginClient::new(folder.path().to_owned());
    let daemon = Running::start(folder.path(), &[DriverModel::Wddm]);
    asked(&mut client, 1, 1).await;
    let socket = client.connections.keys().next().unwrap().clone();
    if chown(&socket, Some(12345), None).is_err() {
        eprintln!("skipped: only root can give a file to another account");
        return;
    }
    let mut client = PluginClient::new(folder.path().to_owned());
    assert_eq!(client.ask().await, Answers::default());
    assert!(client.distrusted.contains(&socket));
    daemon.stop().await;
}

#[tokio::test]
async fn changes_are_published() {
    let folder = tempfile::tempdir().unwrap();
    let states = watch::Sender::new(NodeState::NotServed);
    let mut seen = states.subscribe();
    let following = tokio::spawn(PluginClient::new(folder.path().to_owned()).follow(states));
    let daemon = Running::start(folder.path(), &[DriverModel::Wddm]);
    let known = |state: &NodeState| matches!(state, NodeState::Known(_));
    let limit = Duration::from_secs(20);
    timeout(limit, seen.wait_for(known)).await.unwrap().unwrap();
    // While nothing changes, nobody is woken.
    tokio::time::sleep(2 * INTERVAL).await;
    seen.mark_unchanged();
    tokio::time::sleep(2 * INTERVAL).await;
    assert!(!seen.has_changed().unwrap());
    daemon.stop().await;
    let gone = |state: &NodeState| *state == NodeState::NotServed;
    timeout(limit, seen.wait_for(gone)).await.unwrap().unwrap();
    following.abort();
}
