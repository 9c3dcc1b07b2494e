//! Resets of drivers (TDR): those that were noticed, computed from their counters, and how many of
//! them make a device unhealthy.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::time::Duration;

use crate::{DeviceSet, Luid, Moment, PnpId};

/// The longest time of a [`ResetLimit`].
pub const MAX_RESET_MINUTES: u32 = 1440;

/// How many resets within how many minutes make a device unhealthy.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ResetLimit {
    /// The number of resets.
    pub count: NonZeroU32,
    /// The number of minutes, at most [`MAX_RESET_MINUTES`].
    pub minutes: NonZeroU32,
}

impl ResetLimit {
    /// How long a reset counts.
    #[must_use]
    pub fn window(self) -> Duration {
        Duration::from_mins(self.minutes.get().into())
    }

    /// The resets of a device that count, if they reach the limit.
    pub(crate) fn reached(self, device: &PnpId, resets: &[DeviceResets]) -> Option<u32> {
        let count = resets
            .iter()
            .filter(|resets| resets.device == *device && resets.age < self.window())
            .fold(0_u32, |count, resets| count.saturating_add(resets.count));
        (count >= self.count.get()).then_some(count)
    }
}

/// Resets of a device that were noticed together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceResets {
    /// The device.
    pub device: PnpId,
    /// How many resets.
    pub count: u32,
    /// How long ago they were noticed.
    pub age: Duration,
}

/// The resets that were noticed since the start. When the driver was reset before is not known.
#[derive(Clone, Default, Debug)]
pub struct ResetHistory {
    counters: HashMap<PnpId, (Luid, u64)>,
    noticed: Vec<(PnpId, u32, Moment)>,
}

impl ResetHistory {
    /// Compares the reset counters of adapters, as [`Telemetry`](crate::Telemetry) has them, with
    /// those before. A device of `set` without a counter keeps the last one.
    pub fn record(&mut self, set: &DeviceSet, counters: &[(Luid, u64)], now: Moment) {
        let longest = Duration::from_mins(MAX_RESET_MINUTES.into());
        self.noticed.retain(|(_, _, at)| now.0.saturating_sub(at.0) < longest);
        for entry in set.entries() {
            let (id, luid) = (&entry.device.id, entry.device.luid);
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
                self.noticed.push((id.clone(), u32::try_from(resets).unwrap_or(u32::MAX), now));
            }
        }
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
