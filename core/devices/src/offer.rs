//! The offer: which device belongs to which resource.
//!
//! In come a snapshot and the policy; out goes every device under exactly one
//! resource, or the reason why it is under none.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::selection::{Abilities, ModelList, in_scope, select};
use crate::text::fold;
use crate::{
    Device, DeviceMatch, DriverModel, Filter, HostFacts, HostSnapshot, ModelPolicy, Policy,
    ResourceName, ResourceRule, Sharing, SkipReason, Skipped,
};

/// A resource as it is registered, with or without devices.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResourceSpec {
    /// The extended resource's name.
    pub name: ResourceName,
    /// Slots per device and how containers are spread over them.
    pub sharing: Sharing,
    /// How long a device that went away stays listed.
    pub removal_grace: Duration,
    /// Where the resource comes from.
    pub origin: ResourceOrigin,
}

/// Where a resource comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResourceOrigin {
    /// A driver model's own resource.
    Model(DriverModel),
    /// A rule of the configuration; its number from 0 among all rules' resources.
    Rule(usize),
}

/// The resources that a policy defines. They stay the same for as long as it does,
/// whatever devices come and go.
#[derive(Clone, Debug)]
pub struct Catalog {
    resources: Vec<Arc<ResourceSpec>>,
    models: Vec<Arc<ModelPolicy>>,
}

/// Every device under its resource.
#[derive(Clone, Debug)]
pub struct Offer {
    /// Facts of the host.
    pub host: HostFacts,
    /// In the order of the catalog's resources.
    pub resources: Vec<ResourceOffer>,
    /// Adapters that belong to no resource.
    pub skipped: Vec<Skipped>,
    /// Rules that claimed no device of this snapshot.
    pub idle_rules: Vec<ResourceRule>,
}

/// The devices of one resource.
#[derive(Clone, Debug)]
pub struct ResourceOffer {
    /// The resource.
    pub spec: Arc<ResourceSpec>,
    /// Its devices, in the order the host lists them, each with the policy it falls under.
    pub devices: Vec<(Arc<Device>, Arc<ModelPolicy>)>,
}

impl Catalog {
    /// The resources of `policy`: the driver models' own, then those of the rules in
    /// their order. A name that occurs twice is one resource.
    #[must_use]
    pub fn new(policy: Policy) -> Catalog {
        let models: Vec<_> = policy.models.into_iter().map(Arc::new).collect();
        let mut resources: Vec<Arc<ResourceSpec>> = Vec::new();
        let mut add = |name: &ResourceName, sharing, model: &ModelPolicy, origin| {
            if !resources.iter().any(|r| r.name == *name) {
                resources.push(Arc::new(ResourceSpec {
                    name: name.clone(),
                    sharing,
                    removal_grace: model.removal_grace,
                    origin,
                }));
            }
        };
        let mut number = 0..;
        for model in &models {
            add(&model.resource, model.sharing, model, ResourceOrigin::Model(model.model));
        }
        for model in &models {
            for rule in model.rules.iter() {
                let sharing = Sharing {
                    replicas: rule.replicas.unwrap_or(model.sharing.replicas),
                    allocation: rule.allocation.unwrap_or(model.sharing.allocation),
                };
                let origin = ResourceOrigin::Rule(number.next().unwrap_or(usize::MAX));
                add(&rule.name, sharing, model, origin);
            }
        }
        Catalog { resources, models }
    }

    /// The resources to register.
    #[must_use]
    pub fn resources(&self) -> &[Arc<ResourceSpec>] {
        &self.resources
    }

    /// Puts every device of `snapshot` under its resource.
    #[must_use]
    pub fn offer(&self, snapshot: &HostSnapshot) -> Offer {
        let mut used: BTreeSet<(usize, usize)> = BTreeSet::new();
        let (placed, skipped) = select(snapshot, |device| self.place(device, &mut used));
        let mut resources: Vec<ResourceOffer> = self
            .resources
            .iter()
            .map(|spec| ResourceOffer { spec: spec.clone(), devices: Vec::new() })
            .collect();
        for (resource, device, model) in placed {
            resources[resource].devices.push((Arc::new(device), model));
        }
        Offer { host: snapshot.host.clone(), resources, skipped, idle_rules: self.idle(&used) }
    }

    /// The resource's number, the device, and the policy it falls under.
    fn place(
        &self,
        device: Device,
        used: &mut BTreeSet<(usize, usize)>,
    ) -> Result<(usize, Device, Arc<ModelPolicy>), SkipReason> {
        let (number, model) = self.model_of(&device)?;
        let rule = model.rules.iter().position(|rule| rule.matches.admits(&device, model.model));
        let name = match rule {
            Some(rule) => {
                used.insert((number, rule));
                &model.rules[rule].name
            }
            None => &model.resource,
        };
        let resource = self.resources.iter().position(|r| r.name == *name);
        let resource = resource.expect("the catalog holds every rule's and model's resource");
        Ok((resource, device, model.clone()))
    }

    /// The first driver model that offers the device.
    fn model_of(&self, device: &Device) -> Result<(usize, &Arc<ModelPolicy>), SkipReason> {
        let fits = |model: &&Arc<ModelPolicy>| Filter::of(model.model).admits(device);
        let Some(number) = self.models.iter().position(|model| fits(&model)) else {
            let enabled = ModelList(self.models.iter().map(|m| m.model).collect());
            return Err(SkipReason::NoModel(Abilities::of(device), enabled));
        };
        let model = &self.models[number];
        in_scope(device, model.integrated, model.detachable)?;
        match (&model.match_name, model.model) {
            (Some(name), _) if !fold(&device.description).contains(&fold(name)) => {
                Err(SkipReason::Name(name.clone()))
            }
            (_, DriverModel::Wddm | DriverModel::Mcdm) if device.location_path.is_none() => {
                Err(SkipReason::NoLocationPath)
            }
            _ => Ok((number, model)),
        }
    }

    /// Rules that no device used, each once even where several models share it.
    fn idle(&self, used: &BTreeSet<(usize, usize)>) -> Vec<ResourceRule> {
        let is_used = |rule: &ResourceRule| {
            used.iter().any(|(model, number)| self.models[*model].rules[*number] == *rule)
        };
        let mut idle: Vec<ResourceRule> = Vec::new();
        for rule in self.models.iter().flat_map(|model| model.rules.iter()) {
            if !is_used(rule) && !idle.contains(rule) {
                idle.push(rule.clone());
            }
        }
        idle
    }
}

impl DeviceMatch {
    /// Whether a device of driver model `model` meets every condition.
    #[must_use]
    pub fn admits(&self, device: &Device, model: DriverModel) -> bool {
        let hardware = device.hardware_id;
        let location = device.location_path.as_ref();
        self.vendor.is_none_or(|vendor| vendor == device.vendor)
            && self.model.is_none_or(|wanted| wanted == model)
            && self.pci.is_none_or(|pci| pci.matches(hardware.vendor, hardware.device))
            && self
                .min_memory_mib
                .is_none_or(|least| device.dedicated_memory_mib.is_some_and(|mib| mib >= least))
            && self.description.as_ref().is_none_or(|p| p.matches(&device.description))
            && self.location.as_ref().is_none_or(|p| location.is_some_and(|at| p.matches(at)))
    }
}
