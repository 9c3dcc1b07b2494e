//! What doctor reports about a node after one change. Each snapshot shows the changes of a test,
//! and below each the findings with their IDs and hints.

mod device_plugin_dir;
mod hardware;
mod plugin;
mod problems;
mod resources;
mod runtime_files;
mod windows;

use std::fmt::{Display, Write as _};
use std::path::PathBuf;
use std::sync::Arc;

use command_line::HostError;
use config::{Config, ConfigError, EmptyEnvironment, Flags};
use device_plugin::status::{Phase, ResourceStatus, StatusReport};
use devices::{
    AdditionalMount, Catalog, ContainerPolicy, DeviceSet, DriverModel, ModelPolicy, Moment,
};
use host::{
    Adapter, Attribute, Attributes, Containerd, DriverStore, HardwareId, HostSnapshot, License,
    NodeSoftware, NvidiaGpu, Nvml, PnpDevice, PnpId, Program, ProgramVersion, StoreFiles, Vendor,
};
use plugin_status::answering_daemons::Answers;
use plugin_status::plugin_report::PluginReport;
use strum::VariantArray as _;

use super::evaluate;
use crate::facts::{DirectoryAccess, DirectoryFacts, KubeletSocket, NodeFacts};
use crate::finding::{Finding, Status, Subject};

const TWO_T4: &str = include_str!("../../../../../fixtures/inventories/aws-t4-two.yaml");

/// Changes of a healthy node, and what doctor reports about the subjects.
struct Table {
    subjects: &'static [Subject],
    rows: Vec<(String, String)>,
}

impl Table {
    const fn of(subjects: &'static [Subject]) -> Table {
        Table { subjects, rows: Vec::new() }
    }

    /// `change` in words, and as code. Changes with the same findings as the one before share them.
    fn row(&mut self, words: impl Display, change: impl FnOnce(&mut NodeFacts)) {
        let mut facts = healthy();
        if self.subjects.contains(&Subject::Resources) && !self.subjects.contains(&Subject::Plugin)
        {
            // A plugin that runs would decide, whatever the test changes.
            facts.plugin = Some(Answers::default());
        }
        change(&mut facts);
        let names: Vec<&str> = self.subjects.iter().map(Into::into).collect();
        let findings = evaluate(&facts).into_iter().filter(|found| names.contains(&found.name));
        let mut findings: String = findings.map(|found| printed(&found)).collect();
        if findings.is_empty() {
            findings.push_str("no finding\n");
        }
        match self.rows.last_mut() {
            Some((changes, last)) if *last == findings => write!(changes, "\n# {words}").unwrap(),
            _ => self.rows.push((format!("# {words}"), findings)),
        }
    }

    fn text(&self) -> String {
        let rows = self.rows.iter().map(|(changes, findings)| format!("{changes}\n{findings}"));
        rows.collect::<Vec<_>>().join("\n")
    }
}

fn printed(finding: &Finding) -> String {
    let has_hint = finding.hint.is_some();
    assert!(has_hint || finding.status < Status::Warning, "without a hint: {finding:?}");
    let id = finding.id.map(|id| format!(" {id}")).unwrap_or_default();
    let hint = finding.hint.iter().map(|hint| format!("    hint: {hint}\n"));
    let status = finding.status.verdict();
    let hint: String = hint.collect();
    format!("{}: {status}{id}: {}\n{hint}", finding.name, finding.sentence())
}

/// A node without a fault: Server 2022 with one T4.
pub(crate) fn healthy() -> NodeFacts {
    let mut snapshot = two_gpus();
    snapshot.adapters.truncate(1);
    snapshot.adapters[0].nvidia.license = Some(License::NOT_REQUIRED);
    snapshot.node = NodeSoftware {
        hcs_failure: None,
        containerd: Some(Containerd {
            program: program(r"C:\containerd.exe", "2.3.7"),
            disabled_plugins: Some(vec![]),
        }),
        kubelet: Some(program(r"C:\k\kubelet.exe", "v1.31.1")),
        nvml: Some(nvml(&["WDDM"])),
    };
    let plugin = Some(answers(&snapshot, |_| {}));
    NodeFacts {
        snapshot,
        unread: None,
        missing_launcher_files: vec![],
        image: Some("10.0.20348.x".parse().unwrap()),
        directory: Some(DirectoryFacts {
            path: PathBuf::from(r"D:\kubelet\device-plugins"),
            access: DirectoryAccess::Writers(vec![]),
            socket: KubeletSocket::Accepts,
        }),
        configuration: Ok(configuration()),
        plugin,
    }
}

/// What a plugin with the default configuration answers, after `change`.
fn answers(snapshot: &HostSnapshot, change: impl FnOnce(&mut PluginReport)) -> Answers {
    let offer = Catalog::new(configuration().policy).offer(snapshot);
    let set = DeviceSet::next(None, offer, Moment::default());
    let mut report = PluginReport::new(String::new(), &set, None);
    change(&mut report);
    let resources = set.resources.iter().map(|resource| ResourceStatus {
        name: resource.spec.name.to_string(),
        phase: Phase::Ready.into(),
        ..ResourceStatus::default()
    });
    let resources = resources.collect();
    let document = report.document();
    let status = StatusReport { resources, document, instance: 1 };
    Answers::of([(PathBuf::from("/x/wddm-1.sock"), Ok(status))])
}

