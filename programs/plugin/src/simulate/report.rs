//! The result of a simulation, as a JSON document and as text.

use std::path::Path;

use device_plugin::testing::{ContainerView, ResourceView};
use device_plugin::v1beta1::Mount;
use devices::printable::printable;
use devices::{HostSnapshot, Platform};
use serde::Serialize;
use serde_json::{Value, json};

use super::pod_argument::PodArgument;

/// The result of a simulation.
pub(crate) struct Report {
    pub(crate) host: HostView,
    /// What the node would advertise.
    pub(crate) resources: Vec<ResourceView>,
    /// What each pod would get.
    pub(crate) pods: Vec<SimulatedPod>,
    /// Notes on the node for its administrator.
    pub(crate) notes: Vec<String>,
}

/// The host that is simulated.
#[derive(Serialize)]
pub(crate) struct HostView {
    platform: &'static str,
    product: Option<String>,
    build: Option<String>,
    /// How many adapters it has, advertised or not.
    adapters: usize,
    /// `inventory`, or `demonstration` for the embedded one.
    source: &'static str,
}

/// One pod.
pub(crate) struct SimulatedPod {
    pub(crate) pod: PodArgument,
    /// What the container runtime gets for its container, or the kubelet's reason for refusing it.
    pub(crate) outcome: Result<ContainerView, String>,
    /// Which device, which files, and why.
    pub(crate) notes: Vec<String>,
}

impl HostView {
    pub(crate) fn of(snapshot: &HostSnapshot, inventory: Option<&Path>) -> HostView {
        HostView {
            platform: snapshot.host.platform.into(),
            product: snapshot.host.product.clone(),
            build: snapshot.host.build.map(|build| build.to_string()),
            adapters: snapshot.adapters.len(),
            source: if inventory.is_some() { "inventory" } else { "demonstration" },
        }
    }
}

fn list<T>(items: &[T], json: impl Fn(&T) -> Value) -> Value {
    items.iter().map(json).collect()
}

fn resource_json(resource: &ResourceView) -> Value {
    json!({
        "name": resource.name,
        "capacity": resource.capacity,
        "allocatable": resource.allocatable,
        "devices": list(&resource.devices, |slot| json!({"id": slot.id, "health": slot.health})),
    })
}

fn container_json(container: &ContainerView) -> Value {
    let mut json = json!({
        "devices": list(&container.devices, |device| json!({
            "hostPath": device.host_path,
            "containerPath": device.container_path,
            "permissions": device.permissions,
        })),
        "mounts": list(&container.mounts, |mount| json!({
            "hostPath": mount.host_path,
            "containerPath": mount.container_path,
            "readOnly": mount.read_only,
        })),
        "envs": container.envs,
        "annotations": container.annotations,
    });
    if !container.cdi_devices.is_empty() {
        json["cdiDevices"] = json!(container.cdi_devices);
    }
    json
}

impl SimulatedPod {
    fn json(&self) -> Value {
        let requests = list(
            &self.pod.requests,
            |request| json!({"resource": request.resource.as_str(), "count": request.count}),
        );
        let refused = ContainerView::default();
        let container = self.outcome.as_ref().unwrap_or(&refused);
        let mut json = json!({
            "name": self.pod.name,
            "resource": requests[0]["resource"],
            "count": requests[0]["count"],
            "admitted": self.outcome.is_ok(),
            "reason": self.outcome.as_ref().err().map_or("", String::as_str),
            "deviceIds": self.device_ids(container),
            "container": container_json(container),
            "notes": self.notes,
        });
        if self.pod.requests.len() > 1 {
            json["requests"] = requests;
        }
        json
    }

    /// The IDs of the allocated devices, in the order of the requests.
    fn device_ids<'a>(&self, container: &'a ContainerView) -> Vec<&'a String> {
        let requests = self.pod.requests.iter();
        let ids = requests.filter_map(|r| container.device_ids.get(r.resource.as_str()));
        ids.flatten().collect()
    }
}

/// How many similar lines the text has without `--verbose`.
const SIMILAR_LINES: usize = 10;

impl Report {
    /// The JSON document.
    pub(crate) fn json(&self) -> Value {
        json!({
            "host": self.host,
            "resources": list(&self.resources, resource_json),
            "pods": list(&self.pods, SimulatedPod::json),
            "notes": self.notes,
        })
    }

    /// The text for a host of this inventory, or for the embedded one.
    pub(crate) fn text(&self, inventory: Option<&Path>, verbose: bool) -> String {
        let limit = if verbose { usize::MAX } else { SIMILAR_LINES };
        let mut lines = vec![self.host.line(inventory)];
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
}

impl HostView {
    fn line(&self, inventory: Option<&Path>) -> String {
        let HostView { platform, product, build, adapters, .. } = self;
        let is_windows = *platform == <&str>::from(Platform::Windows);
        let unknown = if is_windows { "unknown version of Windows" } else { "Linux with /dev/dxg" };
        let product = product.as_deref().unwrap_or(unknown);
        let build = match build {
            Some(build) => format!(", build {build}"),
            None if is_windows => ", build unknown".to_owned(),
            None => String::new(),
        };
        let source = match inventory {
            Some(path) => path.display().to_string(),
            None => "a recorded host for demonstration, not this one".to_owned(),
        };
        let (product, source) = (printable(product), printable(&source));
        let s = if *adapters == 1 { "" } else { "s" };
        format!("host: {product}{build}, {adapters} adapter{s} ({source})")
    }
}

/// At most `limit` of these lines, and how many more there are.
fn similar(lines: impl ExactSizeIterator<Item = String>, limit: usize) -> Vec<String> {
    let more = lines.len().saturating_sub(limit);
    let mut lines: Vec<String> = lines.take(limit).collect();
    if more > 0 {
        lines.push(format!("           … and {more} more (--verbose shows all)"));
    }
    lines
}

impl SimulatedPod {
    fn lines(&self, limit: usize) -> Vec<String> {
        let PodArgument { name, requests } = &self.pod;
        let requests: Vec<String> =
            requests.iter().map(|r| format!("{} of {}", r.count, r.resource)).collect();
        let requests = requests.join(", ");
        let mut lines = match &self.outcome {
            Ok(container) => {
                let admitted = format!("pod {name} requests {requests}: admitted");
                [vec![admitted], self.container_lines(container, limit)].concat()
            }
            Err(reason) => vec![
                format!("pod {name} requests {requests}: refused"),
                format!("  reason   {}", printable(reason)),
            ],
        };
        // Files that are not mounted are similar; every other note is of interest.
        let line = |note: &&String| format!("  why      {}", printable(note));
        let (files, others): (Vec<_>, Vec<_>) =
            self.notes.iter().partition(|note| note.starts_with("not mounted: "));
        lines.extend(others.iter().map(line));
        lines.extend(similar(files.iter().map(line), limit));
        lines
    }

    fn container_lines(&self, container: &ContainerView, limit: usize) -> Vec<String> {
        let ids = self.device_ids(container);
        let mut lines =
            similar(ids.iter().map(|id| format!("  replica  {}", printable(id))), limit);
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

fn folder(mount: &Mount) -> &str {
    split(&mount.host_path).0
}

/// The folder and the file name of a path.
fn split(path: &str) -> (&str, &str) {
    path.rsplit_once(['\\', '/']).unwrap_or(("", path))
}
