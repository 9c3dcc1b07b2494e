//! An extended resource as the kubelet sees it: the node's devices, and a plan for each
//! allocation.
//!
//! Plans become messages of the device plugin API only here.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use command_line::disk;
use device_plugin::{
    Code, ContainerResponse, DeviceList, DevicePluginOptions, DeviceSpec, Mount, PreferredRequest,
    Status, async_trait,
};
use devices::{
    DeviceSet, DriverModel, MountOrigin, MountOutcome, NOT_APPLIED_HINT, NoMountsReason, Plan,
    PlanError, ReplicaError, ResourceDevices, ResourceName, ResourceOrigin, ResourceSpec,
    plan_on_disk,
};
#[cfg(test)]
use futures_util::FutureExt;
use tokio::sync::watch;

use crate::metrics::RefusalReason;
use crate::node_devices::published_devices::PublishedDevices;

/// One resource of the node. It stays the same object when the configuration changes, so that its
/// streams stay open.
pub(crate) struct AdvertisedResource {
    name: ResourceName,
    origin: ResourceOrigin,
    /// The driver models whose devices it can have.
    models: Vec<DriverModel>,
    list: watch::Sender<Arc<DeviceList>>,
    devices: PublishedDevices,
    /// The pairs of paths that were logged, so that each is logged once.
    logged_mounts: Mutex<HashSet<[String; 2]>>,
}

/// The driver model whose own resource this is; `None` for a rule's.
fn model(origin: ResourceOrigin) -> Option<DriverModel> {
    match origin {
        ResourceOrigin::Model(model) => Some(model),
        ResourceOrigin::Rule(_) => None,
    }
}

impl AdvertisedResource {
    /// The resource `spec` with an empty list and the devices in `devices`.
    pub(crate) fn new(spec: &ResourceSpec, devices: &PublishedDevices) -> AdvertisedResource {
        devices.metrics.add_resource(spec.name.as_str());
        let empty = DeviceList::new([]).expect("an empty list is small");
        AdvertisedResource {
            name: spec.name.clone(),
            origin: spec.origin,
            models: spec.models.clone(),
            list: watch::Sender::new(Arc::new(empty)),
            devices: devices.clone(),
            logged_mounts: Mutex::default(),
        }
    }

    /// Whether this is the resource `spec`. `status` finds a driver model's own resource by the
    /// prefix of its socket, so a rule's resource of the same name is another one. So is one with
    /// devices of other driver models, because it needs other locks.
    pub(crate) fn is(&self, spec: &ResourceSpec) -> bool {
        self.name == spec.name
            && model(self.origin) == model(spec.origin)
            && self.models == spec.models
    }

    /// Replaces the list, if it differs.
    pub(crate) fn publish(&self, list: DeviceList) {
        let changed = self.list.send_if_modified(|old| {
            let changed = **old != list;
            if changed {
                *old = Arc::new(list);
            }
            changed
        });
        if changed {
            self.devices.metrics.list_updated(self.name.as_str());
        }
    }

    /// The devices of this resource in `set`.
    fn of<'a>(&self, set: &'a DeviceSet) -> Result<&'a ResourceDevices, Status> {
        let resource = set.resource(&self.name).map(Arc::as_ref);
        resource.ok_or_else(|| {
            let message = format!("resource {} is no longer configured", self.name);
            Status::not_found(message)
        })
    }

    /// Logs what an administrator should know of an allocation.
    fn log(&self, plan: &Plan) {
        for warning in &plan.warnings {
            tracing::warn!(resource = %self.name, reason = %warning, "allocated with a warning");
        }
        for file in &plan.mounts.files {
            let source = &file.file.host_path;
            let destination = &file.file.container_path;
            match &file.outcome {
                MountOutcome::DestinationTaken { by } => {
                    if self.is_new(source, &by.host_path) {
                        tracing::warn!(
                            destination,
                            mounted = by.host_path,
                            skipped = source,
                            "two runtime files have the same destination"
                        );
                    }
                }
                // A default that is left out is no fault: `simulate` and `doctor` name it.
                MountOutcome::NotApplied if file.file.origin == MountOrigin::Configuration => {
                    if self.is_new(source, destination) {
                        tracing::warn!(
                            resource = %self.name,
                            source,
                            destination,
                            reason = %NoMountsReason::MountedByWindows,
                            hint = NOT_APPLIED_HINT,
                            "additional mount not applied"
                        );
                    }
                }
                MountOutcome::Mounted
                | MountOutcome::Missing
                | MountOutcome::NotOneMatch(_)
                | MountOutcome::Excluded
                | MountOutcome::Wow64Omitted
                | MountOutcome::NoWow64
                | MountOutcome::NotApplied => {}
            }
        }
    }

    /// Whether a pair of paths was not logged before.
    fn is_new(&self, source: &str, other: &str) -> bool {
        let mut logged = self.logged_mounts.lock().unwrap_or_else(PoisonError::into_inner);
        logged.insert([source.to_owned(), other.to_owned()])
    }
}

