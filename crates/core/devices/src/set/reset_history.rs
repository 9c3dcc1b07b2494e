//! The resets of drivers (TDR) that were noticed, computed from their counters.

use std::collections::HashMap;
use std::time::Duration;

use crate::{DeviceResets, DeviceSet, Luid, MAX_RESET_MINUTES, Moment, PnpId};

/// The resets that were noticed since the start. When the driver was reset before is not known.
#[derive(Clone, Default, Debug)]
pub struct ResetHistory {
    counters: HashMap<PnpId, (Luid, u64)>,
    noticed: Vec<(PnpId, u32, Moment)>,
}

impl ResetHistory {
    /// Compares the reset counters of adapters, as [`Telemetry`](crate::Telemetry) has them, with
    /// those before. A device of `set` without a counter keeps the last one. Returns the devices
    /// that were reset, and how often.
    pub fn record(
        &mut self,
        set: &DeviceSet,
        counters: &[(Luid, u64)],
        now: Moment,
    ) -> Vec<(PnpId, u32)> {
        let longest = Duration::from_mins(MAX_RESET_MINUTES.into());
        self.noticed.retain(|(_, _, at)| now.0.saturating_sub(at.0) < longest);
        let mut new = Vec::new();
        for entry in set.entries() {
            let id = &entry.device.id;
            let luid = entry.device.luid;
            let Some(&(_, counter)) = counters.iter().find(|(other, _)| *other == luid) else {
                continue;
            };
            let resets = match self.counters.insert(id.clone(), (luid, counter)) {
                None => 0,
                Some((before, earlier)) if before == luid && earlier <= counter => {
                    counter - earlier
                }
                // The adapter was created anew, and its counter began at 0.
                Some(_) => counter,
            };
            if resets > 0 {
                new.push((id.clone(), u32::try_from(resets).unwrap_or(u32::MAX)));
            }
        }
        self.noticed.extend(new.iter().map(|(id, resets)| (id.clone(), *resets, now)));
        new
    }

    /// The resets with their age, for [`HostSnapshot::resets`](crate::HostSnapshot::resets).
    #[must_use]
    pub fn at(&self, now: Moment) -> Vec<DeviceResets> {
        self.noticed
            .iter()
            .map(|(device, count, at)| DeviceResets {
                device: device.clone(),
                count: *count,
                age: now.0.saturating_sub(at.0),
            })
            .collect()
    }
}
