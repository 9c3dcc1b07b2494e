//! The result of a simulation, as a JSON document and as text.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::path::Path;

use devices::printable::printable;
use devices::{HostSnapshot, Platform};
use serde::Serialize;

/// The result of a simulation.
#[derive(Serialize, Debug)]
pub(crate) struct Report {
    pub(crate) host: HostView,
    /// What the node would advertise.
    pub(crate) resources: Vec<ResourceView>,
    /// What each pod would get.
    pub(crate) pods: Vec<PodView>,
    /// Notes on the node for its administrator.
    pub(crate) notes: Vec<String>,
}

/// The host that is simulated.
#[derive(Serialize, Debug)]
pub(crate) struct HostView {
    platform: &'static str,
    product: Option<String>,
    build: Option<String>,
    /// How many adapters it has, advertised or not.
    adapters: usize,
    /// `inventory`, or `demonstration` for the embedded one.
    source: &'static str,
}

/// One extended resource of the node.
#[derive(Serialize, Debug)]
pub(crate) struct ResourceView {
    pub(crate) name: String,
    pub(crate) capacity: usize,
    pub(crate) allocatable: usize,
    pub(crate) devices: Vec<SlotView>,
}

/// One slot.
#[derive(Serialize, Debug)]
pub(crate) struct SlotView {
    pub(crate) id: String,
    pub(crate) health: String,
}

/// One pod.
#[derive(Serialize, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PodView {
    pub(crate) name: String,
    /// The first resource that its container requests, and how many devices of it.
    pub(crate) resource: String,
    pub(crate) count: u32,
    /// All requests, if there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) requests: Vec<RequestView>,
    pub(crate) admitted: bool,
    /// The kubelet's reason for refusing it; empty where it was admitted.
    pub(crate) reason: String,
    pub(crate) device_ids: Vec<String>,
    /// What the container runtime gets for the pod's container, for all its resources.
    pub(crate) container: ContainerView,
    /// Which device, which files, and why.
    pub(crate) notes: Vec<String>,
}

/// How many devices of a resource a container requests.
#[derive(Serialize, Debug)]
pub(crate) struct RequestView {
    pub(crate) resource: String,
    pub(crate) count: u32,
}

/// What the kubelet passes to the container runtime.
#[derive(Serialize, Debug, Clone, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ContainerView {
    pub(crate) devices: Vec<DeviceView>,
    pub(crate) mounts: Vec<MountView>,
    pub(crate) envs: BTreeMap<String, String>,
    pub(crate) annotations: BTreeMap<String, String>,
    /// The names of CDI devices, on Linux.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) cdi_devices: Vec<String>,
}

/// One device of the container.
#[derive(Serialize, Debug, Clone, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DeviceView {
    pub(crate) host_path: String,
    pub(crate) container_path: String,
    pub(crate) permissions: String,
}

/// One mount of the container.
#[derive(Serialize, Debug, Clone, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MountView {
    pub(crate) host_path: String,
    pub(crate) container_path: String,
    pub(crate) read_only: bool,
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

impl ResourceView {
    pub(crate) fn of(view: kubelet::testing::ResourceView) -> ResourceView {
        let kubelet::testing::ResourceView { name, capacity, allocatable, devices } = view;
        let slot = |d: kubelet::v1beta1::Device| SlotView { id: d.id, health: d.health };
        let devices = devices.into_iter().map(slot).collect();
        ResourceView { name, capacity, allocatable, devices }
    }
}

impl ContainerView {
    pub(crate) fn of(input: &kubelet::testing::ContainerView) -> ContainerView {
        let device = |d: &kubelet::v1beta1::DeviceSpec| DeviceView {
            host_path: d.host_path.clone(),
            container_path: d.container_path.clone(),
            permissions: d.permissions.clone(),
        };
        let mount = |m: &kubelet::v1beta1::Mount| MountView {
            host_path: m.host_path.clone(),
            container_path: m.container_path.clone(),
            read_only: m.read_only,
        };
        ContainerView {
            devices: input.devices.iter().map(device).collect(),
            mounts: input.mounts.iter().map(mount).collect(),
            envs: input.envs.clone(),
            annotations: input.annotations.clone(),
            cdi_devices: input.cdi_devices.clone(),
        }
    }
}

/// How many similar lines the text has without `--verbose`.
const SIMILAR_LINES: usize = 10;

