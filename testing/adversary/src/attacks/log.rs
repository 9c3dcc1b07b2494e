//! Calls that write log lines.

use anyhow::Result;
use daemon_bed::Method;

use crate::target::{Target, allocate_request, block_on};

/// Allocates one slot after the other.
pub(super) fn calls(target: &Target) -> Result<u64> {
    block_on(async {
        let mut plugin = target.plugin().await?;
        let mut slots = target.slots.iter().cycle();
        let mut count = 0;
        while target.goes_on() {
            let slots: Vec<String> = slots.by_ref().take(1).cloned().collect();
            plugin.call(Method::Allocate, allocate_request(&slots, 1)).await?;
            count += 1;
        }
        Ok(count)
    })
}
