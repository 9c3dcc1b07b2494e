//! How long it takes until a change of the adapters reaches the kubelet.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use daemon_bed::{FirstGpu, GPUS, MinimalKubelet, Node, Program, RESOURCE, Shape, milliseconds};
use tokio::time::sleep;

use super::group::{AppliesTo, Effort, Group, MANY, Row, SHARED};

/// The pause between two changes, so that they are not combined into one.
const PAUSE: Duration = Duration::from_millis(200);

/// The budget, in milliseconds.
const LIMIT: f64 = 100.0;

pub(super) async fn measure(program: &Path, effort: Effort) -> Result<Group> {
    let mut rows = Vec::new();
    for shape in [SHARED, MANY] {
        let values = measure_shape(program, shape, effort.times(60)).await?;
        let row = Row::new(format!("change to list, {} slots", shape.slots), "ms", values)?;
        rows.push(row.within(LIMIT, AppliesTo::Percentile99));
    }
    Ok(Group {
        title: "Changes",
        how: "From the rename that replaces the inventory, in which one GPU becomes unhealthy or \
              healthy again, until the kubelet has received and decoded the device list.",
        rows,
    })
}

async fn measure_shape(program: &Path, shape: Shape, times: usize) -> Result<Vec<f64>> {
    let node = Node::new(shape)?;
    let mut kubelet = MinimalKubelet::start(&node.directory())?;
    let _program = Program::start(program, &node)?;
    kubelet.list(RESOURCE, shape.slots).await?;
    let mut values = Vec::new();
    for n in 0..times {
        sleep(PAUSE).await;
        let (first, healthy) = match n % 2 {
            0 => (FirstGpu::Unhealthy, shape.slots - shape.slots / GPUS),
            _ => (FirstGpu::Healthy, shape.slots),
        };
        node.set_host(first)?;
        let changed = Instant::now();
        let list = kubelet.list(RESOURCE, healthy).await?;
        values.push(milliseconds(list.received_at.duration_since(changed)));
    }
    Ok(values)
}
