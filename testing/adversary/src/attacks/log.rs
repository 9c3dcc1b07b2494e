//! Calls that write log lines.

use anyhow::Result;
use daemon_bed::Method;

use super::calls::preferred;
use crate::target::{Target, block_on};

/// How many replicas a call names. Its line in the debug log is longer than 10 KiB, so some calls
/// fill a pipe, which holds 64 KiB.
const REPLICAS: usize = 256;

/// How many calls at least fill the pipe.
const CALLS: u64 = 20;

/// Asks for preferred allocations.
pub(super) fn calls(target: &Target) -> Result<u64> {
    block_on(async {
        let mut plugin = target.plugin().await?;
        let request = preferred(&target.replicas[..REPLICAS], REPLICAS);
        let mut count = 0;
        while target.goes_on(count) || count < CALLS {
            plugin.call(Method::GetPreferredAllocation, request.clone()).await?;
            count += 1;
        }
        Ok(count)
    })
}
