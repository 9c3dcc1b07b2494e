//! The result of a simulation, and its text.

use std::path::PathBuf;

use command_line::verdict::{BAD, GOOD, WARNING};
use device_plugin::v1beta1::Mount;
use devices::printable::printable;
use devices::{HostSnapshot, Platform};
use kubelet_double::{ContainerView, ResourceView};

use crate::simulate::explain::Note;
use crate::simulate::pod_argument::PodArgument;

pub(crate) struct Report {
    /// The host that is simulated.
    pub(crate) snapshot: HostSnapshot,
    /// Its inventory; `None` for the embedded one.
    pub(crate) inventory: Option<PathBuf>,
    /// What the node would advertise.
    pub(crate) resources: Vec<ResourceView>,
    /// What each pod would get.
    pub(crate) pods: Vec<SimulatedPod>,
    pub(crate) notes: Vec<String>,
}

pub(crate) struct SimulatedPod {
    pub(crate) pod: PodArgument,
    /// What the container runtime gets for its container, or the kubelet's reason for refusing it.
    pub(crate) outcome: Result<ContainerView, String>,
    /// Which device, which files, and why.
    pub(crate) notes: Vec<Note>,
}

impl SimulatedPod {
    /// The IDs of the allocated devices, in the order of the requests.
    pub(crate) fn device_ids(&self) -> Vec<&String> {
        let Ok(container) = &self.outcome else { return Vec::new() };
        let requests = self.pod.requests.iter();
        let ids = requests.filter_map(|r| container.device_ids.get(r.resource.as_str()));
        ids.flatten().collect()
    }
}

/// The column at which the text after a line's name begins.
pub(crate) const INDENT: usize = 11;

/// How many similar lines the text has without `--verbose`.
const SIMILAR_LINES: usize = 10;

impl Report {
    pub(crate) fn text(&self, verbose: bool) -> String {
        let limit = if verbose { usize::MAX } else { SIMILAR_LINES };
        let mut lines = vec![self.host()];
        for resource in &self.resources {
            let ResourceView { name, capacity, allocatable, devices } = resource;
            lines.push(format!("{name}: capacity {capacity}, allocatable {allocatable}"));
            let replicas =
                devices.iter().map(|slot| format!("  {:<9}  {}", slot.health, printable(&slot.id)));
            lines.extend(similar(replicas, limit));
        }
        for pod in &self.pods {
            lines.push(String::new());
            lines.extend(pod.lines(limit));
        }
        if !self.notes.is_empty() {
            lines.push(String::new());
        }
        let notes = self.notes.iter().map(|note| format!("note: {}", printable(note)));
        lines.extend(similar(notes, limit));
        lines.join("\n") + "\n"
    }

    fn host(&self) -> String {
        let HostSnapshot { host, adapters, .. } = &self.snapshot;
        let is_windows = host.platform == Platform::Windows;
        let unknown = if is_windows { "unknown version of Windows" } else { "Linux with /dev/dxg" };
        let product = printable(host.product.as_deref().unwrap_or(unknown));
        let build = match host.build {
            Some(build) => format!(", build {build}"),
            None if is_windows => ", build unknown".to_owned(),
            None => String::new(),
        };
        let source = match &self.inventory {
            Some(path) => path.display().to_string(),
            None => "a recorded host for demonstration, not this one".to_owned(),
        };
        let (count, source) = (adapters.len(), printable(&source));
        let s = if count == 1 { "" } else { "s" };
        format!("host: {product}{build}, {count} adapter{s} ({source})")
    }
}

/// At most `limit` of these lines, and how many more there are.
fn similar(lines: impl ExactSizeIterator<Item = String>, limit: usize) -> Vec<String> {
    let more = lines.len().saturating_sub(limit);
    let mut shown: Vec<String> = lines.take(limit).collect();
    if more > 0 {
        shown.push(format!("           … and {more} more (--verbose shows all)"));
    }
    shown
}

impl SimulatedPod {
    fn lines(&self, limit: usize) -> Vec<String> {
        let PodArgument { name, requests } = &self.pod;
        let counts: Vec<String> =
            requests.iter().map(|r| format!("{} of {}", r.count, r.resource)).collect();
        let title = format!("pod {} requests {}", printable(name), counts.join(", "));
        let mut lines = match &self.outcome {
            Ok(container) => {
                let admitted = format!("{title}: {GOOD}admitted{GOOD:#}");
                [vec![admitted], self.container_lines(container, limit)].concat()
            }
            Err(reason) => vec![
                format!("{title}: {BAD}refused{BAD:#}"),
                format!("  reason   {}", printable(reason)),
            ],
        };
        // Files that are not mounted are similar; every other note is of interest.
        let (files, others): (Vec<_>, Vec<_>) =
            self.notes.iter().partition(|note| matches!(note, Note::NotMounted(_)));
        lines.extend(others.into_iter().map(why));
        lines.extend(similar(files.into_iter().map(why), limit));
        lines
    }

    fn container_lines(&self, container: &ContainerView, limit: usize) -> Vec<String> {
        let mut lines = similar(
            self.device_ids().iter().map(|id| format!("  replica  {}", printable(id))),
            limit,
        );
        let host_paths = container.devices.iter().map(|device| &device.host_path);
        let devices = host_paths.chain(&container.cdi_devices);
        lines.extend(devices.map(|device| format!("  device   {}", printable(device))));
        for mounts in container.mounts.chunk_by(|a, b| folder(a) == folder(b)) {
            lines.push(format!("  files    from {}", printable(folder(&mounts[0]))));
            let files = mounts.iter().map(|mount| {
                let file = printable(split(&mount.host_path).1);
                format!("             {file} -> {}", printable(&mount.container_path))
            });
            lines.extend(similar(files, limit));
        }
        for (name, value) in &container.envs {
            lines.push(format!("  env      {name}={}", printable(value)));
        }
        for (name, value) in &container.annotations {
            lines.push(format!("  annotate {name}={}", printable(value)));
        }
        lines
    }
}

fn why(note: &Note) -> String {
    match note {
        Note::Warning(text) => {
            format!("  why      {WARNING}warning{WARNING:#}: {}", printable(text))
        }
        other => format!("  why      {}", printable(&other.to_string())),
    }
}

fn folder(mount: &Mount) -> &str {
    split(&mount.host_path).0
}

/// The folder and the file name of a path.
fn split(path: &str) -> (&str, &str) {
    path.rsplit_once(['\\', '/']).unwrap_or(("", path))
}