#[async_trait]
impl device_plugin::Resource for AdvertisedResource {
    fn name(&self) -> &str {
        self.name.as_str()
    }

    /// A driver model's own resource has the prefix of the earlier plugins. A rule's resource has
    /// the number of the rule, because socket paths must be short.
    fn socket_prefix(&self) -> Cow<'_, str> {
        match self.origin {
            ResourceOrigin::Model(model) => model.socket_prefix().into(),
            ResourceOrigin::Rule(n) => format!("directx-rule{n}").into(),
        }
    }

    /// Without them, two daemons with different configurations would give out the same device under
    /// two names.
    fn locks(&self) -> Vec<String> {
        self.models.iter().map(|model| model.lock().to_owned()).collect()
    }

    fn devices(&self) -> watch::Receiver<Arc<DeviceList>> {
        self.list.subscribe()
    }

    fn pending(&self) -> Option<String> {
        self.devices.pending()
    }

    async fn allocate(&self, ids: &[String]) -> Result<ContainerResponse, Status> {
        let began = Instant::now();
        let set = self.devices.set();
        let resource = self.of(&set)?;
        let plan = plan_on_disk(resource, ids.iter().map(String::as_str), &set.host, disk())
            .map_err(|error| {
                let (code, reason) = refusal(&error);
                (reason, Status::new(code, error.to_string()))
            });
        let outcome = plan.as_ref().map(|_| ()).map_err(|(reason, _)| *reason);
        self.devices.metrics.allocate_answered(self.name(), outcome, began.elapsed());
        let plan = plan.map_err(|(_, refusal)| refusal)?;
        if set.host.is_demonstration {
            tracing::info!(resource = %self.name, "demonstration: a container gets only variables");
            return Ok(ContainerResponse { envs: plan.envs, ..ContainerResponse::default() });
        }
        self.log(&plan);
        let response = response(plan);
        let device = response.devices.first().map_or("", |device| &device.host_path);
        let duration_ms = format!("{:.2}", began.elapsed().as_secs_f64() * 1000.0);
        let files = response.mounts.len();
        tracing::info!(resource = %self.name, ?ids, device, files, duration_ms, "allocated");
        Ok(response)
    }

    fn options(&self) -> DevicePluginOptions {
        DevicePluginOptions { get_preferred_allocation_available: true, ..Default::default() }
    }

    async fn preferred_allocation(
        &self,
        request: PreferredRequest<'_>,
    ) -> Result<Vec<String>, Status> {
        let set = self.devices.set();
        let PreferredRequest { available, must_include, size, .. } = request;
        let resource = match self.of(&set) {
            // `Allocate` says why the kubelet gets nothing.
            Err(_) if must_include.is_empty() => return Ok(Vec::new()),
            found => found?,
        };
        devices::preferred_allocation(resource, available, must_include, size)
            .map_err(|error| Status::invalid_argument(error.to_string()))
    }
}

