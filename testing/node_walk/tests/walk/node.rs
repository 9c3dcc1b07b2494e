//! A node with its programs.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cluster::TestServer;
use config::{Config, ConfigError, Environment, Flags};
use daemon::node_devices::{Discovery, NodeDevices};
use daemon::test_host::TestHost;
use device_plugin::status::{StatusError, query_all};
use device_plugin::{DevicePlugin, Transport};
use devices::{Catalog, DriverModel};
use feature_discovery::Settings;
use host::{Adapter, Attribute, Attributes, CORDON_ANNOTATION, HostSnapshot};
use kubelet_double::{InMemory, KubeletDouble, KubeletOptions, PodRequest};
use plugin_status::answering_daemons::{Answers, NodeState};
use plugin_status::cordon_file;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

use crate::steps::Step;

/// The directory of the sockets, in memory.
const DIRECTORY: &str = "/device-plugins";

pub(crate) const TAINT: &str = "directx.microsoft.com/not-ready";

/// The configuration files. The last one is invalid.
pub(crate) const CONFIGURATIONS: [&str; 8] = [
    "",
    "multitenancy: 4",
    "multitenancy: 2\nrenameShared: true",
    "includeIntegrated: true",
    "removalGraceSeconds: 5",
    "resources:\n- name: example.com/nvidia\n  match: {vendor: nvidia}\n",
    "resources:\n- name: example.com/all\n  match: {}\n  multitenancy: 3\n",
    "multitenancy: [4",
];