fn two_gpus() -> HostSnapshot {
    config::inventory::parse("aws-t4-two.yaml", TWO_T4).unwrap()
}

fn configuration() -> Config {
    config::load(&Flags::default(), &EmptyEnvironment).unwrap()
}

/// A program whose version is what `version` contains of one.
fn program(path: &str, version: &str) -> Program {
    let version = ProgramVersion::find(version).ok_or_else(|| "no version".to_owned());
    Program::Found { path: path.to_owned(), version }
}

/// NVML with a GPU for each of these driver models.
fn nvml(models: &[&str]) -> Nvml {
    let gpu = |(n, model): (usize, &&str)| NvidiaGpu {
        index: u32::try_from(n).unwrap(),
        name: "NVIDIA Tesla T4".to_owned(),
        driver_version: "528.49".to_owned(),
        driver_model: (*model).to_owned(),
    };
    Nvml {
        library: Some(r"C:\Windows\System32\nvml.dll".to_owned()),
        gpus: Ok(models.iter().enumerate().map(gpu).collect()),
    }
}

fn no_nvml() -> Nvml {
    Nvml { library: None, gpus: Err("no nvidia-smi".to_owned()) }
}

/// The display of a server without a driver of its vendor.
fn management_controller(adapter: &mut Adapter) {
    adapter.hardware_id = HardwareId { vendor: 0x1A03, device: 0x2000, ..Default::default() };
    adapter.attributes = Attributes::from_iter([Attribute::D3d11Graphics]);
    let pnp = adapter.pnp.as_mut().unwrap();
    pnp.id = PnpId::new(r"PCI\VEN_1A03&DEV_2000\1");
    pnp.description = "Microsoft Basic Display Adapter".to_owned();
}

fn additional(source: &str, destination: &str) -> AdditionalMount {
    AdditionalMount { source: source.parse().unwrap(), destination: destination.parse().unwrap() }
}

impl NodeFacts {
    fn set_build(&mut self, build: &str) {
        self.snapshot.host.build = Some(build.parse().unwrap());
    }

    fn adapters(&mut self) -> &mut Vec<Adapter> {
        &mut self.snapshot.adapters
    }

    fn adapter(&mut self) -> &mut Adapter {
        &mut self.snapshot.adapters[0]
    }

    fn pnp(&mut self) -> &mut PnpDevice {
        self.adapter().pnp.as_mut().unwrap()
    }

    fn store(&mut self) -> &mut DriverStore {
        self.adapter().driver_store.as_mut().unwrap()
    }

    /// A host with two GPUs, of which the second one is changed.
    fn second(&mut self, change: impl FnOnce(&mut Adapter)) {
        self.snapshot.adapters = two_gpus().adapters;
        change(&mut self.snapshot.adapters[1]);
    }

    fn models(&mut self) -> &mut Vec<ModelPolicy> {
        &mut self.configuration.as_mut().unwrap().policy.models
    }

    fn only_model(&mut self, only: DriverModel) {
        self.models().retain(|policy| policy.model == only);
    }

    /// The container policy of the driver model `wddm`.
    fn container(&mut self) -> &mut ContainerPolicy {
        Arc::make_mut(&mut self.models()[0].container)
    }

    fn mount(&mut self, vendor: Vendor, mount: AdditionalMount) {
        self.container().additional = [(vendor, vec![mount])].into();
    }

    /// The only device without an adapter.
    fn without_adapter(&mut self, id: &str, problem_code: u32) {
        let pnp = two_gpus().adapters.remove(0).pnp.unwrap();
        let device = PnpDevice { id: PnpId::new(id), problem_code, ..pnp };
        self.snapshot.devices_without_adapter = vec![device];
    }

    fn invalid_configuration(&mut self) {
        let what = "key `x`".to_owned();
        self.configuration = Err(ConfigError::Conflict { what, hint: "did you mean y" });
    }

    /// The adapters cannot be read.
    fn unreadable(&mut self) {
        self.unread = Some(HostError::Unsupported("no dxcore.dll".into()));
        self.adapters().clear();
    }

    fn set_nvml(&mut self, nvml: Nvml) {
        self.snapshot.node.nvml = Some(nvml);
    }
}

#[test]
fn a_whole_node() {
    let order = evaluate(&healthy());
    assert!(order.iter().all(|found| found.status == Status::Ok), "{order:?}");
    let mut order: Vec<&str> = order.iter().map(|found| found.name).collect();
    order.dedup();
    assert_eq!(order, Subject::VARIANTS.iter().map(<&str>::from).collect::<Vec<_>>());

    let mut table = Table::of(Subject::VARIANTS);
    table.row("nothing is changed", |_| ());
    table.row("the adapters cannot be read", NodeFacts::unreadable);
    table.row("the configuration is invalid", NodeFacts::invalid_configuration);
    table.row("the node is an inventory without software", |facts| {
        facts.snapshot.node = NodeSoftware::default();
        facts.plugin = None;
        facts.adapter().nvidia.license = None;
    });
    insta::assert_snapshot!(table.text());
}
