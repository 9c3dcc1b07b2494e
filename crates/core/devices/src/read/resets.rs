//! Resets of drivers (TDR), and how many of them make a device unhealthy.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::PnpId;

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

    /// Whether the resets of a device that count reach the limit.
    pub(crate) fn is_reached(self, device: &PnpId, resets: &[DeviceResets]) -> bool {
        let count = resets
            .iter()
            .filter(|resets| resets.device == *device && resets.age < self.window())
            .fold(0_u32, |count, resets| count.saturating_add(resets.count));
        count >= self.count.get()
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
