//! `simulate`: the same plugin against a kubelet in this process.
//!
//! Everything is the daemon's own code but for the kubelet, which is
//! [`kubelet_double`], and the host, which does not change. In come an inventory (a
//! recorded one where none is given), a configuration and pods; out goes what each
//! pod's container would be given on Windows.

mod explain;
mod report;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use cli::Failure;
use devices::{Catalog, DeviceSet, Health, HostSnapshot, ResourceName};
use kubelet::{Readiness, RunConfig, UnixSockets};
use kubelet_double::{
    Admission, ContainerKind, ContainerRequest, ContainerView as Given, Host, InMemory,
    KubeletDouble, Options, Platform, PodRequest, Verdict,
};
use tokio::sync::{oneshot, watch};

use crate::flags::{Logs, Output, PodArgument, Simulate};
use crate::fleet::{Fleet, Published};
use crate::serve::{runtime, start_failure};
use crate::{config, logging, offered, output, source};

use report::{ContainerView, PodView, Report, ResourceView};

/// The host that is simulated where none is given: two of the four Tesla T4 of an
/// AWS GPU host with Windows Server 2022.
const RECORDED_HOST: &str = include_str!("../../../../fixtures/inventories/aws-t4-two.yaml");

/// Without `--pod`, how many pods a resource gets at most.
const DEFAULT_PODS: usize = 16;

/// How long the plugin may take to register; it takes milliseconds.
const REGISTRATION_LIMIT: Duration = Duration::from_secs(30);

/// Runs the command.
pub(crate) fn run(logs: &Logs, arguments: &Simulate) -> Result<(), Failure> {
    let snapshot = snapshot(arguments.input.inventory.as_deref())?;
    let models = &arguments.models.driver_models;
    let config = config::load(models, arguments.input.config.as_deref(), None)?;
    logging::start(logs);
    let notices = config.notices.clone();
    let runtime = runtime()?;
    let _entered = runtime.enter();
    let catalog = Catalog::new(config.policy);
    let fleet = Fleet::fixed(catalog.clone(), snapshot).map_err(start_failure)?;
    let mut report = runtime.block_on(simulate(&catalog, &fleet, &arguments.pods))?;
    report.notes.splice(0..0, notices);
    match arguments.output {
        Output::Text => cli::print(&report.to_string()),
        Output::Json => output::print_json(&report),
    }
}

/// The inventory's host, or the recorded one.
fn snapshot(inventory: Option<&Path>) -> Result<HostSnapshot, Failure> {
    match inventory {
        Some(_) => source::open(inventory)?.snapshot().map_err(output::source_failure),
        None => inventory::parse("aws-t4-two.yaml", RECORDED_HOST).map_err(Failure::runtime),
    }
}

/// Registers, admits the pods, and reports.
async fn simulate(
    catalog: &Catalog,
    fleet: &Fleet,
    pods: &[PodArgument],
) -> Result<Report, Failure> {
    let published = fleet.published();
    if uds::is_supported() {
        let directory = tempfile::Builder::new().prefix("dxsim").tempdir().map_err(|error| {
            let what = "a temporary directory for sockets cannot be made";
            Failure::runtime(anyhow::Error::new(error).context(what))
        })?;
        play(UnixSockets, directory.path(), catalog, &published, pods).await
    } else {
        let directory = Path::new("/simulated");
        let mut report = play(InMemory::default(), directory, catalog, &published, pods).await?;
        report.notes.push(
            "this host has no AF_UNIX sockets; plugin and kubelet spoke over memory".to_owned(),
        );
        Ok(report)
    }
}

/// The simulation proper, over whatever sockets the host has.
async fn play<H: Host>(
    sockets: H,
    directory: &Path,
    catalog: &Catalog,
    published: &Published,
    pods: &[PodArgument],
) -> Result<Report, Failure> {
    let options = Options { platform: Platform::Windows, ..Options::default() };
    let mut kubelet =
        KubeletDouble::start(sockets.clone(), directory, options).map_err(Failure::runtime)?;
    let (stop, stopped) = oneshot::channel::<()>();
    let (readiness, _) = watch::channel(Readiness::default());
    let config = RunConfig { directory: directory.to_owned() };
    let plugin = kubelet::run(
        config,
        offered::resources(catalog, published),
        sockets,
        async { drop(stopped.await) },
        readiness,
    );
    let scenario = async {
        let outcome = scenario(&kubelet, published, pods).await;
        kubelet.stop().await;
        // The plugin waits for this, or has ended and told why.
        let _ = stop.send(());
        outcome
    };
    let (ended, outcome) = tokio::join!(plugin, scenario);
    ended.map_err(Failure::runtime)?;
    outcome
}

