//! How soon a kubelet knows what the source of adapters knows.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::time::sleep;

use super::{Effort, Group, HoldsFor, MANY, RESOURCE, Row, SHARED};
use crate::kubelet_side::Kubelet;
use crate::node::{FirstGpu, GPUS, Node, Shape};
use crate::program::Program;
use crate::sample::milliseconds;

/// Between two changes, so that none is taken for part of the one before.
const APART: Duration = Duration::from_millis(200);

/// What the design allows, in milliseconds.
const LIMIT: f64 = 100.0;

pub(super) async fn measure(program: &Path, effort: Effort) -> Result<Group> {
    let mut rows = Vec::new();
    for shape in [SHARED, MANY] {
        let figures = measure_shape(program, shape, effort.times(60)).await?;
        let row = Row::new(format!("change to list, {} slots", shape.slots), "ms", figures)?;
        rows.push(row.within(LIMIT, HoldsFor::NearlyAll));
    }
    Ok(Group {
        title: "Changes",
        how: "From the rename that replaces the inventory, with one GPU stopped or working again, \
              until the kubelet has the list, decoded.",
        rows,
    })
}

async fn measure_shape(program: &Path, shape: Shape, times: usize) -> Result<Vec<f64>> {
    let node = Node::new(shape)?;
    let mut kubelet = Kubelet::start(&node.directory())?;
    let _program = Program::start(program, &node)?;
    kubelet.list(RESOURCE, shape.slots).await?;
    let mut figures = Vec::new();
    for n in 0..times {
        sleep(APART).await;
        let (first, healthy) = match n % 2 {
            0 => (FirstGpu::Stopped, shape.slots - shape.slots / GPUS),
            _ => (FirstGpu::Works, shape.slots),
        };
        node.set_host(first)?;
        let changed = Instant::now();
        let arrival = kubelet.list(RESOURCE, healthy).await?;
        figures.push(milliseconds(arrival.at.duration_since(changed)));
    }
    Ok(figures)
}
