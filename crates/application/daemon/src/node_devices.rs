//! The devices of the node: the current device set, updated when the host changes.
//!
//! It follows snapshots of the host, what NVML reports of GPUs, the devices that the node's
//! annotation takes out of service and changes of the configuration, each from a separate thread
//! that may hang. It is the only writer of the published [`DeviceSet`], and of the resources with the
//! encoded list of each.

mod advertised_resource;
pub(crate) mod published_devices;
mod sources;

use std::sync::Arc;
use std::time::Duration;

use command_line::HostError;
use config::Config;
use device_plugin::{AdvertisedDevice, DeviceList, Served};
use devices::{Catalog, DeviceSet, Moment, ResourceDevices};
use host::{AdapterWarning, Cordons, HostSnapshot, NvidiaFacts};
use report::DeviceResources;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use crate::DaemonError;
use crate::change_log;
use crate::configuration::ConfigReload;
use crate::launcher::NodeLauncher;
use crate::node_devices::advertised_resource::AdvertisedResource;
use crate::node_devices::published_devices::PublishedDevices;
use crate::readers::Cause;
use crate::readers::adapter_reader::{Read, Reads};
use crate::readers::kernel_comparison::KernelComparison;
use crate::readers::nvidia::{NvidiaGpus, NvidiaReader};
use plugin_status::cordon_file;
use plugin_status::plugin_report::PluginReport;
use plugin_status::status::pod_uid;
use process::event_loop::reached;
use process::logging::Repeated;

pub use published_devices::Discovery;
pub use sources::NodeSources;

/// How long the start waits for the first snapshot, which takes milliseconds on a healthy host.
/// If the daemon did not wait, the kubelet would show no devices for a moment after each
/// restart of the daemon.
const FIRST_SNAPSHOT_GRACE: Duration = Duration::from_secs(1);

/// What a daemon with made-up devices says of itself.
pub(crate) const DEMONSTRATION: &str =
    "demonstration: the devices are made up, and containers get only variables";

/// The writer of the device set. The fields that [`NodeSources`] has as well are described there.
pub struct NodeDevices {
    catalog: Catalog,
    reads: Reads,
    nvidia_reader: NvidiaReader,
    /// The last answer of the NVIDIA reader.
    nvidia: NvidiaGpus,
    kernel_comparison: KernelComparison,
    /// The adapters that only the graphics kernel lists.
    only_in_kernel: Vec<AdapterWarning>,
    cordons: Option<watch::Receiver<Cordons>>,
    launcher: NodeLauncher,
    /// The newest snapshot, with what the other readers returned; empty before the first.
    snapshot: HostSnapshot,
    failures: Repeated<String>,
    origin: Instant,
    published: PublishedDevices,
    /// In the order of the catalog.
    resources: Vec<Arc<AdvertisedResource>>,
    device_resources: DeviceResources,
    served: watch::Sender<Served>,
    configuration: ConfigReload,
}

impl NodeDevices {
    /// Publishes the devices of the host if they are known within a short time. Otherwise it
    /// publishes none, and [`run`](NodeDevices::run) publishes them later.
    pub async fn start(catalog: Catalog, sources: NodeSources) -> Result<NodeDevices, DaemonError> {
        NodeDevices::start_within(FIRST_SNAPSHOT_GRACE, catalog, sources).await
    }

    async fn start_within(
        grace: Duration,
        catalog: Catalog,
        sources: NodeSources,
    ) -> Result<NodeDevices, DaemonError> {
        let mut devices = NodeDevices::new(catalog, sources);
        match timeout(grace, devices.reads.recv()).await {
            Ok(read) => devices.apply_read(received(read)?)?,
            Err(_elapsed) => {
                let pending = devices.published.pending();
                tracing::warn!(pending, "advertising no devices until they are known");
            }
        }
        if devices.published.pending().is_some() {
            // A container of an earlier pod may start again, and needs the files.
            devices.update_launcher();
        }
        devices.serve_report();
        Ok(devices)
    }

    /// Publishes the set of a snapshot that never changes.
    pub fn fixed(catalog: Catalog, snapshot: HostSnapshot) -> Result<NodeDevices, DaemonError> {
        let mut devices = NodeDevices::new(catalog, NodeSources::none());
        let read = Read { cause: Cause::Start, result: Ok(snapshot), duration: Duration::ZERO };
        devices.apply_read(read)?;
        devices.serve_report();
        Ok(devices)
    }

