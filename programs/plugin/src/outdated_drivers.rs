//! Reports containers that use a driver which was replaced.
//!
//! In come the holders that the kubelet reports; out goes a log line for each container, and when to
//! ask for the holders again.

use std::collections::BTreeSet;
use std::time::Duration;

use devices::Moment;
use kubelet::pod_resources::{Attribution, Holder};

use crate::published_devices::PublishedDevices;

/// When to ask for the first time after a driver was replaced. The kubelet records an allocation
/// after the plugin's answer.
const SETTLING: Duration = Duration::from_secs(2);

/// How often to ask while a container uses a driver that was replaced.
const INTERVAL: Duration = Duration::from_secs(60);

/// The containers that are reported.
#[derive(Default)]
pub(crate) struct OutdatedDrivers {
    /// When to ask for holders; `None` while no slot is outdated, or if the kubelet does not report
    /// holders.
    due: Option<Moment>,
    containers: BTreeSet<Holder>,
}

/// How many containers the status names.
const NAMED: usize = 32;

impl OutdatedDrivers {
    /// When to ask for holders.
    pub(crate) fn due(&self) -> Option<Moment> {
        self.due
    }

    /// The containers, for the status.
    pub(crate) fn notices(&self) -> Vec<String> {
        let named = self.containers.iter().take(NAMED).map(|Holder { namespace, pod, container }| {
            format!(
                "container {container} of pod {namespace}/{pod} uses a driver that was replaced; \
                 delete the pod"
            )
        });
        let more = self.containers.len().saturating_sub(NAMED);
        let more =
            (more > 0).then(|| format!("{more} more containers use a driver that was replaced"));
        named.chain(more).collect()
    }

    /// Takes note of a new device set.
    pub(crate) fn set_published(&mut self, devices: &PublishedDevices, now: Moment) {
        if devices.outdated_slots().is_empty() {
            *self = OutdatedDrivers::default();
        } else if self.due.is_none() {
            self.due = Some(after(now, SETTLING));
        }
    }

    /// Reports the containers among `holders` that use a driver which was replaced. Slots that nobody
    /// holds are forgotten.
    pub(crate) fn report(
        &mut self,
        holders: Option<&Attribution>,
        devices: &PublishedDevices,
        now: Moment,
    ) {
        self.due = None;
        let Some(holders) = holders else { return };
        let mut held = BTreeSet::new();
        for (resource, slot) in devices.outdated_slots() {
            match holders.holder(resource.as_str(), &slot) {
                None => devices.forget_allocation(&resource, &slot),
                Some(holder) => {
                    let is_new = held.insert(holder.clone()) && !self.containers.contains(holder);
                    if is_new {
                        log(holder, &slot);
                    }
                }
            }
        }
        if !held.is_empty() {
            self.due = Some(after(now, INTERVAL));
        }
        self.containers = held;
    }
}

fn after(now: Moment, delay: Duration) -> Moment {
    Moment(now.0.saturating_add(delay))
}

fn log(holder: &Holder, slot: &str) {
    tracing::warn!(
        namespace = holder.namespace,
        pod = holder.pod,
        container = holder.container,
        slot,
        hint = "delete the pod; a restart of its container is not enough",
        "a container uses a driver that was replaced"
    );
}
