//! `simulate`: what each pod's container would get, and what the node object would say of the
//! devices. Everything is the daemon's own code, except the kubelet, which is [`kubelet_double`],
//! and the host, which does not change.

mod explain;
mod gpus;
mod json;
mod node;
mod pod_argument;
mod result;
mod simulated_host;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::anyhow;
use clap::Args;
use command_line::Failure;
use command_line::configuration;
use command_line::options::DriverModels;
use command_line::verdict::print_report;
use config::Flags;
use daemon::node_devices::NodeDevices;
use device_plugin::DevicePlugin;
use devices::{
    Catalog, Device, DeviceSet, Health, ListedDevice, NotAdvertised, NotAdvertisedReason,
    ResourceName,
};
use host::{HostSnapshot, PnpDevice};
use kubelet_double::{
    ContainerView, InMemory, KubeletDouble, KubeletOptions, PodRequest, ResourceView,
};
use process::event_loop;
use process::logging::LogArguments;
use report::{Message, NodeReport, Progress, devices_healthy, devices_ready};
use tracing::subscriber::{self, NoSubscriber};

use crate::simulate::json::Document;
use crate::simulate::pod_argument::{PodArgument, Request};
use crate::simulate::result::{Report, SimulatedPod};
use crate::simulate::simulated_host::{SimulatedHost, Source, WindowsServer};

#[derive(Args, Debug)]
#[command(
    after_help = "Without --pod, simulates one pod per replica of each resource, up to 15, plus one that \
                  must be refused. With --log-level, also prints what the daemon would log. \
                  Exit codes: 0, or 1 if a pod of --pod is refused.

Examples:
  See what pods would get on a recorded host with two GPUs:
    directx-device-plugin simulate
  See what they would get on this node:
    directx-device-plugin record --output host.yaml && directx-device-plugin simulate --inventory host.yaml
  See what they would get on a node with other GPUs:
    directx-device-plugin simulate --gpu T4 --gpu 'NVIDIA GeForce RTX 4090' --windows 2025
  See each file and variable of a pod:
    directx-device-plugin simulate --pod one=directx.microsoft.com/display:1 --verbose
  See the labels and conditions of the node, with the labels of NVIDIA's GPU Feature Discovery:
    directx-device-plugin simulate --gfd-labels
  Add the node to a cluster with KWOK, to see where its scheduler places pods:
    directx-device-plugin simulate --output node | kubectl apply -f -

docs/reference/inventory.md describes inventories, which can also be written by hand."
)]
pub(crate) struct SimulateArguments {
    /// Pod to simulate, whose only container requests these devices; repeatable
    #[arg(long = "pod", value_name = "NAME=RESOURCE:COUNT[,RESOURCE:COUNT]...")]
    pods: Vec<PodArgument>,
    /// GPU of a made-up host to simulate: a known one, such as T4, or another with its vendor, such as
    /// 'AMD Radeon PRO W7900'; with `:mcdm` a compute-only GPU, with `:npu` an NPU; repeatable, or
    /// separated by commas
    #[arg(long = "gpu", value_name = "NAME[:MODE]", value_delimiter = ',')]
    #[arg(conflicts_with = "inventory")]
    gpus: Vec<String>,
    /// Windows Server of a made-up host to simulate [default: 2022]
    #[arg(long, value_enum, value_name = "VERSION", conflicts_with = "inventory")]
    windows: Option<WindowsServer>,
    /// Print the GPUs that --gpu knows, and exit
    #[arg(long, exclusive = true)]
    list_gpus: bool,
    /// Configuration file (YAML)
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Inventory (a recorded host) to use instead of the demonstration host; `record` writes that
    /// of a node
    #[arg(long, value_name = "FILE")]
    inventory: Option<PathBuf>,
    #[command(flatten)]
    models: DriverModels,
    /// Output format; `node` is a manifest of the node object, for a cluster with KWOK
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = SimulateOutput::Text)]
    output: SimulateOutput,
    /// Also print what each pod's container gets (device entry, files and variables), and the labels
    /// and conditions of the node
    #[arg(long, short)]
    verbose: bool,
    /// Also show the labels of NVIDIA's GPU Feature Discovery, for NVIDIA devices
    #[arg(long)]
    gfd_labels: bool,
}

