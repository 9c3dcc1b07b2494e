//! The containers to test, planned as the daemon plans an allocation.

use devices::{
    Catalog, DeviceSet, HostSnapshot, Moment, Plan, PlanError, Policy, ResourceDevices,
    ResourceOrigin, SlotId,
};

use crate::advertised_resource::plan_on_this_machine;

/// A container to test.
pub(super) struct Case {
    /// The resource and the number of devices. The name of a resource may be private, so it is
    /// not used.
    pub(super) object: String,
    pub(super) plan: Plan,
}

/// What the daemon would answer, with the object of a [`Case`].
pub(super) type Planned = (String, Result<Plan, PlanError>);

/// A container with one device, and one with all devices, of each resource with healthy
/// devices.
pub(super) fn cases(policy: Policy, host: &HostSnapshot) -> Vec<Planned> {
    let offer = Catalog::new(policy).offer(host);
    let set = DeviceSet::next(None, offer, Moment::default());
    set.resources.iter().flat_map(|resource| of_resource(resource, host)).collect()
}

fn of_resource(resource: &ResourceDevices, host: &HostSnapshot) -> Vec<Planned> {
    let healthy = resource.entries().iter().filter(|entry| entry.health.is_healthy());
    let slots: Vec<String> = healthy
        .map(|entry| SlotId { device: entry.device.id.clone(), replica: 0 }.to_string())
        .collect();
    let label = match resource.spec.origin {
        ResourceOrigin::Model(model) => model.to_string(),
        ResourceOrigin::Rule(number) => format!("rule {number}"),
    };
    let planned = |slots: &[String], count: String| {
        let plan = plan_on_this_machine(resource, slots.iter().map(String::as_str), &host.host);
        (format!("{label}, {count}"), plan)
    };
    match slots.as_slice() {
        [] => Vec::new(),
        [_] => vec![planned(&slots, "1 device".to_owned())],
        several => vec![
            planned(&slots[..1], "1 device".to_owned()),
            planned(&slots, format!("all {} devices", several.len())),
        ],
    }
}
