//! The offer: which device is advertised under which resource.
//!
//! Assigns every device of a snapshot to exactly one resource, and returns a reason for every
//! adapter without a resource.

mod policy_check;

use std::sync::Arc;
use std::time::Duration;

use host::{Cordon, CordonSource, Cordons, HostFacts, HostSnapshot, LauncherFiles};

use crate::offer::policy_check::{check_policy, devices_by_location};
use crate::select::not_advertised::{Rejection, check_basic_adapter, supported};
use crate::select::selection::select;
use crate::{
    Device, DeviceMatch, DriverModel, Filter, Health, ModelPolicy, NotAdvertised,
    NotAdvertisedReason, Policy, ResourceName, ResourceRule, Sharing, UnhealthyReason, Visibility,
};

/// A resource as registered with the kubelet, with or without devices.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResourceSpec {
    /// The extended resource's name.
    pub name: ResourceName,
    /// How the devices are shared.
    pub sharing: Sharing,
    /// How long a removed device stays listed.
    pub removal_grace: Duration,
    /// Whether containers get `directx-visible`.
    pub visibility: Visibility,
    pub origin: ResourceOrigin,
    /// The driver models whose devices it can have, each once.
    pub models: Vec<DriverModel>,
}

/// Where a resource comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResourceOrigin {
    /// A driver model's own resource.
    Model(DriverModel),
    /// A rule of the configuration; its number from 0 among all rules' resources.
    Rule(usize),
}

/// The resources that a policy defines. They depend only on the policy, not on the
/// devices of the host.
#[derive(Clone, Debug)]
pub struct Catalog {
    resources: Vec<Arc<ResourceSpec>>,
    models: Vec<CatalogModel>,
}

/// A driver model, and where its devices go.
#[derive(Clone, Debug)]
struct CatalogModel {
    policy: Arc<ModelPolicy>,
    /// The index of the model's own resource in the catalog.
    resource: usize,
    /// The index of each rule's resource.
    rule_resources: Vec<usize>,
}

impl CatalogModel {
    /// The index of the first rule that matches the device. `legacy` never advertises a basic
    /// adapter.
    fn rule_of(&self, device: &Device) -> Option<usize> {
        let model = self.policy.model;
        if model == DriverModel::Legacy && device.hardware_id.is_basic_adapter() {
            return None;
        }
        self.policy.rules.iter().position(|rule| rule.matches.matches(device, model))
    }
}

/// The devices of a host, each under its resource.
#[derive(Clone, Debug)]
pub struct Offer {
    pub host: HostFacts,
    /// The resources in the order of the catalog.
    pub resources: Vec<ResourceOffer>,
    /// Adapters that belong to no resource.
    pub not_advertised: Vec<NotAdvertised>,
    /// Rules that match no device of this snapshot.
    pub unmatched_rules: Vec<ResourceRule>,
    /// Cordons that name no device of this snapshot, each once.
    pub unmatched_cordons: Vec<Cordon>,
}

/// The devices of one resource.
#[derive(Clone, Debug)]
pub struct ResourceOffer {
    pub spec: Arc<ResourceSpec>,
    /// Its devices in the order the host lists them, each with the policy that applies to it.
    pub devices: Vec<(Arc<Device>, Arc<ModelPolicy>)>,
}

impl Catalog {
    /// The driver models, in the order of the policy.
    pub fn driver_models(&self) -> impl Iterator<Item = DriverModel> {
        self.models.iter().map(|model| model.policy.model)
    }

    /// The resources of the driver models in `policy`, then the resources of its rules in order. A
    /// name that occurs twice is one resource.
    #[must_use]
    pub fn new(policy: Policy) -> Catalog {
        let mut catalog = Catalog { resources: Vec::new(), models: Vec::new() };
        for model in policy.models {
            let resource = catalog.add(model.spec());
            let policy = Arc::new(model);
            catalog.models.push(CatalogModel { policy, resource, rule_resources: Vec::new() });
        }
        let mut number = 0;
        for n in 0..catalog.models.len() {
            let model = catalog.models[n].policy.clone();
            for rule in model.rules.iter() {
                let resource = catalog.add(rule.spec(&model, number));
                number += 1;
                catalog.models[n].rule_resources.push(resource);
            }
        }
        catalog
    }

