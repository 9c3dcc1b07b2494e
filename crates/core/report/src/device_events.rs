//! What has happened to devices, as Events of a node.

use std::collections::HashMap;

use host::PnpId;

use crate::device_resources::MovedDevice;
use crate::node_report::{NodeReport, ReportedDevice};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceEvent {
    pub reason: EventReason,
    /// For administrators.
    pub note: String,
}

/// The kinds of events. As text, the reason of the Event.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, strum::IntoStaticStr)]
#[strum(prefix = "DirectXDevice")]
pub enum EventReason {
    /// A device became unhealthy.
    Unhealthy,
    /// The device is healthy again.
    Recovered,
    /// The device has another driver.
    DriverChanged,
    /// The device belongs to another resource.
    Moved,
    /// A cordon names no device of the host.
    NotFound,
}

impl EventReason {
    /// Whether an administrator should act on it.
    #[must_use]
    pub const fn is_warning(self) -> bool {
        matches!(self, EventReason::Unhealthy | EventReason::Moved | EventReason::NotFound)
    }
}

impl From<MovedDevice> for DeviceEvent {
    fn from(MovedDevice { id, description, from, to }: MovedDevice) -> DeviceEvent {
        let note = format!(
            "device {id} ({description}) moved from the resource {from} to {to}, which pods must \
             request now"
        );
        DeviceEvent { reason: EventReason::Moved, note }
    }
}

/// What has happened to the devices of `after`, apart from those that moved to another resource. A
/// device that `before` does not contain is only worth an Event if it is unhealthy. A cordon is
/// worth one if it names no device.
#[must_use]
pub fn device_events(before: &NodeReport, after: &NodeReport) -> Vec<DeviceEvent> {
    let known: HashMap<&PnpId, &ReportedDevice> =
        before.devices().map(|device| (&device.id, device)).collect();
    let mut events = Vec::new();
    for new in after.devices() {
        match known.get(&new.id) {
            Some(old) => events.extend(changes(old, new)),
            None => events.extend(unhealthy(new)),
        }
    }
    for cordon in &after.unmatched_cordons {
        if !before.unmatched_cordons.contains(cordon) {
            let note = cordon.clone();
            events.push(DeviceEvent { reason: EventReason::NotFound, note });
        }
    }
    events
}

fn changes(old: &ReportedDevice, new: &ReportedDevice) -> Vec<DeviceEvent> {
    let id = &new.id;
    let name = &new.description;
    let health = match (&old.unhealthy, &new.unhealthy) {
        (old, new) if old == new => None,
        (_, Some(_)) => unhealthy(new),
        (_, None) => {
            let note = format!("device {id} ({name}) is healthy again");
            Some(DeviceEvent { reason: EventReason::Recovered, note })
        }
    };
    let versions = (old.driver_version, new.driver_version);
    let driver = match versions {
        (Some(before), Some(after)) if before != after => {
            let note = format!("device {id} ({name}) changed its driver from {before} to {after}");
            Some(DeviceEvent { reason: EventReason::DriverChanged, note })
        }
        _ => None,
    };
    health.into_iter().chain(driver).collect()
}

fn unhealthy(device: &ReportedDevice) -> Option<DeviceEvent> {
    let reason = &device.unhealthy.as_ref()?.text;
    let id = &device.id;
    let name = &device.description;
    let note = format!("device {id} ({name}) is unhealthy: {reason}");
    Some(DeviceEvent { reason: EventReason::Unhealthy, note })
}
