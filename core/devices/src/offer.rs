//! The offer: which device is advertised under which resource.
//!
//! Input: a snapshot and the policy. Output: every device under exactly one resource,
//! and a reason for every adapter that is under none.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::case_folding::fold_case;
use crate::selection::{Capabilities, ModelList, check_scope, select};
use crate::{
    Device, DeviceMatch, DriverModel, Filter, HostFacts, HostSnapshot, ModelPolicy, Policy,
    ResourceName, ResourceRule, Sharing, SkipReason, Skipped,
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

/// The resources that a policy defines. They depend only on the policy, not on the
/// devices of the host.
#[derive(Clone, Debug)]
pub struct Catalog {
    resources: Vec<Arc<ResourceSpec>>,
    models: Vec<Arc<ModelPolicy>>,
}

/// The devices of a host, each under its resource.
#[derive(Clone, Debug)]
pub struct Offer {
    /// Facts of the host.
    pub host: HostFacts,
    /// In the order of the catalog's resources.
    pub resources: Vec<ResourceOffer>,
    /// Adapters that belong to no resource.
    pub skipped: Vec<Skipped>,
    /// Rules that match no device of this snapshot.
    pub unmatched_rules: Vec<ResourceRule>,
}

/// The devices of one resource.
#[derive(Clone, Debug)]
pub struct ResourceOffer {
    /// The resource.
    pub spec: Arc<ResourceSpec>,
    /// Its devices in the order the host lists them, each with the policy that applies to it.
    pub devices: Vec<(Arc<Device>, Arc<ModelPolicy>)>,
}

impl Catalog {
    /// The resources of `policy`: those of the driver models, then those of the rules in
    /// order. A name that occurs twice is one resource.
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
                    shared_requests: model.sharing.shared_requests,
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

    /// Assigns every device of `snapshot` to its resource.
    #[must_use]
    pub fn offer(&self, snapshot: &HostSnapshot) -> Offer {
        let mut matched: BTreeSet<(usize, usize)> = BTreeSet::new();
        let (assigned, skipped) = select(snapshot, |device| self.assign(device, &mut matched));
        let mut resources: Vec<ResourceOffer> = self
            .resources
            .iter()
            .map(|spec| ResourceOffer { spec: spec.clone(), devices: Vec::new() })
            .collect();
        for (resource, device, model) in assigned {
            resources[resource].devices.push((Arc::new(device), model));
        }
        Offer {
            host: snapshot.host.clone(),
            resources,
            skipped,
            unmatched_rules: self.unmatched_rules(&matched),
        }
    }

    /// The resource's index, the device, and the policy that applies to it. Adds the
    /// device's rule to `matched`.
    fn assign(
        &self,
        device: Device,
        matched: &mut BTreeSet<(usize, usize)>,
    ) -> Result<(usize, Device, Arc<ModelPolicy>), SkipReason> {
        let (number, model) = self.model_of(&device)?;
        let rule = model.rules.iter().position(|rule| rule.matches.matches(&device, model.model));
        let name = match rule {
            Some(rule) => {
                matched.insert((number, rule));
                &model.rules[rule].name
            }
            None => &model.resource,
        };
        let resource = self.resources.iter().position(|r| r.name == *name);
        let resource = resource.expect("the catalog holds every rule's and model's resource");
        Ok((resource, device, model.clone()))
    }

    /// The first driver model that matches the device.
    fn model_of(&self, device: &Device) -> Result<(usize, &Arc<ModelPolicy>), SkipReason> {
        let fits = |model: &&Arc<ModelPolicy>| Filter::of(model.model).matches(device);
        let Some(number) = self.models.iter().position(|model| fits(&model)) else {
            let enabled = ModelList(self.models.iter().map(|m| m.model).collect());
            return Err(SkipReason::NoModel(Capabilities::of(device), enabled));
        };
        let model = &self.models[number];
        check_scope(device, model.integrated, model.detachable)?;
        match (&model.match_name, model.model) {
            (Some(name), _) if !fold_case(&device.description).contains(&fold_case(name)) => {
                Err(SkipReason::Name(name.clone()))
            }
            (_, DriverModel::Wddm | DriverModel::Mcdm) if device.location_path.is_none() => {
                Err(SkipReason::NoLocationPath)
            }
            _ => Ok((number, model)),
        }
    }

    /// Rules that match no device, each once even if several models share it.
    fn unmatched_rules(&self, matched: &BTreeSet<(usize, usize)>) -> Vec<ResourceRule> {
        let is_matched = |rule: &ResourceRule| {
            matched.iter().any(|(model, number)| self.models[*model].rules[*number] == *rule)
        };
        let mut unmatched: Vec<ResourceRule> = Vec::new();
        for rule in self.models.iter().flat_map(|model| model.rules.iter()) {
            if !is_matched(rule) && !unmatched.contains(rule) {
                unmatched.push(rule.clone());
            }
        }
        unmatched
    }
}

impl DeviceMatch {
    /// Whether a device of driver model `model` meets every condition.
    #[must_use]
    pub fn matches(&self, device: &Device, model: DriverModel) -> bool {
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
