//! How long it takes until a change of the adapters or of the configuration reaches the kubelet.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::minimal_kubelet::MinimalKubelet;
use crate::node::{FirstGpu, GPUS, Node, RESOURCE, Shape};
use crate::process::Program;
use crate::sample::milliseconds;
use anyhow::Result;
use tokio::time::sleep;

use crate::group::{AppliesTo, Effort, Group, MANY, Row, SHARED};

/// The shortest pause between two changes, so that they are not combined into one.
const PAUSE_MS: u64 = 200;

/// The pauses differ by this, so that changes come at any time between two checks of the file.
const PHASE_MS: u64 = 370;

/// The budget, in milliseconds: 100 after the next check of the file.
const LIMIT: f64 = 1100.0;

/// What changes.
#[derive(Clone, Copy)]
enum Changed {
    /// A GPU becomes unhealthy or healthy again.
    Host,
    /// Each GPU gets one replica less, or one more.
    Configuration,
}

pub(super) async fn measure(program: &Path, effort: Effort) -> Result<Group> {
    let mut rows = Vec::new();
    for (changed, name) in
        [(Changed::Host, "change to list"), (Changed::Configuration, "configuration to list")]
    {
        for shape in [SHARED, MANY] {
            let values = measure_shape(program, shape, changed, effort.times(20)).await?;
            let row = Row::new(format!("{name}, {} replicas", shape.replicas), "ms", values)?;
            rows.push(row.within(LIMIT, AppliesTo::Percentile99));
        }
    }
    Ok(Group {
        title: "Changes",
        how: "From the rename that replaces the inventory, in which one GPU becomes unhealthy or \
              healthy again, or the configuration, which changes the number of replicas, until \
              the kubelet has received and decoded the device list. The plugin looks at the files \
              once a second.",
        rows,
    })
}

async fn measure_shape(
    program: &Path,
    shape: Shape,
    changed: Changed,
    times: usize,
) -> Result<Vec<f64>> {
    let node = Node::new(shape)?;
    let mut kubelet = MinimalKubelet::start(&node.directory())?;
    let _program = Program::start(program, &node)?;
    kubelet.list(RESOURCE, shape.replicas).await?;
    let mut values = Vec::new();
    for n in 0..times {
        sleep(Duration::from_millis(PAUSE_MS + n as u64 * PHASE_MS % 1000)).await;
        let healthy = change(&node, shape, changed, n)?;
        let changed = Instant::now();
        let list = kubelet.list(RESOURCE, healthy).await?;
        values.push(milliseconds(list.received_at.duration_since(changed)));
    }
    Ok(values)
}

/// Makes a change, and in every second round the reverse one. Returns how many replicas are healthy
/// then.
fn change(node: &Node, shape: Shape, changed: Changed, round: usize) -> Result<usize> {
    let per_gpu = shape.replicas / GPUS;
    match (changed, round % 2) {
        (Changed::Host, 0) => node.set_host(FirstGpu::Unhealthy)?,
        (Changed::Host, _) => node.set_host(FirstGpu::Healthy)?,
        (Changed::Configuration, 0) => node.set_replicas(per_gpu - 1)?,
        (Changed::Configuration, _) => node.set_replicas(per_gpu)?,
    }
    Ok(match (changed, round % 2) {
        (Changed::Host, 0) => shape.replicas - per_gpu,
        (Changed::Configuration, 0) => shape.replicas - GPUS,
        (Changed::Host | Changed::Configuration, _) => shape.replicas,
    })
}
