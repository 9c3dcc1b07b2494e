//! How long the program takes to start, and how much memory it uses afterwards.

use std::path::Path;
use std::time::Duration;

use crate::minimal_kubelet::MinimalKubelet;
use crate::node::{Node, RESOURCE, Shape};
use crate::process::Program;
use crate::sample::milliseconds;
use anyhow::Result;
use tokio::time::sleep;

use crate::group::{AppliesTo, Effort, Group, MANY, Row, SHARED};

/// Half of the 16.5 MiB that a device plugin in Go needs for the same devices.
const RESIDENT_MIB: f64 = 8.25;

/// How long to wait until the start is completely over.
const SETTLED: Duration = Duration::from_millis(300);

pub(super) async fn measure(program: &Path, effort: Effort) -> Result<Group> {
    let mut rows = Vec::new();
    for shape in [SHARED, MANY] {
        rows.extend(measure_shape(program, shape, effort.times(40)).await?);
    }
    Ok(Group {
        title: "Start and memory",
        how: "From the start of the process until a running kubelet has received and decoded the \
              device list. Memory is `VmRSS` 0.3 s after that, and `VmHWM`, its maximum.",
        rows,
    })
}

async fn measure_shape(program: &Path, shape: Shape, times: usize) -> Result<Vec<Row>> {
    let mut starts = Vec::new();
    let mut resident = Vec::new();
    let mut peak = Vec::new();
    for _ in 0..times {
        let node = Node::new(shape)?;
        let mut kubelet = MinimalKubelet::start(&node.directory())?;
        let program = Program::start(program, &node)?;
        let list = kubelet.list(RESOURCE, shape.replicas).await?;
        starts.push(milliseconds(list.received_at.duration_since(program.started)));
        sleep(SETTLED).await;
        resident.extend(program.resident());
        peak.extend(program.peak());
    }
    let of = |what: &str| format!("{what}, {} replicas", shape.replicas);
    let within = |row: Row, limit, applies_to| match shape {
        SHARED => row.within(limit, applies_to),
        _ => row,
    };
    let start = Row::new(of("start to list"), "ms", starts)?;
    let mut rows = vec![within(start, 10.0, AppliesTo::Median)];
    if !resident.is_empty() {
        let resident = Row::new(of("resident"), "MiB", resident)?;
        rows.push(within(resident, RESIDENT_MIB, AppliesTo::Median));
        rows.push(Row::new(of("resident, peak"), "MiB", peak)?);
    }
    Ok(rows)
}