/// The value of `--output`.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum SimulateOutput {
    /// Human-readable
    Text,
    /// JSON
    Json,
    /// A manifest of the node object (YAML)
    Node,
}

/// Without `--pod`, the most pods of a resource that request one device.
const DEFAULT_PODS: usize = 15;

struct Simulation {
    resources: Vec<ResourceView>,
    pods: Vec<SimulatedPod>,
    /// Which pods were not simulated.
    left_out: Vec<String>,
}

/// Runs the command. It fails if a pod of the user is refused.
pub(crate) fn run(arguments: &SimulateArguments, logs: &LogArguments) -> Result<ExitCode, Failure> {
    if arguments.list_gpus {
        command_line::print(&gpus::list())?;
        return Ok(ExitCode::SUCCESS);
    }
    check_names(&arguments.pods)?;
    check_output(arguments)?;
    let SimulateArguments { inventory, gpus, windows, .. } = arguments;
    let host = SimulatedHost::of(inventory.as_deref(), gpus, *windows)?;
    let config = configuration::load(&Flags {
        driver_models: arguments.models.driver_models.clone(),
        config: arguments.config.clone(),
        ..Flags::default()
    })?;
    for notice in &config.notices {
        tracing::warn!("{notice}");
    }
    // The report has what the daemon would log.
    let _silence =
        logs.log_level.is_none().then(|| subscriber::set_default(NoSubscriber::default()));
    let runtime = event_loop::build()?;
    let _entered = runtime.enter();
    let devices = NodeDevices::fixed(Catalog::new(config.policy), host.snapshot.clone())?;
    let Simulation { resources, pods, left_out } =
        runtime.block_on(simulate(&devices, &arguments.pods))?;
    // The node object says nothing of pods.
    let left_out = if arguments.output == SimulateOutput::Node { Vec::new() } else { left_out };
    let is_refused = !arguments.pods.is_empty() && pods.iter().any(|pod| pod.outcome.is_err());
    let node = NodeReport::of(&devices.set());
    let conditions =
        [devices_healthy(&node), devices_ready(&node, |name| progress(&resources, name))];
    let own_notes = node_notes(&devices.set(), &host.snapshot.devices_without_adapter);
    let mut report = Report {
        notes: [host.notes.clone(), left_out, own_notes].concat(),
        hints: hints(&host.source, &devices.set(), &host.snapshot),
        labels: report::labels(&node, arguments.gfd_labels),
        conditions,
        host,
        resources,
        pods,
    };
    match arguments.output {
        SimulateOutput::Text => {
            let shows_node = arguments.verbose || arguments.gfd_labels;
            print_report(&report.text(arguments.verbose, shows_node))?;
        }
        SimulateOutput::Json => {
            report.notes.splice(0..0, config.notices);
            command_line::print_json(&Document::of(&report))?;
        }
        SimulateOutput::Node => {
            report.notes.splice(0..0, config.notices);
            command_line::print(&node::manifest(&report)?)?;
        }
    }
    Ok(if is_refused { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Fails if two pods have one name.
fn check_names(pods: &[PodArgument]) -> Result<(), Failure> {
    let mut names = HashSet::new();
    match pods.iter().find(|pod| !names.insert(&pod.name)) {
        None => Ok(()),
        Some(pod) => Err(Failure::usage(anyhow!("several pods are named `{}`", pod.name))
            .hint("give each pod a name; a pod requests several resources as NAME=R:1,S:1")),
    }
}

/// Fails if an option is about pods or text, and the output is only a node object.
fn check_output(arguments: &SimulateArguments) -> Result<(), Failure> {
    if arguments.output != SimulateOutput::Node {
        return Ok(());
    }
    let (option, hint) = if !arguments.pods.is_empty() {
        (
            "--pod",
            "leave out `--pod`: the scheduler of the cluster decides where pods of the cluster run",
        )
    } else if arguments.verbose {
        ("--verbose", "leave out `--verbose`: the node object always has labels and conditions")
    } else {
        return Ok(());
    };
    Err(Failure::usage(anyhow!("`{option}` cannot be used with `--output node`")).hint(hint))
}

/// Registers, admits the pods, and reports. Plugin and kubelet are connected in memory, so that
/// every host gives the same result.
async fn simulate(devices: &NodeDevices, pods: &[PodArgument]) -> Result<Simulation, Failure> {
    let sockets = InMemory::default();
    let directory = Path::new("/simulated");
    let kubelet = KubeletDouble::start(sockets.clone(), directory, KubeletOptions::default())
        .map_err(Failure::runtime)?;
    let plugin = DevicePlugin::following(directory, devices.served()).with_transport(sockets);
    let set = devices.set();
    tokio::select! {
        Err(error) = plugin.run() => Err(Failure::runtime(error)),
        outcome = scenario(&kubelet, &set, pods) => Ok(outcome),
    }
}

/// Waits for the device lists, admits the pods one after the other and reports.
async fn scenario(
    kubelet: &KubeletDouble<InMemory>,
    set: &DeviceSet,
    pods: &[PodArgument],
) -> Simulation {
    let names: Vec<&str> = set.resources.iter().map(|r| r.spec.name.as_str()).collect();
    let resources = kubelet.wait_for_lists(&names).await;
    let (requested, left_out) = match pods {
        [] => default_pods(&resources),
        given => (given.to_vec(), Vec::new()),
    };
    let mut pods = Vec::new();
    let mut allocated = HashMap::new();
    for pod in requested {
        let outcome = admit(kubelet, &pod).await;
        let explanation = match &outcome {
            Ok(container) => explain::admission(&pod.requests, container, set),
            Err(_) => explain::refusal(&pod.requests, set, &allocated),
        };
        if outcome.is_ok() {
            for request in &pod.requests {
                *allocated.entry(request.resource.clone()).or_insert(0) += request.count;
            }
        }
        pods.push(SimulatedPod { pod, outcome, explanation });
    }
    Simulation { resources, pods, left_out }
}

/// For every resource with replicas, pods that request one device each, and one that requests more
/// than are left; and a note for each resource that has more replicas than pods.
fn default_pods(advertised: &[ResourceView]) -> (Vec<PodArgument>, Vec<String>) {
    let several = advertised.iter().filter(|view| view.allocatable > 0).count() > 1;
    let mut pods = Vec::new();
    let mut left_out = Vec::new();
    for view in advertised.iter().filter(|view| view.allocatable > 0) {
        let Ok(resource) = view.name.parse::<ResourceName>() else { continue };
        let kind = view.name.rsplit('/').next().unwrap_or_default();
        let singles = view.allocatable.min(DEFAULT_PODS);
        let left = view.allocatable - singles;
        for n in 1..=singles + 1 {
            let count = if n > singles { left + 1 } else { 1 };
            pods.push(PodArgument {
                name: if several { format!("{kind}-{n}") } else { format!("pod-{n}") },
                requests: vec![Request {
                    resource: resource.clone(),
                    count: u32::try_from(count).unwrap_or(u32::MAX),
                }],
            });
        }
        if left > 0 {
            left_out.push(format!(
                "{singles} of {} pods with one device of {resource} are simulated; --pod names pods",
                view.allocatable
            ));
        }
    }
    (pods, left_out)
}

/// Schedules and admits a pod, or returns why it is refused.
async fn admit(
    kubelet: &KubeletDouble<InMemory>,
    pod: &PodArgument,
) -> Result<ContainerView, String> {
    let PodArgument { name, requests } = pod.clone();
    let resources = requests.iter().map(|r| (r.resource.to_string(), r.count)).collect();
    let pod = PodRequest::new(name, resources);
    kubelet.schedule(&pod)?;
    kubelet.admit(pod).await
}

/// How far a resource is on its way to pods, with a node object that says what the kubelet has.
fn progress(advertised: &[ResourceView], resource: &ResourceName) -> Progress {
    match advertised.iter().find(|view| view.name == resource.as_str()) {
        None => Progress::NotRegistered(Message::from(
            "the simulated kubelet has no list of it".to_owned(),
        )),
        Some(view) if view.allocatable > 0 => Progress::Allocatable,
        Some(_) => Progress::NotAllocatable,
    }
}

fn node_notes(set: &DeviceSet, without_adapter: &[PnpDevice]) -> Vec<String> {
    let not_advertised = set.not_advertised.iter().map(|adapter| {
        let NotAdvertised { luid, description, reason, .. } = adapter;
        let name = if description.is_empty() { "an adapter" } else { description };
        let fix = fix_for_empty_resource(adapter, set).unwrap_or_default();
        format!("{name} (LUID {luid}) is not advertised: {reason}{fix}")
    });
    let without_adapter = without_adapter.iter().map(|device| {
        format!(
            "{} ({}) is not advertised: it has problem code {}, and Windows lists no adapter for it",
            device.description, device.id, device.problem_code
        )
    });
    let idle =
        set.unmatched_rules.iter().map(|rule| format!("a rule of {} matches no device", rule.name));
    let entries = set.entries();
    let devices = entries.clone().map(|entry| entry.device.as_ref());
    let unhealthy = entries.filter_map(|ListedDevice { device, health, .. }| match health {
        Health::Unhealthy(reason) => Some(format!("{} is unhealthy: {reason}", device.id)),
        Health::Healthy => None,
    });
    let unlicensed = devices.clone().filter(|device| device.nvidia.is_unlicensed()).map(|device| {
        format!("{}: the driver has no license, so the GPU is slowed down", device.id)
    });
    let folders = devices.clone().filter_map(|device| {
        let error = device.rejected_store()?;
        Some(format!("{}: {error}; its files are not used", device.id))
    });
    let files = devices.flat_map(|Device { id, runtime_files, .. }| {
        let rejected = runtime_files.rejected.iter();
        rejected.map(move |r| format!("{id}: {} `{}` is ignored: {}", r.key, r.value, r.why))
    });
    let cordons = set.unmatched_cordons.iter().map(ToString::to_string);
    not_advertised
        .chain(without_adapter)
        .chain(idle)
        .chain(cordons)
        .chain(unhealthy)
        .chain(unlicensed)
        .chain(folders)
        .chain(files)
        .collect()
}

/// What advertises the adapter, if the configuration excludes it and its resource has no device.
fn fix_for_empty_resource(adapter: &NotAdvertised, set: &DeviceSet) -> Option<String> {
    let fix = adapter.reason.configuration_fix(&set.host)?;
    let resource = set.resource(adapter.resource.as_ref()?)?;
    let name = &resource.spec.name;
    resource.entries().is_empty().then(|| format!("; {name} has no device: to advertise it, {fix}"))
}

/// What an inventory that was written by hand may lack, or what to do if the host has nothing to
/// advertise.
fn hints(source: &Source, set: &DeviceSet, snapshot: &HostSnapshot) -> Vec<String> {
    let mut not_advertised = set.not_advertised.iter();
    let has_fix = not_advertised.any(|adapter| fix_for_empty_resource(adapter, set).is_some());
    match inventory_hint(source, set) {
        Some(hint) => vec![hint.to_owned()],
        None if set.entries().next().is_none() && !has_fix => doctor::advice(set, snapshot),
        None => Vec::new(),
    }
}

fn inventory_hint(source: &Source, set: &DeviceSet) -> Option<&'static str> {
    let is_incomplete = set.not_advertised.iter().any(|adapter| {
        use NotAdvertisedReason::{NoLocationPath, NoPnpDevice};
        matches!(adapter.reason, NoPnpDevice | NoLocationPath)
    });
    let is_inventory = matches!(source, Source::Inventory(_));
    (is_incomplete && is_inventory).then_some(
        "give the adapter in the inventory the key `pnp` with `id` and `locationPaths`, such as \
         `pnp: {id: 'PCI\\VEN_10DE&DEV_1EB8\\1', locationPaths: ['PCIROOT(0)#PCI(1B00)']}`; \
         docs/reference/inventory.md describes every key",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_can_use_a_resource_once_the_kubelet_has_a_healthy_device_of_it() {
        let resource: ResourceName = "directx.microsoft.com/display".parse().unwrap();
        let advertised = |allocatable| ResourceView {
            name: resource.to_string(),
            capacity: 2,
            allocatable,
            devices: Vec::new(),
        };
        assert!(matches!(progress(&[advertised(1)], &resource), Progress::Allocatable));
        assert!(matches!(progress(&[advertised(0)], &resource), Progress::NotAllocatable));
        assert!(matches!(progress(&[], &resource), Progress::NotRegistered(_)));
    }
}
