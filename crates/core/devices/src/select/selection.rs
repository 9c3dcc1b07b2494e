//! Selection: turns adapters into devices, with a reason for each adapter that is skipped.
//!
//! One broken adapter never hides the others: an adapter that cannot become a device is
//! skipped and reported.

use std::collections::HashMap;

use host::{HostSnapshot, WarningEffect};

use crate::select::not_advertised::{
    Rejection, check_adapter, check_basic_adapter, check_filter, check_scope,
};
use crate::{Device, Filter, NotAdvertised, NotAdvertisedReason, RejectedValue};

/// The criteria of a discovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Criteria {
    /// What a device must support.
    pub filter: Filter,
    /// Whether integrated devices are included.
    pub include_integrated: bool,
    /// Whether detachable devices are included.
    pub include_detachable: bool,
    /// Whether Microsoft's basic adapters are included: software, without a GPU.
    pub include_basic: bool,
}

impl Criteria {
    /// Every GPU and accelerator.
    pub const ALL: Criteria = Criteria {
        filter: Filter::All,
        include_integrated: true,
        include_detachable: true,
        include_basic: false,
    };
}

/// The devices of a snapshot, and the adapters that were skipped.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Selection {
    /// The devices, in the order in which the host lists their adapters.
    pub devices: Vec<Device>,
    /// The skipped adapters in the same order, except that those which could not be read come last.
    pub skipped: Vec<NotAdvertised>,
}

impl Selection {
    /// What was left out of `snapshot`, with the reasons, one line each.
    #[must_use]
    pub fn left_out(&self, snapshot: &HostSnapshot) -> Vec<String> {
        let partial = snapshot.warnings.iter().filter(|w| w.effect != WarningEffect::Unreadable);
        let mut lines: Vec<String> =
            partial.map(|w| format!("adapter {}: {}", w.luid, w.text)).collect();
        for device in &self.devices {
            if let Some(error) = device.rejected_store() {
                lines.push(format!("device {}: {error}; its files are not used", device.id));
            }
            for RejectedValue { key, value, why } in &device.runtime_files.rejected {
                lines.push(format!(
                    "device {}: skipping value `{value}` of {key}: {why}",
                    device.id
                ));
            }
        }
        lines.extend(self.skipped.iter().map(
            |NotAdvertised { luid, description, reason, .. }| {
                let name = if description.is_empty() { "" } else { &format!(" ({description})") };
                format!("skipping adapter {luid}{name}: {reason}")
            },
        ));
        lines
    }
}

/// Selects the devices that meet `criteria`.
#[must_use]
pub fn discover(snapshot: &HostSnapshot, criteria: Criteria) -> Selection {
    let (devices, skipped) = select(snapshot, |device| -> Result<Device, NotAdvertisedReason> {
        check_basic_adapter(&device, criteria.include_basic)?;
        check_scope(&device, criteria.include_integrated, criteria.include_detachable)?;
        check_filter(&device, criteria.filter)?;
        Ok(device)
    });
    Selection { devices, skipped }
}

/// Turns each adapter that is hardware with a `PnP` device into a device, and passes it
/// to `accept`. Also returns the other adapters.
pub(crate) fn select<T, R: Into<Rejection>>(
    snapshot: &HostSnapshot,
    mut accept: impl FnMut(Device) -> Result<T, R>,
) -> (Vec<T>, Vec<NotAdvertised>) {
    let mut accepted = Vec::new();
    let mut others = Vec::new();
    let mut seen = HashMap::new();
    for adapter in &snapshot.adapters {
        let device =
            check_adapter(adapter, &mut seen).map(|pnp| Device::new(adapter, pnp, &snapshot.host));
        let result = match device {
            Ok(device) => accept(device).map_err(Into::into),
            Err(reason) => Err(Rejection::from(reason)),
        };
        match result {
            Ok(device) => accepted.push(device),
            Err(Rejection { reason, resource }) => others.push(NotAdvertised {
                luid: adapter.luid,
                description: adapter.name().to_owned(),
                reason,
                resource,
            }),
        }
    }
    let unreadable = snapshot.warnings.iter().filter(|w| w.effect == WarningEffect::Unreadable);
    others.extend(unreadable.map(|warning| NotAdvertised {
        luid: warning.luid,
        description: String::new(),
        reason: NotAdvertisedReason::Unreadable(warning.text.clone()),
        resource: None,
    }));
    (accepted, others)
}