    /// The index of the resource with the name of `spec`, which is added if it is new. A known one
    /// can also have the devices of `spec`.
    fn add(&mut self, spec: ResourceSpec) -> usize {
        let Some(index) = self.resources.iter().position(|known| known.name == spec.name) else {
            self.resources.push(Arc::new(spec));
            return self.resources.len() - 1;
        };
        let known = Arc::make_mut(&mut self.resources[index]);
        for model in spec.models {
            if !known.models.contains(&model) {
                known.models.push(model);
            }
        }
        index
    }

    /// The resources to register.
    #[must_use]
    pub fn resources(&self) -> &[Arc<ResourceSpec>] {
        &self.resources
    }

    /// Whether the containers of a resource get `directx-visible`.
    #[must_use]
    pub fn mounts_launcher(&self) -> bool {
        self.resources.iter().any(|spec| spec.visibility != Visibility::Off)
    }

    /// Assigns every device of `snapshot` to its resource.
    #[must_use]
    pub fn offer(&self, snapshot: &HostSnapshot) -> Offer {
        let mut matched: Vec<&ResourceRule> = Vec::new();
        let cordons = self.cordons(snapshot);
        let locations = devices_by_location(snapshot);
        let mut unmatched_cordons = cordons.clone();
        let (assigned, not_advertised) = select(snapshot, |device| -> Result<_, Rejection> {
            unmatched_cordons.retain(|cordon| !device.is_cordoned_by(cordon));
            let model = self.model_of(&device);
            let rule = model.as_ref().ok().and_then(|model| model.rule_of(&device));
            check_basic_adapter(&device, rule.is_some())?;
            let CatalogModel { policy, resource, rule_resources } = model?;
            let resource = rule.map_or(*resource, |rule| rule_resources[rule]);
            check_policy(&device, policy, &locations).map_err(|reason| Rejection {
                reason,
                resource: Some(self.resources[resource].name.clone()),
            })?;
            matched.extend(rule.map(|rule| &policy.rules[rule]));
            let mut health = health(&device, &cordons, snapshot);
            if health.is_healthy() && self.resources[resource].waits_for_launcher(&snapshot.host) {
                health = Health::Unhealthy(UnhealthyReason::NoLauncher);
            }
            Ok((resource, Device { health, ..device }, policy.clone()))
        });
        let mut resources: Vec<ResourceOffer> = self
            .resources
            .iter()
            .map(|spec| ResourceOffer { spec: spec.clone(), devices: Vec::new() })
            .collect();
        for (resource, device, policy) in assigned {
            resources[resource].devices.push((Arc::new(device), policy));
        }
        Offer {
            host: snapshot.host.clone(),
            resources,
            not_advertised,
            unmatched_rules: self.unmatched_rules(&matched),
            unmatched_cordons,
        }
    }

    /// The cordons of every driver model's configuration, and of the snapshot.
    fn cordons(&self, snapshot: &HostSnapshot) -> Vec<Cordon> {
        let configured = self.models.iter().flat_map(|model| &model.policy.cordoned);
        let mut cordons: Vec<Cordon> = configured
            .map(|device| Cordon { device: device.clone(), source: CordonSource::Configuration })
            .chain(snapshot.cordoned.names().iter().map(|device| Cordon {
                device: device.clone(),
                source: CordonSource::NodeAnnotation,
            }))
            .collect();
        cordons.sort();
        cordons.dedup();
        cordons
    }

    /// The first driver model that matches the device.
    fn model_of(&self, device: &Device) -> Result<&CatalogModel, Rejection> {
        let matches = |model: DriverModel| Filter::of(model).matches(device);
        if let Some(model) = self.models.iter().find(|model| matches(model.policy.model)) {
            return Ok(model);
        }
        let enabled: Vec<&str> = self.models.iter().map(|m| m.policy.model.into()).collect();
        let needed = [DriverModel::Wddm, DriverModel::Mcdm].into_iter().find(|m| matches(*m));
        let supported = supported(device);
        Err(Rejection {
            reason: NotAdvertisedReason::NoModel { supported, enabled: enabled.join(", "), needed },
            resource: needed.and_then(|model| self.rule_resource(device, model)),
        })
    }