    /// Publishes a set without devices.
    fn new(catalog: Catalog, sources: NodeSources) -> NodeDevices {
        let snapshot = HostSnapshot::default();
        let set = DeviceSet::next(None, catalog.offer(&snapshot), Moment::default());
        let mut devices = NodeDevices {
            published: PublishedDevices::pending_discovery(set, sources.activity),
            catalog,
            reads: sources.reads,
            nvidia_reader: sources.nvidia_reader,
            nvidia: NvidiaGpus::new(),
            kernel_comparison: sources.kernel_comparison,
            only_in_kernel: Vec::new(),
            cordons: sources.cordons,
            launcher: sources.launcher,
            snapshot,
            failures: Repeated::default(),
            origin: Instant::now(),
            resources: Vec::new(),
            device_resources: DeviceResources::default(),
            served: watch::Sender::default(),
            configuration: sources.configuration,
        };
        devices.resources = devices.resources_of(&devices.published.set());
        devices.serve_resources();
        devices
    }

    /// The resources, with their lists.
    #[must_use]
    pub fn served(&self) -> watch::Receiver<Served> {
        self.served.subscribe()
    }

    /// The current set and its changes.
    #[must_use]
    pub fn discovery(&self) -> watch::Receiver<Discovery> {
        self.published.subscribe()
    }

    /// The current set.
    #[must_use]
    pub fn set(&self) -> Arc<DeviceSet> {
        self.published.set()
    }

    /// The published set and what is known about it.
    pub(crate) fn published(&self) -> PublishedDevices {
        self.published.clone()
    }

    /// Follows the host and the configuration, and drops removed devices, until that is no longer
    /// possible.
    pub async fn run(mut self) -> DaemonError {
        loop {
            if let Err(error) = self.follow_next().await {
                return error;
            }
            self.serve_report();
        }
    }

    /// Waits for the next change of what the set depends on, and applies it.
    async fn follow_next(&mut self) -> Result<(), DaemonError> {
        let deadline = self.published.set().deadline().map(|Moment(at)| self.origin + at);
        tokio::select! {
            read = self.reads.recv() => {
                self.apply_read(received(read)?)?;
            }
            gpus = self.nvidia_reader.next() => self.apply_nvidia(gpus),
            warnings = self.kernel_comparison.next() => {
                change_log::log_adapter_warnings(&self.only_in_kernel, &warnings);
                self.only_in_kernel = warnings;
            }
            cordoned = next_cordons(&mut self.cordons) => {
                self.snapshot.cordoned = cordoned?;
                self.advance();
            }
            () = reached(deadline) => self.advance(),
            () = reached(self.launcher.check_at) => {
                if self.launcher.needs_update() {
                    self.update_launcher();
                }
            }
            config = self.configuration.next() => {
                if let Some(config) = config? {
                    self.apply_configuration(config);
                }
            }
        }
        Ok(())
    }

    /// Publishes the set of a new snapshot. After a failed read the current devices stay.
    fn apply_read(&mut self, read: Read) -> Result<(), DaemonError> {
        let mut snapshot = match read.result {
            Ok(snapshot) => snapshot,
            Err(error) => {
                self.published.metrics.discovery_failures.inc();
                let error = command_line::error_chain(error.as_ref());
                if self.failures.is_due(error.clone()) {
                    tracing::error!(error, "cannot read adapters; keeping the current devices");
                }
                return Ok(());
            }
        };
        self.published.metrics.discovery_seconds.observe(read.duration.as_secs_f64());
        self.failures = Repeated::default();
        change_log::log_adapter_warnings(&self.snapshot.warnings, &snapshot.warnings);
        change_log::log_devices_without_adapter(
            &self.snapshot.devices_without_adapter,
            &snapshot.devices_without_adapter,
        );
        self.nvidia_reader.request(&snapshot.adapters);
        self.kernel_comparison.request(&snapshot);
        snapshot.add_nvidia(&self.nvidia);
        if read.cause == Cause::Safety && snapshot.adapters != self.snapshot.adapters {
            tracing::info!("a safety read found a change that was not reported");
        }
        let cordoned = match &mut self.cordons {
            Some(cordons) => cordons.borrow_and_update().clone(),
            None => Cordons::default(),
        };
        self.snapshot = HostSnapshot { cordoned, ..snapshot };
        self.snapshot.host.launcher = self.launcher.update(&self.catalog);
        if self.published.pending().is_some() {
            return self.publish_first();
        }
        self.advance();
        Ok(())
    }

