//! How long the program takes to start, and how much memory it uses afterwards.
//!
//! Measures the time from the start of the process until a running kubelet has received and decoded
//! the device list. Memory is `VmRSS` 0.3 s after that.

use std::path::Path;
use std::time::Duration;

use crate::minimal_kubelet::MinimalKubelet;
use crate::node::{Node, REPLICAS, RESOURCE};
use crate::process::Program;
use crate::sample::milliseconds;
use anyhow::Result;
use tokio::time::sleep;

use crate::group::{AppliesTo, Effort, Group, Row};

/// Half of the 16.5 MiB that a device plugin in Go needs for the same devices.
const RESIDENT_MIB: f64 = 8.25;

/// How long to wait until the start is completely over.
const SETTLED: Duration = Duration::from_millis(300);

pub(super) async fn measure(program: &Path, effort: Effort) -> Result<Group> {
    let mut starts = Vec::new();
    let mut resident = Vec::new();
    for _ in 0..effort.times(40) {
        let node = Node::new()?;
        let mut kubelet = MinimalKubelet::start(&node.directory())?;
        let program = Program::start(program, &node)?;
        let list = kubelet.list(RESOURCE, REPLICAS).await?;
        starts.push(milliseconds(list.received_at.duration_since(program.started)));
        sleep(SETTLED).await;
        resident.extend(program.resident());
    }
    let mut rows = vec![Row::new("start to list", "ms", starts)?.within(10.0, AppliesTo::Median)];
    if !resident.is_empty() {
        let resident = Row::new("resident", "MiB", resident)?;
        rows.push(resident.within(RESIDENT_MIB, AppliesTo::Median));
    }
    Ok(Group { title: "Start and memory", rows })
}