    /// The resource of the first rule that matches the device under this driver model.
    fn rule_resource(&self, device: &Device, model: DriverModel) -> Option<ResourceName> {
        let mut rules = self.models.iter().flat_map(|enabled| enabled.policy.rules.iter());
        let rule = rules.find(|rule| rule.matches.matches(device, model))?;
        Some(rule.name.clone())
    }

    /// Rules that match no device, each once even if several models share it.
    fn unmatched_rules(&self, matched: &[&ResourceRule]) -> Vec<ResourceRule> {
        let mut unmatched: Vec<ResourceRule> = Vec::new();
        for rule in self.models.iter().flat_map(|model| model.policy.rules.iter()) {
            if !matched.contains(&rule) && !unmatched.contains(rule) {
                unmatched.push(rule.clone());
            }
        }
        unmatched
    }
}

/// The health of a device. The cordon of a device that has a problem is its reason:
/// an administrator already takes care of it. If the cordons are not known, each device may have
/// one, so a device without another problem is unhealthy for this reason.
fn health(device: &Device, cordons: &[Cordon], snapshot: &HostSnapshot) -> Health {
    if let Some(cordon) = cordons.iter().find(|cordon| device.is_cordoned_by(cordon)) {
        return Health::Unhealthy(UnhealthyReason::Cordoned(cordon.source));
    }
    if device.health.is_healthy() && matches!(snapshot.cordoned, Cordons::Unknown(_)) {
        return Health::Unhealthy(UnhealthyReason::CordonsUnknown);
    }
    device.health
}

impl ResourceSpec {
    /// Whether containers must get `directx-visible` and the host does not provide it.
    fn waits_for_launcher(&self, host: &HostFacts) -> bool {
        self.visibility == Visibility::Required && host.launcher == LauncherFiles::NotProvided
    }
}

impl ModelPolicy {
    /// The resource of the devices that no rule claims.
    #[must_use]
    pub fn spec(&self) -> ResourceSpec {
        ResourceSpec {
            name: self.resource.clone(),
            sharing: self.sharing,
            removal_grace: self.removal_grace,
            visibility: self.container.visibility,
            origin: ResourceOrigin::Model(self.model),
            models: vec![self.model],
        }
    }
}

impl ResourceRule {
    /// The resource of this rule, where `model` decides what the rule does not set. `number` is the
    /// number in [`ResourceOrigin::Rule`].
    #[must_use]
    pub fn spec(&self, model: &ModelPolicy, number: usize) -> ResourceSpec {
        ResourceSpec {
            name: self.name.clone(),
            sharing: Sharing {
                replicas: self.replicas.unwrap_or(model.sharing.replicas),
                allocation: self.allocation.unwrap_or(model.sharing.allocation),
                ..model.sharing
            },
            visibility: self.visibility.unwrap_or(model.container.visibility),
            origin: ResourceOrigin::Rule(number),
            ..model.spec()
        }
    }
}

impl DeviceMatch {
    /// Whether a device of driver model `model` meets every condition.
    #[must_use]
    pub fn matches(&self, device: &Device, model: DriverModel) -> bool {
        self.unmet(device, model).is_empty()
    }

    /// The keys in a configuration of the conditions that a device of driver model `model` does not
    /// meet. A basic adapter meets `pciId` only if it is set.
    #[must_use]
    pub fn unmet(&self, device: &Device, model: DriverModel) -> Vec<&'static str> {
        let hardware = device.hardware_id;
        let location = device.location_path.as_ref();
        let has_memory = |least| device.dedicated_memory_mib.is_some_and(|mib| mib >= least);
        [
            ("vendor", self.vendor.is_none_or(|vendor| vendor == device.vendor)),
            ("kind", self.kind.is_none_or(|kind| kind == device.kind)),
            ("driverModel", self.model.is_none_or(|wanted| wanted == model)),
            ("pciId", self.pci.map_or(!hardware.is_basic_adapter(), |pci| pci.matches(hardware))),
            ("minMemoryMiB", self.min_memory_mib.is_none_or(has_memory)),
            (
                "description",
                self.description.as_ref().is_none_or(|p| p.matches(&device.description)),
            ),
            (
                "locationPath",
                self.location.as_ref().is_none_or(|p| location.is_some_and(|at| p.matches(at))),
            ),
        ]
        .into_iter()
        .filter(|(_, is_met)| !is_met)
        .map(|(key, _)| key)
        .collect()
    }
}
