//! How long it takes until a restarted kubelet has the device list again.
//!
//! Measures the time from the moment a new kubelet listens, 1 to 2 s after the old one stopped,
//! until it has the device list.

use std::path::Path;
use std::time::Duration;

use crate::minimal_kubelet::MinimalKubelet;
use crate::node::{Node, REPLICAS, RESOURCE};
use crate::process::Program;
use crate::sample::milliseconds;
use anyhow::Result;
use device_plugin::KUBELET_SOCKET;
use tokio::time::sleep;

use crate::group::{AppliesTo, Effort, Group, Row};

/// The budget, in milliseconds.
const LIMIT: f64 = 300.0;

/// What a kubelet removes before it listens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Cleanup {
    /// All sockets in its directory, as on Linux.
    AllSockets,
    /// Only its own socket, as on systems where it cannot distinguish sockets from files.
    OwnSocket,
}

pub(super) async fn measure(program: &Path, effort: Effort) -> Result<Group> {
    let mut rows = Vec::new();
    for (what, cleanup) in [
        ("restart, sockets removed", Cleanup::AllSockets),
        ("restart, sockets kept", Cleanup::OwnSocket),
    ] {
        let values = restarts(program, cleanup, effort.times(40)).await?;
        rows.push(Row::new(what, "ms", values)?.within(LIMIT, AppliesTo::Percentile99));
    }
    Ok(Group { title: "Registration after a kubelet restart", rows })
}

/// The `n`th pause. The pauses are spread over a second, so that the results do not depend on the
/// period of the program's checks.
fn pause(n: usize) -> Duration {
    let spread = u64::try_from(n).unwrap_or_default() * 377 % 1_000;
    Duration::from_millis(1_000 + spread)
}

async fn restarts(program: &Path, cleanup: Cleanup, times: usize) -> Result<Vec<f64>> {
    let node = Node::new()?;
    let mut kubelet = MinimalKubelet::start(&node.directory())?;
    let _program = Program::start(program, &node)?;
    kubelet.list(RESOURCE, REPLICAS).await?;
    let mut values = Vec::new();
    for n in 0..times {
        drop(kubelet);
        sleep(pause(n)).await;
        remove(&node, |name| cleanup == Cleanup::AllSockets || name == KUBELET_SOCKET)?;
        kubelet = MinimalKubelet::start(&node.directory())?;
        let list = kubelet.list(RESOURCE, REPLICAS).await?;
        values.push(milliseconds(list.received_at.duration_since(kubelet.listening_since)));
    }
    Ok(values)
}

/// Removes the files in the kubelet's directory whose names `matches` accepts. Kubelets remove no
/// folder, such as the folder of the locks.
fn remove(node: &Node, matches: impl Fn(&str) -> bool) -> Result<()> {
    for entry in std::fs::read_dir(node.directory())? {
        let entry = entry?;
        let is_file = !entry.file_type()?.is_dir();
        if is_file && entry.file_name().to_str().is_some_and(&matches) {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}
