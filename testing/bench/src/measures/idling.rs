//! How often the program wakes up when nothing happens.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::time::sleep;

use super::{Effort, Group, HoldsFor, RESOURCE, Row, SHARED};
use crate::kubelet_side::Kubelet;
use crate::node::Node;
use crate::program::Program;

/// How long a registration takes to be a thing of the past.
const SETTLED: Duration = Duration::from_secs(2);

/// One look a second at the sockets, for which tokio wakes up 2.25 times (see
/// [`measure`]), and 10 % for a period that does not begin with a look.
const LIMIT: f64 = 2.5;

pub(super) async fn measure(program: &Path, effort: Effort) -> Result<Group> {
    let node = Node::new(SHARED)?;
    let mut kubelet = Kubelet::start(&node.directory())?;
    let program = Program::start(program, &node)?;
    kubelet.list(RESOURCE, SHARED.slots).await?;
    sleep(SETTLED).await;
    let period = match effort {
        Effort::Full => Duration::from_secs(10),
        Effort::Quick => Duration::from_secs(2),
    };
    let mut figures = Vec::new();
    for _ in 0..effort.times(4) {
        let (start, before) = (Instant::now(), program.wake_ups());
        sleep(period).await;
        if let (Some(before), Some(after)) = (before, program.wake_ups()) {
            let count = u32::try_from(after - before)?;
            figures.push(f64::from(count) / start.elapsed().as_secs_f64());
        }
    }
    let rows = match figures.as_slice() {
        [] => Vec::new(),
        _ => vec![Row::new("wake-ups", "/s", figures)?.within(LIMIT, HoldsFor::Median)],
    };
    Ok(Group {
        title: "Idle",
        how: "Voluntary context switches of all threads (`/proc/PID/task/*/status`) over 10 s, \
              while a kubelet has the lists and nothing changes. The look at the sockets that is \
              due each second wakes tokio 2.25 times: a timer of more than 64 ms is first brought \
              down to the level of milliseconds, and every 4 s to the level above that.",
        rows,
    })
}