    /// Publishes the set with what NVML reports now.
    fn apply_nvidia(&mut self, gpus: NvidiaGpus) {
        if gpus != self.nvidia {
            self.nvidia = gpus;
            for adapter in &mut self.snapshot.adapters {
                adapter.nvidia = NvidiaFacts::default();
            }
            self.snapshot.add_nvidia(&self.nvidia);
            self.advance();
        }
    }

    /// Publishes the first set. A list that the kubelet would refuse is wrong configuration.
    fn publish_first(&mut self) -> Result<(), DaemonError> {
        let set = DeviceSet::next(None, self.catalog.offer(&self.snapshot), self.now());
        let lists = set.resources.iter().map(|resource| list(resource));
        let lists = lists.collect::<Result<Vec<_>, _>>()?;
        change_log::log_changes(&DeviceSet::default(), &set);
        self.publish(Discovery::Done(Arc::new(set)), lists.into_iter().map(Ok));
        Ok(())
    }

    /// Provides `directx-visible` again. Containers get it only if that succeeds.
    fn update_launcher(&mut self) {
        self.snapshot.host.launcher = self.launcher.update(&self.catalog);
        self.advance();
    }

    /// Applies a valid configuration.
    fn apply_configuration(&mut self, config: Config) {
        let catalog = Catalog::new(config.policy.clone());
        // The files exist before a container can get them.
        self.snapshot.host.launcher = self.launcher.update(&catalog);
        match self.reconfigure(catalog) {
            Ok(()) => self.configuration.applied(config),
            Err(error) => {
                self.configuration.rejected(&error);
                self.update_launcher();
            }
        }
    }

    /// Publishes the set and the resources of another catalog, for the same snapshot. Changes
    /// nothing if the kubelet would refuse a list.
    fn reconfigure(&mut self, catalog: Catalog) -> Result<(), DaemonError> {
        let before = self.published.set();
        let (set, lists) = fitting(before.reconfigured(catalog.offer(&self.snapshot)));
        let lists = lists.into_iter().collect::<Result<Vec<_>, _>>()?;
        let is_pending = self.published.pending().is_some();
        if !is_pending {
            change_log::log_changes(&before, &set);
        }
        for removed in before.resources.iter().filter(|r| set.resource(&r.spec.name).is_none()) {
            self.published.metrics.remove_resource(removed.spec.name.as_str());
        }
        self.catalog = catalog;
        self.resources = self.resources_of(&set);
        let set = Arc::new(set);
        let discovery = if is_pending { Discovery::Pending(set) } else { Discovery::Done(set) };
        // A new resource has its list before it is registered.
        self.publish(discovery, lists.into_iter().map(Ok));
        self.serve_resources();
        Ok(())
    }

    /// Publishes the set that follows from the newest snapshot and the time.
    fn advance(&mut self) {
        if self.published.pending().is_some() {
            return;
        }
        let before = self.published.set();
        let set = DeviceSet::next(Some(&before), self.catalog.offer(&self.snapshot), self.now());
        self.publish_next(&before, set);
    }

    fn now(&self) -> Moment {
        Moment(self.origin.elapsed())
    }

    /// Publishes the set that follows `before`. A resource whose list the kubelet would refuse
    /// keeps its list.
    fn publish_next(&self, before: &DeviceSet, set: DeviceSet) {
        let (set, lists) = fitting(set);
        change_log::log_changes(before, &set);
        self.publish(Discovery::Done(Arc::new(set)), lists);
    }

    fn publish(
        &self,
        discovery: Discovery,
        lists: impl IntoIterator<Item = Result<DeviceList, DaemonError>>,
    ) {
        // The set goes first, so that a new list can be allocated from as soon as it is seen.
        self.published.publish(discovery);
        for (resource, list) in self.resources.iter().zip(lists) {
            match list {
                Ok(list) => resource.publish(list),
                Err(error) => {
                    let error = command_line::error_chain(&error);
                    tracing::error!(error, "device list too large; keeping the previous list");
                }
            }
        }
    }

