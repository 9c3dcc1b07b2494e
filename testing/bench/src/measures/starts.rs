//! How long a start takes, and how much memory the program has then.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use tokio::time::sleep;

use super::{Effort, Group, HoldsFor, MANY, RESOURCE, Row, SHARED};
use crate::kubelet_side::Kubelet;
use crate::node::{Node, Shape};
use crate::program::Program;
use crate::sample::milliseconds;

/// After which the start is over in every respect.
const SETTLED: Duration = Duration::from_millis(300);

pub(super) async fn measure(program: &Path, effort: Effort) -> Result<Group> {
    let mut rows = Vec::new();
    for (shape, memory) in [(SHARED, 6.0), (MANY, 14.0)] {
        rows.extend(measure_shape(program, shape, memory, effort.times(40)).await?);
    }
    Ok(Group {
        title: "Start and memory",
        how: "From the start of the process until a kubelet that waits for it has its list of \
              GPUs, decoded. Memory is `VmRSS` 0.3 s after that, and `VmHWM`, the most it ever was.",
        rows,
    })
}

async fn measure_shape(
    program: &Path,
    shape: Shape,
    memory: f64,
    times: usize,
) -> Result<Vec<Row>> {
    let (mut starts, mut resident, mut peak) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..times {
        let node = Node::new(shape)?;
        let mut kubelet = Kubelet::start(&node.directory())?;
        let program = Program::start(program, &node)?;
        let arrival = kubelet.list(RESOURCE, shape.slots).await?;
        starts.push(milliseconds(arrival.at.duration_since(program.started)));
        sleep(SETTLED).await;
        resident.extend(program.resident());
        peak.extend(program.peak());
    }
    let of = |what: &str| format!("{what}, {} slots", shape.slots);
    let start = Row::new(of("start to list"), "ms", starts)?;
    let mut rows = vec![match shape {
        SHARED => start.within(10.0, HoldsFor::Median),
        _ => start,
    }];
    if !resident.is_empty() {
        let resident = Row::new(of("resident"), "MiB", resident)?;
        rows.push(resident.within(memory, HoldsFor::NearlyAll));
        rows.push(Row::new(of("resident, peak"), "MiB", peak)?);
    }
    Ok(rows)
}
