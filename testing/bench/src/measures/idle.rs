//! How often the program wakes up while idle.
//!
//! Counts the voluntary context switches of all threads (`/proc/PID/task/*/status`) over 10 s,
//! while a kubelet has the device lists and nothing changes. The sockets and files are checked once
//! a second.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::minimal_kubelet::MinimalKubelet;
use crate::node::{Node, REPLICAS, RESOURCE};
use crate::process::Program;
use anyhow::Result;
use tokio::time::sleep;

use crate::group::{Effort, Group, Row};

/// How long to wait until the registration is completely over.
const SETTLED: Duration = Duration::from_secs(2);

pub(super) async fn measure(program: &Path, effort: Effort) -> Result<Group> {
    let node = Node::new()?;
    let mut kubelet = MinimalKubelet::start(&node.directory())?;
    let program = Program::start(program, &node)?;
    kubelet.list(RESOURCE, REPLICAS).await?;
    sleep(SETTLED).await;
    let period = match effort {
        Effort::Full => Duration::from_secs(10),
        Effort::Quick => Duration::from_secs(2),
    };
    let mut values = Vec::new();
    for _ in 0..effort.times(4) {
        let start = Instant::now();
        let before = program.wake_ups();
        sleep(period).await;
        if let (Some(before), Some(after)) = (before, program.wake_ups()) {
            let count = u32::try_from(after - before)?;
            values.push(f64::from(count) / start.elapsed().as_secs_f64());
        }
    }
    let rows = match values.as_slice() {
        [] => Vec::new(),
        _ => vec![Row::new("wake-ups", "/s", values)?],
    };
    Ok(Group { title: "Idle", rows })
}