/// The kind of a refusal, and its reason in metrics.
fn refusal(error: &PlanError) -> (Code, RefusalReason) {
    use Code::{FailedPrecondition, InvalidArgument, NotFound};
    use RefusalReason as Reason;
    match error {
        PlanError::NoReplicas => (InvalidArgument, Reason::NoDevices),
        PlanError::Replica(ReplicaError::Malformed(_)) => (InvalidArgument, Reason::MalformedId),
        PlanError::Replica(ReplicaError::BeyondReplicas(..)) => {
            (InvalidArgument, Reason::ReplicaOutOfRange)
        }
        PlanError::Replica(ReplicaError::UnknownDevice(..)) => (NotFound, Reason::UnknownDevice),
        PlanError::Replica(ReplicaError::Unhealthy(..)) => (FailedPrecondition, Reason::Unhealthy),
        PlanError::SharedRequest { .. } => (FailedPrecondition, Reason::SharedRequest),
        PlanError::SeveralDevices(_) => (FailedPrecondition, Reason::SeveralDevices),
        PlanError::NoDeviceClass { .. } => (FailedPrecondition, Reason::NoDeviceClass),
        PlanError::DifferentClasses(_) => (FailedPrecondition, Reason::DifferentClasses),
        PlanError::NoLauncher { .. } => (FailedPrecondition, Reason::NoLauncher),
        PlanError::NoLocationPath(_) => (FailedPrecondition, Reason::NoLocationPath),
    }
}

/// The plan as a message to the kubelet. On Windows a device's container path and
/// permissions must be empty.
fn response(plan: Plan) -> ContainerResponse {
    let mounts = plan.mounts.into_mounted().map(|file| Mount {
        container_path: file.container_path,
        host_path: file.host_path,
        read_only: true,
    });
    let device = DeviceSpec { host_path: plan.device.host_path(), ..DeviceSpec::default() };
    ContainerResponse {
        mounts: mounts.collect(),
        envs: plan.envs,
        devices: vec![device],
        ..ContainerResponse::default()
    }
}