/// Waits for the lists, admits the pods one after the other and reports.
async fn scenario<H: Host>(
    kubelet: &KubeletDouble<H>,
    published: &Published,
    pods: &[PodArgument],
) -> Result<Report, Failure> {
    let set = published.set();
    let names: Vec<&str> = set.resources.iter().map(|r| r.spec.name.as_str()).collect();
    let listed = tokio::time::timeout(REGISTRATION_LIMIT, kubelet.wait_for_lists(&names)).await;
    let offered = listed.map_err(|_| {
        Failure::runtime(anyhow::anyhow!("the plugin did not register in {REGISTRATION_LIMIT:?}"))
    })?;
    let pods = match pods {
        [] => default_pods(&offered),
        given => given.to_vec(),
    };
    let mut report = Report {
        resources: offered.into_iter().map(ResourceView::of).collect(),
        pods: Vec::new(),
        notes: node_notes(&set),
    };
    for requests in grouped(&pods) {
        let outcome = admit(kubelet, requests).await;
        report.pods.extend(views(requests, &outcome, &set));
    }
    Ok(report)
}

/// One pod a device slot and one too many, for every resource that has slots.
fn default_pods(offered: &[kubelet_double::ResourceView]) -> Vec<PodArgument> {
    let several = offered.iter().filter(|view| view.allocatable > 0).count() > 1;
    let mut pods = Vec::new();
    for view in offered {
        let Ok(resource) = view.name.parse::<ResourceName>() else { continue };
        let kind = view.name.rsplit('/').next().unwrap_or_default();
        let count = if view.allocatable == 0 { 0 } else { DEFAULT_PODS.min(view.allocatable + 1) };
        pods.extend((1..=count).map(|n| PodArgument {
            name: if several { format!("{kind}-{n}") } else { format!("pod-{n}") },
            resource: resource.clone(),
            count: 1,
        }));
    }
    pods
}

/// The requests of each pod: neighbours of one name are one pod with one container.
fn grouped(pods: &[PodArgument]) -> impl Iterator<Item = &[PodArgument]> {
    pods.chunk_by(|a, b| a.name == b.name)
}

/// What became of a pod.
enum Outcome {
    Refused(String),
    Admitted(Box<Given>),
}

/// Schedules and admits a pod whose one container makes all `requests`.
async fn admit<H: Host>(kubelet: &KubeletDouble<H>, requests: &[PodArgument]) -> Outcome {
    let mut resources = BTreeMap::new();
    for request in requests {
        *resources.entry(request.resource.to_string()).or_insert(0) += request.count;
    }
    let name = requests[0].name.clone();
    let container = ContainerRequest { name: name.clone(), kind: ContainerKind::App, resources };
    let pod = PodRequest { name, containers: vec![container] };
    if let Err(reason) = kubelet.schedule(&pod) {
        return Outcome::Refused(reason);
    }
    let Admission { verdict, containers } = kubelet.admit(pod).await;
    match (verdict, containers.into_iter().next()) {
        (Verdict::Refused(refused), _) => Outcome::Refused(refused.to_string()),
        (Verdict::Admitted, Some(container)) => Outcome::Admitted(Box::new(container)),
        (Verdict::Admitted, None) => Outcome::Refused("the kubelet gave no container".to_owned()),
    }
}

/// One entry for each resource of a pod.
fn views(requests: &[PodArgument], outcome: &Outcome, set: &DeviceSet) -> Vec<PodView> {
    let blank = |request: &PodArgument| PodView {
        name: request.name.clone(),
        resource: request.resource.to_string(),
        count: request.count,
        admitted: false,
        reason: String::new(),
        device_ids: Vec::new(),
        container: ContainerView::default(),
        notes: Vec::new(),
    };
    let view = |request: &PodArgument| match outcome {
        Outcome::Refused(reason) => PodView {
            reason: reason.clone(),
            notes: explain::refusal(request, set),
            ..blank(request)
        },
        Outcome::Admitted(given) => {
            let mut ids =
                given.device_ids.get(request.resource.as_str()).cloned().unwrap_or_default();
            ids.sort();
            PodView {
                admitted: true,
                container: ContainerView::of(given),
                notes: explain::admission(request, &ids, given, set),
                device_ids: ids,
                ..blank(request)
            }
        }
    };
    requests.iter().map(view).collect()
}

/// What an administrator should know of the node.
fn node_notes(set: &DeviceSet) -> Vec<String> {
    let skipped = set.skipped.iter().map(|s| {
        let name = if s.description.is_empty() { "an adapter" } else { &s.description };
        format!("{name} (LUID {}) is not offered: {}", s.luid, s.reason)
    });
    let idle = set
        .unmatched_rules
        .iter()
        .map(|rule| format!("no device matches a rule for {}", rule.name));
    let sick = set.resources.iter().flat_map(|r| r.entries()).filter_map(|entry| {
        let Health::Unhealthy(ailment) = entry.health else { return None };
        Some(format!("{} is unhealthy: {ailment}", entry.device.id))
    });
    let files = set.resources.iter().flat_map(|r| r.entries()).flat_map(|entry| {
        entry.device.runtime_files.rejected.iter().map(|value| {
            format!(
                "{}: {} `{}` is left out: {}",
                entry.device.id, value.key, value.value, value.why
            )
        })
    });
    skipped.chain(idle).chain(sick).chain(files).collect()
}
