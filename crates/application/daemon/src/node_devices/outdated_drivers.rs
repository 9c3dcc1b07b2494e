//! Reports containers that use a driver which was replaced.
//!
//! They are found among the holders that the kubelet reports. The status lists them, and each is
//! logged once.

use std::collections::BTreeSet;
use std::time::Duration;

use device_plugin::pod_resources::{Attribution, Holder};
use devices::{Moment, OutdatedReplica};

use crate::node_devices::published_devices::PublishedDevices;
use crate::status_notes::OutdatedContainer;

/// When to ask for the first time after a driver was replaced. The kubelet records an allocation
/// after the plugin's answer.
const SETTLING: Duration = Duration::from_secs(2);

/// How often to ask while a container uses a driver that was replaced.
const INTERVAL: Duration = Duration::from_secs(20);

/// The containers that are reported.
#[derive(Default)]
pub(crate) struct OutdatedDrivers {
    /// When to ask for holders; `None` while no replica is outdated.
    pub(crate) due: Option<Moment>,
    /// `None` while they are not known.
    pub(crate) containers: Option<BTreeSet<OutdatedContainer>>,
}

impl OutdatedDrivers {
    /// Takes note of a new device set.
    pub(crate) fn set_published(&mut self, devices: &PublishedDevices, now: Moment) {
        if devices.outdated_replicas().is_empty() {
            *self = OutdatedDrivers { due: None, containers: Some(BTreeSet::new()) };
        } else if self.due.is_none() {
            self.due = Some(after(now, SETTLING));
        }
    }

    /// Reports the containers among `holders` that use a driver which was replaced. Replicas that
    /// nobody holds are forgotten.
    pub(crate) fn report(
        &mut self,
        holders: Option<&Attribution>,
        devices: &PublishedDevices,
        now: Moment,
    ) {
        let Some(holders) = holders else {
            // A kubelet that restarts does not answer for a while.
            self.due = self.due.map(|_| after(now, INTERVAL));
            return;
        };
        let known = self.containers.take().unwrap_or_default();
        let mut held = BTreeSet::new();
        for replica in devices.outdated_replicas() {
            match holders.holder(replica.resource.as_str(), &replica.replica) {
                Some(holder) => {
                    held.insert(container(replica, holder, holders.pod_uid(holder)));
                }
                None => devices.forget_allocation(&replica.resource, &replica.replica),
            }
        }
        held.difference(&known).for_each(log);
        self.due = (!held.is_empty()).then(|| after(now, INTERVAL));
        self.containers = Some(held);
    }
}

fn container(replica: OutdatedReplica, holder: &Holder, uid: Option<&str>) -> OutdatedContainer {
    let Holder { namespace, pod, container } = holder.clone();
    let OutdatedReplica { device, before, now, .. } = replica;
    let pod_uid = uid.unwrap_or_default().to_owned();
    OutdatedContainer { namespace, pod, pod_uid, container, device, before, now }
}

fn after(now: Moment, delay: Duration) -> Moment {
    Moment(now.0.saturating_add(delay))
}

fn log(container: &OutdatedContainer) {
    tracing::warn!(
        namespace = container.namespace,
        pod = container.pod,
        container = container.container,
        device = container.device,
        driver = container.before,
        replaced_by = container.now,
        hint = "delete the pod; a restart of its container is not enough",
        "a container uses a driver that was replaced"
    );
}
