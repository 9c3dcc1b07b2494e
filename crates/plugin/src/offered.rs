//! An extended resource as the kubelet meets it: the fleet's devices and the plan.
//!
//! This is the edge where plans become messages.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use devices::{
    Catalog, DriverModel, Fate, Plan, PlanError, ResourceDevices, ResourceOrigin, ResourceSpec,
    SlotFault,
};
use kubelet::{
    ContainerResponse, DeviceList, DeviceSpec, Mount, PreferredRequest, Refusal, RefusalKind,
};
use tokio::sync::watch;

use crate::fleet::Published;

/// One resource of the fleet.
pub(crate) struct Offered {
    number: usize,
    spec: Arc<ResourceSpec>,
    prefix: String,
    fleet: Published,
    /// Collisions that were logged, so that each is logged once.
    told: Mutex<BTreeSet<(String, String)>>,
}

/// The catalog's resources over the published fleet.
pub(crate) fn resources(catalog: &Catalog, fleet: &Published) -> Vec<Arc<dyn kubelet::Resource>> {
    let specs = catalog.resources().iter().enumerate();
    specs
        .map(|(number, spec)| {
            Arc::new(Offered {
                number,
                prefix: prefix(spec.origin),
                spec: spec.clone(),
                fleet: fleet.clone(),
                told: Mutex::default(),
            }) as Arc<dyn kubelet::Resource>
        })
        .collect()
}

/// What a resource's socket is called: as in the earlier systems for the driver
/// models' own, by number for a rule's, since socket paths must be short.
fn prefix(origin: ResourceOrigin) -> String {
    match origin {
        ResourceOrigin::Model(model) => model_prefix(model).to_owned(),
        ResourceOrigin::Rule(n) => format!("directx-rule{n}"),
    }
}

/// What the sockets of a driver model's own resource are called.
pub(crate) const fn model_prefix(model: DriverModel) -> &'static str {
    match model {
        DriverModel::Legacy => "directx",
        named => named.name(),
    }
}

/// Plans a container on this machine: files of a live host are looked up on its disk.
pub(crate) fn plan_here<'a>(
    resource: &ResourceDevices,
    ids: impl IntoIterator<Item = &'a str>,
    host: &devices::HostFacts,
) -> Result<Plan, PlanError> {
    devices::plan(resource, ids, host, &|path| Path::new(path).is_file())
}

impl Offered {
    /// Tells an administrator what an allocation gives that it should not have to.
    fn tell(&self, plan: &Plan) {
        for warning in &plan.warnings {
            tracing::warn!(resource = %self.spec.name, "{warning}");
        }
        for file in &plan.mounts.files {
            let Fate::Shadowed { by } = &file.fate else { continue };
            let collision = (file.file.host_path.clone(), by.host_path.clone());
            let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            if told.insert(collision) {
                tracing::warn!(
                    destination = file.file.container_path,
                    mounted = by.host_path,
                    left_out = file.file.host_path,
                    "two files claim one destination"
                );
            }
        }
    }
}

impl kubelet::Resource for Offered {
    fn name(&self) -> &str {
        self.spec.name.as_str()
    }

    fn socket_prefix(&self) -> &str {
        &self.prefix
    }

    fn devices(&self) -> watch::Receiver<Arc<DeviceList>> {
        self.fleet.list(self.number)
    }

    fn allocate(&self, ids: &[String]) -> Result<ContainerResponse, Refusal> {
        let set = self.fleet.set();
        let resource = &set.resources[self.number];
        let plan = plan_here(resource, ids.iter().map(String::as_str), &set.host)
            .map_err(|error| refuse(&error))?;
        self.tell(&plan);
        Ok(response(plan))
    }

    fn prefer(&self, request: PreferredRequest<'_>) -> Result<Vec<String>, Refusal> {
        let set = self.fleet.set();
        let PreferredRequest { available, must_include, size } = request;
        devices::prefer(&set.resources[self.number], available, must_include, size)
            .map_err(|error| Refusal::new(RefusalKind::InvalidArgument, error))
    }
}

fn refuse(error: &PlanError) -> Refusal {
    let kind = match error {
        PlanError::NoSlots
        | PlanError::Slot(SlotFault::Malformed(_) | SlotFault::BeyondReplicas(..)) => {
            RefusalKind::InvalidArgument
        }
        PlanError::Slot(SlotFault::UnknownDevice(..)) => RefusalKind::NotFound,
        PlanError::Slot(SlotFault::Unhealthy(..))
        | PlanError::SeveralDevices(_)
        | PlanError::NoLocationPath(_) => RefusalKind::FailedPrecondition,
    };
    Refusal::new(kind, error)
}

/// The plan as the kubelet takes it. On Windows a device's container path and
/// permissions must be empty.
fn response(plan: Plan) -> ContainerResponse {
    let mounts = plan.mounts.mounted().map(|file| Mount {
        container_path: file.container_path.clone(),
        host_path: file.host_path.clone(),
        read_only: true,
    });
    ContainerResponse {
        envs: plan.envs,
        mounts: mounts.collect(),
        devices: vec![DeviceSpec {
            host_path: plan.device.host_path(),
            container_path: String::new(),
            permissions: String::new(),
        }],
        ..ContainerResponse::default()
    }
}