/// The answer of a resource, which does not wait for anything.
#[cfg(test)]
pub(crate) fn allocate(
    resource: &dyn device_plugin::Resource,
    ids: &[String],
) -> Result<ContainerResponse, Status> {
    resource.allocate(ids).now_or_never().expect("an answer at once")
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use config::Flags;
    use devices::Catalog;

    use super::*;
    use crate::node_devices::NodeDevices;
    use command_line::configuration;
    use process::logging::test_log::Log;

    /// The resources that a recorded host advertises under `config`.
    fn advertised(host: &str, config: &str) -> Vec<Arc<dyn device_plugin::Resource>> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.yaml");
        std::fs::write(&file, config).unwrap();
        let flags = Flags { config: Some(file), ..Flags::default() };
        let config = configuration::load(&flags).unwrap();
        let inventories =
            PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../fixtures/inventories");
        let snapshot = config::inventory::read(&inventories.join(host)).unwrap();
        let devices = NodeDevices::fixed(Catalog::new(config.policy), snapshot).unwrap();
        devices.served().borrow().resources.clone()
    }

    const A10: &str = r"PCI\VEN_10DE&DEV_2236&SUBSYS_148210DE&REV_A1\5&2C5F1A3B&0&1\0";
    const V520: &str = r"PCI\VEN_1002&DEV_7362&SUBSYS_0A341002&REV_C3\5&2C5F1A3B&0&2\0";

    #[test]
    fn a_collision_is_logged_once_and_several_devices_each_time() {
        let display = advertised("made-up-two-vendors.yaml", "")[0].clone();
        let log = Log::start();
        for _ in 0..3 {
            allocate(&*display, &[A10.to_owned(), V520.to_owned()]).unwrap();
        }
        let text = log.text();
        assert_eq!(
            text.matches("two runtime files have the same destination").count(),
            1,
            "{text}"
        );
        assert!(text.contains("amd_opencl64.dll"), "{text}");
        assert_eq!(text.matches("requested 2 devices").count(), 3, "{text}");
    }

    #[test]
    fn each_allocation_leaves_one_line() {
        let display = advertised("aws-t4-two.yaml", "")[0].clone();
        let id = r"PCI\VEN_10DE&DEV_1EB8&SUBSYS_12A210DE&REV_A1\3&13C0B0C5&1&D8\0".to_owned();
        let log = Log::start();
        let answer = allocate(&*display, std::slice::from_ref(&id)).unwrap();
        let text = log.text();
        let [line] = text.lines().collect::<Vec<_>>()[..] else { panic!("{text}") };
        let files = answer.mounts.len();
        for part in [
            "INFO".to_owned(),
            ": allocated resource=directx.microsoft.com/display ".to_owned(),
            format!(" ids=[{id:?}] "),
            r#" device="vpci-location-path://PCIROOT(0)#PCI(1B00)" "#.to_owned(),
            format!(" files={files} duration_ms="),
        ] {
            assert!(line.contains(&part), "no `{part}` in {line}");
        }
        allocate(&*display, &["nonsense".to_owned()]).unwrap_err();
        assert_eq!(log.text(), text, "the caller logs refusals");
    }

    #[test]
    fn a_dropped_additional_mount_is_logged_once_with_a_hint() {
        let mounts = "additionalMounts: {nvidia: [{source: extra.dll, destination: extra.dll}]}";
        let display = advertised("made-up-l4-2025.yaml", mounts)[0].clone();
        let id = r"PCI\VEN_10DE&DEV_27B8&SUBSYS_16CA10DE&REV_A1\6&1A2B3C4D&0&00000008\0".to_owned();
        let log = Log::start();
        for _ in 0..3 {
            allocate(&*display, std::slice::from_ref(&id)).unwrap();
        }
        let text = log.text();
        assert_eq!(text.matches("additional mount not applied").count(), 1, "{text}");
        assert!(text.contains("runtimeMounts: extra"), "{text}");
        assert!(text.contains("extra.dll"), "{text}");
    }

    #[test]
    fn refusals_have_the_kind_of_their_cause() {
        let display = advertised("made-up-two-vendors.yaml", "multiDevice: reject")[0].clone();
        let kind = |ids: &[&str]| {
            let ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
            allocate(&*display, &ids).unwrap_err().code()
        };
        assert_eq!(kind(&[]), Code::InvalidArgument);
        assert_eq!(kind(&["nonsense"]), Code::InvalidArgument);
        assert_eq!(kind(&[&A10.replace(r"\0", r"\1")]), Code::InvalidArgument);
        assert_eq!(kind(&[r"PCI\GONE\0"]), Code::NotFound);
        assert_eq!(kind(&[A10, V520]), Code::FailedPrecondition);
        let unhealthy = advertised("made-up-npu-beside-gpu.yaml", "")[0].clone();
        let id = r"PCI\VEN_10DE&DEV_2684&SUBSYS_88E21043&REV_A1\4&2283F625&0&0008\0";
        let refusal = allocate(&*unhealthy, &[id.to_owned()]).unwrap_err();
        assert_eq!(refusal.code(), Code::FailedPrecondition);
        assert!(refusal.message().contains("problem code 43"), "{refusal}");
    }

    #[test]
    fn sockets_are_named_after_models_and_rules() {
        let rules =
            "resources: [{name: a/b, match: {vendor: amd}}, {name: c/d, match: {vendor: intel}}]";
        let prefixes: Vec<String> = advertised("aws-t4-two.yaml", rules)
            .iter()
            .map(|resource| resource.socket_prefix().into_owned())
            .collect();
        assert_eq!(prefixes, ["wddm", "mcdm", "directx-rule0", "directx-rule1"]);
    }

    #[test]
    fn a_resource_needs_the_lock_of_each_driver_model_whose_devices_it_can_have() {
        let rules = "resources: [{name: a/b, match: {vendor: amd}}, \
            {name: c/d, match: {driverModel: mcdm}}]";
        let locks: Vec<Vec<String>> =
            advertised("aws-t4-two.yaml", rules).iter().map(|resource| resource.locks()).collect();
        let [wddm, mcdm] = ["directx-wddm", "directx-mcdm"];
        assert_eq!(locks, [vec![wddm], vec![mcdm], vec![wddm, mcdm], vec![mcdm]]);
    }
}