/// An environment with one file and nothing else.
struct OneFile(&'static str);

impl Environment for OneFile {
    fn variable(&self, _: &str) -> Option<std::ffi::OsString> {
        None
    }

    fn variable_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn working_directory(&self) -> std::io::Result<PathBuf> {
        Ok("/".into())
    }

    fn read(&self, _: &Path) -> std::io::Result<Vec<u8>> {
        Ok(self.0.as_bytes().to_vec())
    }
}

/// The configuration of a plugin for these driver models, of two plugins or of the only one.
pub(crate) fn configuration(number: usize, models: &[DriverModel]) -> Result<Config, ConfigError> {
    let config = Some("config.yaml".into());
    let flags = Flags { config, driver_models: models.to_vec(), ..Flags::default() };
    let mut config = config::load(&flags, &OneFile(CONFIGURATIONS[number]))?;
    // As the variable DIRECTX_OTHER_DRIVER_MODELS says in the manifests with two DaemonSets.
    let others = [DriverModel::Wddm, DriverModel::Mcdm].into_iter();
    config.other_driver_models = others.filter(|model| !models.contains(model)).collect();
    Ok(config)
}

/// A node, and what an administrator knows of it.
pub(crate) struct Node {
    sockets: InMemory,
    pub(crate) kubelet: KubeletDouble<InMemory>,
    pub(crate) is_kubelet_running: bool,
    pub(crate) server: TestServer,
    pub(crate) is_server_running: bool,
    /// The device plugin directory for the file with cordoned devices.
    files: TempDir,
    states: watch::Sender<NodeState>,
    /// One plugin for both driver models, or one for each.
    pub(crate) plugins: Vec<PluginOfNode>,
    pub(crate) discovery: Option<JoinHandle<()>>,
    /// Each adapter, and whether the host has it.
    all: Vec<(Adapter, bool)>,
    /// The attributes of each adapter in its first mode.
    attributes: Vec<Attributes>,
    /// The number of the newest valid configuration.
    pub(crate) configuration: usize,
    pub(crate) cordoned: Vec<usize>,
    pods: VecDeque<String>,
    started_pods: usize,
}

/// A plugin of the node, whether it runs or not.
pub(crate) struct PluginOfNode {
    pub(crate) models: Vec<DriverModel>,
    pub(crate) running: Option<Plugin>,
    pub(crate) hangs: bool,
}

/// A plugin that runs.
pub(crate) struct Plugin {
    tasks: Vec<JoinHandle<()>>,
    host: TestHost,
    pub(crate) devices: watch::Receiver<Discovery>,
}

impl Drop for Plugin {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl Node {
    /// A node whose programs run, with the devices of a made-up host.
    pub(crate) async fn start(has_two_plugins: bool) -> Node {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/inventories");
        let host = config::inventory::read(&folder.join("made-up-npu-beside-gpu.yaml")).unwrap();
        let sockets = InMemory::new();
        let kubelet =
            KubeletDouble::start(sockets.clone(), DIRECTORY, KubeletOptions::default()).unwrap();
        let taint = json!({"key": TAINT, "effect": "NoSchedule"});
        let models = if has_two_plugins {
            vec![vec![DriverModel::Wddm], vec![DriverModel::Mcdm]]
        } else {
            vec![vec![DriverModel::Wddm, DriverModel::Mcdm]]
        };
        let mut node = Node {
            sockets,
            kubelet,
            is_kubelet_running: true,
            server: TestServer::new(json!({"spec": {"taints": [taint]}})),
            is_server_running: true,
            files: tempfile::tempdir().unwrap(),
            states: watch::Sender::new(NodeState::NotServed),
            plugins: models
                .into_iter()
                .map(|models| PluginOfNode { models, running: None, hangs: false })
                .collect(),
            discovery: None,
            attributes: host.adapters.iter().map(|adapter| adapter.attributes).collect(),
            all: host.adapters.into_iter().map(|adapter| (adapter, true)).collect(),
            configuration: 0,
            cordoned: Vec::new(),
            pods: VecDeque::new(),
            started_pods: 0,
        };
        node.take(Step::RepairEverything).await;
        node
    }

    pub(crate) fn adapters(&self) -> usize {
        self.all.len()
    }

    /// What the host has now.
    pub(crate) fn snapshot(&self) -> HostSnapshot {
        let present = self.all.iter().filter(|(_, is_present)| *is_present);
        HostSnapshot {
            adapters: present.map(|(adapter, _)| adapter.clone()).collect(),
            cordoned: cordon_file::devices_in(self.cordon_file()),
            ..HostSnapshot::default()
        }
    }

    fn cordon_file(&self) -> PathBuf {
        cordon_file::path_in(self.files.path())
    }

    pub(crate) async fn take(&mut self, step: Step) {
        match step {
            Step::Plug(adapter, is_present) => {
                self.all[adapter].1 = is_present;
                self.read_host();
            }
            Step::Mode(number, is_mcdm) => {
                let attributes = if is_mcdm {
                    [Attribute::D3d12CoreCompute].into_iter().collect()
                } else {
                    self.attributes[number]
                };
                self.all[number].0.attributes = attributes;
                self.read_host();
            }
            Step::Problem(adapter, code) => {
                if let Some(pnp) = &mut self.all[adapter].0.pnp {
                    pnp.problem_code = code;
                }
                self.read_host();
            }
            Step::Configure(number) => {
                for plugin in &self.plugins {
                    let configuration = configuration(number, &plugin.models);
                    if configuration.is_ok() {
                        self.configuration = number;
                    }
                    if let Some(running) = &plugin.running {
                        running.host.configure(configuration.map_err(Into::into));
                    }
                }
            }
            Step::Cordon(adapters) => {
                let ids = adapters.iter().filter_map(|n| self.all[*n].0.pnp.as_ref());
                let ids: Vec<String> = ids.map(|pnp| pnp.id.to_string()).collect();
                self.cordoned = adapters;
                let annotation = json!({CORDON_ANNOTATION: ids.join(",")});
                self.server.change(|node| node["metadata"]["annotations"] = annotation);
            }
            Step::StartPod(number) => self.start_pod(number).await,
            Step::EndPod => {
                if let Some(pod) = self.pods.pop_front() {
                    self.kubelet.terminate_pod(&pod);
                }
            }
            Step::Plugin(number, false) => self.plugins[number].running = None,
            Step::Plugin(number, true) => self.start_plugin(number).await,
            Step::Hang(number, hangs) => self.plugins[number].hangs = hangs,
            Step::Discovery(false) => self.discovery.take().into_iter().for_each(|d| d.abort()),
            Step::Discovery(true) => self.start_discovery(),
            Step::Kubelet(false) => {
                self.kubelet.kill();
                self.is_kubelet_running = false;
            }
            Step::Kubelet(true) => {
                self.kubelet.start_again().unwrap();
                self.is_kubelet_running = true;
            }
            Step::ApiServer(runs) => {
                self.server.run(runs);
                self.is_server_running = runs;
            }
            Step::Spoil => self.server.change(|node| {
                node["metadata"]["labels"] = json!({});
                node["metadata"]["managedFields"] = json!([]);
                node["status"]["conditions"] = json!([]);
            }),
            Step::Wait(seconds) => self.pass(Duration::from_secs(seconds)).await,
            Step::RepairEverything => {
                self.kubelet.start_again().unwrap();
                self.is_kubelet_running = true;
                self.server.run(true);
                self.is_server_running = true;
                for number in 0..self.plugins.len() {
                    self.plugins[number].hangs = false;
                    self.start_plugin(number).await;
                }
                self.start_discovery();
            }
        }
    }

    fn read_host(&self) {
        for plugin in self.running() {
            plugin.host.read(self.snapshot());
        }
    }

    /// The plugins that run.
    pub(crate) fn running(&self) -> impl Iterator<Item = &Plugin> {
        self.plugins.iter().filter_map(|plugin| plugin.running.as_ref())
    }

    async fn start_plugin(&mut self, number: usize) {
        if self.plugins[number].running.is_some() {
            return;
        }
        let configuration = configuration(self.configuration, &self.plugins[number].models);
        let configuration = configuration.unwrap();
        let catalog = Catalog::new(configuration.policy.clone());
        let cordoned = cordon_file::devices_in(self.cordon_file());
        let (host, sources) = TestHost::new(configuration, cordoned);
        host.read(self.snapshot());
        let devices = NodeDevices::start(catalog, sources).await.unwrap();
        let discovery = devices.discovery();
        let plugin = DevicePlugin::following(DIRECTORY, devices.served());
        let plugin = plugin.with_transport(self.sockets.clone());
        let tasks = vec![
            tokio::spawn(async move {
                let error = devices.run().await;
                panic!("the daemon ended: {error}");
            }),
            tokio::spawn(async move { plugin.run().await.unwrap() }),
        ];
        self.plugins[number].running = Some(Plugin { tasks, host, devices: discovery });
    }

    fn start_discovery(&mut self) {
        if self.discovery.is_some() {
            return;
        }
        let client = self.server.client();
        let settings = Settings {
            gfd_labels: true,
            startup_taint: Some(TAINT.to_owned()),
            plugin: Some(self.files.path().to_owned()),
            ..Settings::default()
        };
        self.states.send_replace(NodeState::NotServed);
        let states = self.states.subscribe();
        self.discovery = Some(tokio::spawn(async move {
            feature_discovery::report(client, settings, states).await;
        }));
    }

    async fn start_pod(&mut self, number: usize) {
        let resources = self.kubelet.resources();
        let free: Vec<String> = resources
            .into_iter()
            .filter(|resource| resource.allocatable > 0)
            .map(|resource| resource.name)
            .collect();
        if free.is_empty() {
            return;
        }
        let resource = free[number % free.len()].clone();
        self.started_pods += 1;
        let name = format!("pod-{}", self.started_pods);
        let pod = PodRequest::new(name.clone(), [(resource, 1)].into());
        if self.kubelet.schedule(&pod).is_err() {
            return;
        }
        if self.kubelet.admit(pod).await.is_ok() {
            self.pods.push_back(name);
        }
    }

    /// Lets this time pass, and does meanwhile what happens each second on a node.
    pub(crate) async fn pass(&mut self, time: Duration) {
        let start = Instant::now();
        let end = start + time;
        loop {
            self.states.send_if_modified({
                let state = self.ask_plugin().await;
                |before| {
                    let is_changed = *before != state;
                    *before = state;
                    is_changed
                }
            });
            for plugin in self.running() {
                plugin.host.cordon(cordon_file::devices_in(self.cordon_file()));
            }
            self.report_node_status();
            let now = Instant::now();
            if now >= end {
                return;
            }
            // What happens after a while is a matter of minutes.
            let is_recent = now < start + Duration::from_secs(10);
            let step = Duration::from_secs(if is_recent { 1 } else { 30 });
            sleep_until(end.min(now + step)).await;
        }
    }

    /// Waits until nothing changes any more: the kubelet forgets a resource after five minutes, and
    /// feature discovery tries a refused request again after a minute. A device that was removed is
    /// still listed then, and is gone for labels.
    pub(crate) async fn rest(&mut self) {
        self.pass(Duration::from_mins(8)).await;
    }

    /// What feature discovery sees of the plugin.
    pub(crate) async fn ask_plugin(&self) -> NodeState {
        let directory = Path::new(DIRECTORY);
        let mut sockets = self.sockets.list(directory).unwrap();
        sockets.retain(|socket| !socket.ends_with(device_plugin::KUBELET_SOCKET));
        let answers = query_all(&self.sockets, &sockets).await;
        let answers = sockets.into_iter().zip(answers).map(|(socket, answer)| {
            let name = socket.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let is_of = |model: &DriverModel| name.starts_with(model.socket_prefix());
            let is_only = self.plugins.len() == 1;
            let hangs = |plugin: &PluginOfNode| {
                plugin.hangs && (is_only || plugin.models.iter().any(is_of))
            };
            let is_busy = answer.is_ok() && self.plugins.iter().any(hangs);
            (socket, if is_busy { Err(StatusError::Busy) } else { answer })
        });
        Answers::of(answers).node_state()
    }

    /// The kubelet writes what can be allocated into the node object.
    fn report_node_status(&self) {
        if !self.is_kubelet_running || !self.is_server_running {
            return;
        }
        let resources = self.kubelet.resources();
        let counts = |count: fn(&kubelet_double::ResourceView) -> usize| -> Value {
            resources.iter().map(|r| (r.name.clone(), json!(count(r).to_string()))).collect()
        };
        let capacity = counts(|resource| resource.capacity);
        let allocatable = counts(|resource| resource.allocatable);
        let status = &self.server.node()["status"];
        if (&status["capacity"], &status["allocatable"]) != (&capacity, &allocatable) {
            self.server.change(|node| {
                node["status"]["capacity"] = capacity;
                node["status"]["allocatable"] = allocatable;
            });
        }
    }
}