    /// The resources of `set`; those that exist already are the same objects.
    fn resources_of(&self, set: &DeviceSet) -> Vec<Arc<AdvertisedResource>> {
        set.resources
            .iter()
            .map(|devices| {
                let spec = &devices.spec;
                match self.resources.iter().find(|resource| resource.is(spec)) {
                    Some(existing) => Arc::clone(existing),
                    None => Arc::new(AdvertisedResource::new(spec, &self.published)),
                }
            })
            .collect()
    }

    /// Hands to the supervisor what the daemon reports of its node, if it has changed, and logs the
    /// devices that belong to another resource now.
    fn serve_report(&mut self) {
        let set = self.published.set();
        let cordoned =
            set.cordoned().map(|(id, reason)| format!("device {id} is unhealthy: {reason}"));
        let mut report = PluginReport::new(pod_uid(), &set, self.published.pending());
        report.driver_models = self.catalog.driver_models().collect();
        report.other_driver_models = self.configuration.other_driver_models();
        report.rejected_configuration = self.configuration.last_error();
        change_log::log_moved_devices(&self.device_resources.update(&report.node));
        let unknown = match &self.snapshot.cordoned {
            Cordons::Unknown(reason) => Some(format!(
                "the cordoned devices are not known: {reason}; hint: {}",
                cordon_file::UNKNOWN_HINT
            )),
            Cordons::Known(_) => None,
        };
        let demonstration = set.host.is_demonstration.then(|| DEMONSTRATION.to_owned());
        let problem = self.launcher.problem.clone();
        let notices = demonstration.into_iter().chain(problem).chain(unknown).chain(cordoned);
        let document = report.with_notices(notices).document();
        self.served.send_if_modified(|served| {
            let changed = served.document != document;
            served.document = document;
            changed
        });
    }

    /// Hands the resources to the supervisor.
    fn serve_resources(&self) {
        let resources =
            self.resources.iter().map(|r| Arc::clone(r) as Arc<dyn device_plugin::Resource>);
        self.served.send_modify(|served| served.resources = resources.collect());
    }
}

/// The next change of what is known of the devices that are out of service.
async fn next_cordons(
    cordons: &mut Option<watch::Receiver<Cordons>>,
) -> Result<Cordons, DaemonError> {
    let Some(cordons) = cordons else { return std::future::pending().await };
    let changed = cordons.changed().await;
    changed.map_err(|_| DaemonError::Panic("follows the cordoned devices"))?;
    Ok(cordons.borrow_and_update().clone())
}

/// The next of the [`Reads`].
fn received(read: Option<Result<Read, HostError>>) -> Result<Read, DaemonError> {
    Ok(read.ok_or(DaemonError::Panic("reads adapters"))??)
}

/// The set with the list of each resource, or the error that the kubelet would refuse it. The
/// removed devices of a resource give way if the kubelet would refuse the list with them.
fn fitting(mut set: DeviceSet) -> (DeviceSet, Vec<Result<DeviceList, DaemonError>>) {
    let lists = set.resources.iter_mut().map(|resource| {
        list(resource).or_else(|_| {
            *resource = Arc::new(resource.without_removed());
            list(resource)
        })
    });
    let lists = lists.collect();
    (set, lists)
}

/// The list of a resource, or the error that the kubelet would refuse it.
fn list(resource: &ResourceDevices) -> Result<DeviceList, DaemonError> {
    let replicas = resource.replicas().map(|replica| {
        let mut device = AdvertisedDevice::healthy(replica.id.to_string());
        device.healthy = replica.health.is_healthy();
        device.numa_nodes.extend(replica.numa_node);
        device
    });
    DeviceList::new(replicas).map_err(|source| {
        let resource = resource.spec.name.clone();
        DaemonError::List { resource, source }
    })
}

#[cfg(test)]
mod driver_tests;
#[cfg(test)]
mod reconfiguration_tests;
#[cfg(test)]
mod removal_tests;
#[cfg(test)]
pub(crate) mod tests;
