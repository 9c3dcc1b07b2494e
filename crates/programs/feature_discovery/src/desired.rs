//! The desired labels and conditions of the node object. No I/O.

use cluster::Node;
use devices::ResourceName;
use host::{CORDON_ANNOTATION, DeviceName};
use plugin_status::answering_daemons::NodeListing;
use report::{
    Condition, ConditionKind, ConditionStatus, Labels, Message, Progress, devices_healthy,
    devices_ready,
};
use strum::VariantArray as _;
use tokio::time::Instant;

use crate::plugin_history::PluginHistory;

/// The desired state of a node object.
#[derive(Clone, Debug, Default)]
pub(crate) struct Desired {
    /// The labels, once they are known.
    pub(crate) labels: Option<Labels>,
    /// The conditions, once they are known, in the order of [`ConditionKind`].
    pub(crate) conditions: Vec<Condition>,
    /// What pods wait for, unless they can use the devices.
    pub(crate) waits_for: Option<Message>,
}

impl Desired {
    /// The desired state of `node`, whose plugin has reported this. `gfd_labels` adds the labels of
    /// NVIDIA's GPU Feature Discovery.
    pub(crate) fn of(
        plugin: &PluginHistory,
        node: &Node,
        gfd_labels: bool,
        now: Instant,
    ) -> Desired {
        let mut listing = plugin.listing(now);
        let mut conditions = conditions(plugin, listing.as_ref(), node, now);
        let starting = plugin.waits_for(now);
        if starting.is_some() {
            // What an earlier run has written stays.
            listing = None;
            conditions.retain(|condition| condition.kind != ConditionKind::Ready);
        }
        let waits_for = match conditions.iter().find(|c| c.kind == ConditionKind::Ready) {
            Some(ready) if ready.status == ConditionStatus::True => None,
            Some(ready) => Some(ready.message.clone()),
            None => Some(starting.unwrap_or_else(|| {
                "the device plugin has not reported its devices yet".to_owned().into()
            })),
        };
        Desired {
            labels: listing.map(|listing| report::labels(&listing.node, gfd_labels)),
            conditions,
            waits_for,
        }
    }
}

fn conditions(
    plugin: &PluginHistory,
    listing: Option<&NodeListing>,
    node: &Node,
    now: Instant,
) -> Vec<Condition> {
    if let Some(outage) = plugin.outage(now) {
        let unknown = |kind: &ConditionKind| kind.unknown(outage.reason, outage.message.clone());
        return ConditionKind::VARIANTS.iter().map(unknown).collect();
    }
    let Some(listing) = listing else { return Vec::new() };
    let progress = |resource: &ResourceName| progress(resource, listing, node);
    let ready = match plugin.partial_outage(now) {
        Some(outage) => ConditionKind::Ready.is_not(outage.reason, outage.message),
        None => devices_ready(&listing.node, progress),
    };
    vec![devices_healthy(&listing.node), ready]
}

fn progress(resource: &ResourceName, listing: &NodeListing, node: &Node) -> Progress {
    let served = listing.served.get(resource);
    if let Some(why) = served.and_then(|served| served.not_registered.clone()) {
        return Progress::NotRegistered(why);
    }
    if let Some(why) = served.and_then(|served| served.incomplete.clone()) {
        return Progress::Incomplete(why);
    }
    let allocatable = node.status.as_ref().and_then(|status| status.allocatable.as_ref());
    match allocatable.and_then(|counts| counts.get(resource.as_str())) {
        Some(count) if is_positive(&count.0) => Progress::Allocatable,
        _ => Progress::NotAllocatable,
    }
}

/// The devices that the annotation of the node takes out of service.
pub(crate) fn cordoned_devices(node: &Node) -> Vec<DeviceName> {
    let annotations = node.metadata.annotations.as_ref();
    let value = annotations.and_then(|annotations| annotations.get(CORDON_ANNOTATION));
    DeviceName::list(value.map_or("", String::as_str))
}

/// Whether a quantity of Kubernetes, such as `2`, `1k` or `0`, is more than zero.
fn is_positive(quantity: &str) -> bool {
    quantity.trim_start_matches(['+', '0', '.']).starts_with(|first: char| first.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantity_is_positive_if_its_number_is() {
        // The kubelet reports 1000 devices as 1k.
        for quantity in ["1", "1k", "20Ki", "0.5", "+3", "1e3", "100m", "10", "1500"] {
            assert!(is_positive(quantity), "{quantity}");
        }
        for quantity in ["0", "-1", "0k", "0.00", "0e3", "", "k"] {
            assert!(!is_positive(quantity), "{quantity}");
        }
    }
}