impl Report {
    /// The text for a host of this inventory, or for the embedded one.
    pub(crate) fn text(&self, inventory: Option<&Path>, verbose: bool) -> String {
        let mut text = String::new();
        let limit = if verbose { usize::MAX } else { SIMILAR_LINES };
        // Writing to a String cannot fail.
        let _ = self.write(&mut text, inventory, limit);
        text
    }

    fn write(&self, f: &mut String, inventory: Option<&Path>, limit: usize) -> fmt::Result {
        let HostView { platform, product, build, adapters, .. } = &self.host;
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
        writeln!(f, "host: {product}{build}, {adapters} adapter{s} ({source})")?;
        for resource in &self.resources {
            let ResourceView { name, capacity, allocatable, devices } = resource;
            writeln!(f, "{name}: capacity {capacity}, allocatable {allocatable}")?;
            let replica =
                |slot: &SlotView| format!("  {:<9}  {}", slot.health, printable(&slot.id));
            write_similar(f, devices.iter().map(replica), limit)?;
        }
        for pod in &self.pods {
            writeln!(f)?;
            pod.write(f, limit)?;
        }
        if !self.notes.is_empty() {
            writeln!(f)?;
        }
        write_similar(f, self.notes.iter().map(|note| format!("note: {}", printable(note))), limit)
    }
}

/// Writes at most `limit` of these lines, and how many more there are.
fn write_similar(
    f: &mut String,
    lines: impl ExactSizeIterator<Item = String>,
    limit: usize,
) -> fmt::Result {
    let more = lines.len().saturating_sub(limit);
    let mut indent = 0;
    for line in lines.take(limit) {
        indent = line.len() - line.trim_start().len();
        writeln!(f, "{line}")?;
    }
    if more > 0 {
        writeln!(f, "{:indent$}… and {more} more (--verbose shows all)", "")?;
    }
    Ok(())
}

impl PodView {
    fn write(&self, f: &mut String, limit: usize) -> fmt::Result {
        let PodView { name, resource, count, requests, reason, container, .. } = self;
        let mut requests: Vec<String> =
            requests.iter().map(|r| format!("{} of {}", r.count, r.resource)).collect();
        if requests.is_empty() {
            requests.push(format!("{count} of {resource}"));
        }
        let requests = enumerate(&requests);
        if !self.admitted {
            writeln!(f, "pod {name} requests {requests}: refused")?;
            writeln!(f, "  reason   {}", printable(reason))?;
            return self.write_notes(f, limit);
        }
        writeln!(f, "pod {name} requests {requests}: admitted")?;
        let replicas = self.device_ids.iter().map(|id| format!("  replica  {}", printable(id)));
        write_similar(f, replicas, limit)?;
        let devices = container.devices.iter().map(|device| &device.host_path);
        for device in devices.chain(&container.cdi_devices) {
            writeln!(f, "  device   {}", printable(device))?;
        }
        let folder = |mount: &MountView| split(&mount.host_path).0.to_owned();
        for mounts in container.mounts.chunk_by(|a, b| folder(a) == folder(b)) {
            writeln!(f, "  files    from {}", printable(&folder(&mounts[0])))?;
            let files = mounts.iter().map(|mount| {
                let file = printable(split(&mount.host_path).1);
                format!("             {file} -> {}", printable(&mount.container_path))
            });
            write_similar(f, files, limit)?;
        }
        for (name, value) in &container.envs {
            writeln!(f, "  env      {name}={}", printable(value))?;
        }
        for (name, value) in &container.annotations {
            writeln!(f, "  annotate {name}={}", printable(value))?;
        }
        self.write_notes(f, limit)
    }

    /// Files that are not mounted are similar; every other note is of interest.
    fn write_notes(&self, f: &mut String, limit: usize) -> fmt::Result {
        let line = |note: &&String| format!("  why      {}", printable(note));
        let (similar, others): (Vec<_>, Vec<_>) =
            self.notes.iter().partition(|note| note.starts_with("not mounted: "));
        write_similar(f, others.iter().map(line), usize::MAX)?;
        write_similar(f, similar.iter().map(line), limit)
    }
}

/// The folder and the file name of a path.
fn split(path: &str) -> (&str, &str) {
    path.rsplit_once(['\\', '/']).unwrap_or(("", path))
}

/// Joins items for a sentence: `one`, `one and two`, `one, two and three`.
pub(crate) fn enumerate(items: &[String]) -> String {
    let mut text = String::new();
    for (n, item) in items.iter().enumerate() {
        let separator = match n {
            0 => "",
            _ if n + 1 == items.len() => " and ",
            _ => ", ",
        };
        // Writing to a String cannot fail.
        let _ = write!(text, "{separator}{item}");
    }
    text
}
