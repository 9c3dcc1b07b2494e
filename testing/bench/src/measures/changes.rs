//! How long it takes until a change of the adapters reaches the kubelet.
//!
//! Measures the time from the rename that replaces the inventory, in which one GPU becomes
//! unhealthy or healthy again, until the kubelet has received and decoded the device list. The
//! plugin looks at the file once a second.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::minimal_kubelet::MinimalKubelet;
use crate::node::{FirstGpu, GPUS, Node, REPLICAS, RESOURCE};
use crate::process::Program;
use crate::sample::milliseconds;
use anyhow::Result;
use tokio::time::sleep;

use crate::group::{AppliesTo, Effort, Group, Row};

/// The shortest pause between two changes, so that they are not combined into one.
const PAUSE_MS: u64 = 200;

/// The pauses differ by this, so that changes come at any time between two checks of the file.
const PHASE_MS: u64 = 370;

/// The budget, in milliseconds: 100 after the next check of the file.
const LIMIT: f64 = 1100.0;

pub(super) async fn measure(program: &Path, effort: Effort) -> Result<Group> {
    let node = Node::new()?;
    let mut kubelet = MinimalKubelet::start(&node.directory())?;
    let _program = Program::start(program, &node)?;
    kubelet.list(RESOURCE, REPLICAS).await?;
    let mut values = Vec::new();
    for n in 0..effort.times(20) {
        sleep(Duration::from_millis(PAUSE_MS + n as u64 * PHASE_MS % 1000)).await;
        let (first, healthy) = match n % 2 {
            0 => (FirstGpu::Unhealthy, REPLICAS - REPLICAS / GPUS),
            _ => (FirstGpu::Healthy, REPLICAS),
        };
        node.set_host(first)?;
        let changed = Instant::now();
        let list = kubelet.list(RESOURCE, healthy).await?;
        values.push(milliseconds(list.received_at.duration_since(changed)));
    }
    Ok(Group {
        title: "Changes",
        rows: vec![
            Row::new("change to list", "ms", values)?.within(LIMIT, AppliesTo::Percentile99),
        ],
    })
}
