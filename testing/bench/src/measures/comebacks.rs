//! How soon a kubelet that was restarted has its list again.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use kubelet::KUBELET_SOCKET;
use tokio::time::sleep;

use super::{Effort, Group, HoldsFor, RESOURCE, Row, SHARED};
use crate::kubelet_side::Kubelet;
use crate::node::Node;
use crate::program::Program;
use crate::sample::milliseconds;

/// What the design allows, in milliseconds.
const LIMIT: f64 = 1_000.0;

/// What a kubelet that starts removes before it listens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Removes {
    /// Everything in its directory, as it does on Linux.
    AllSockets,
    /// Its own socket, as it does where it cannot tell sockets from files.
    ItsOwn,
}

pub(super) async fn measure(program: &Path, effort: Effort) -> Result<Group> {
    let mut rows = Vec::new();
    for (what, removes) in [
        ("restart, sockets wiped", Removes::AllSockets),
        ("restart, sockets left", Removes::ItsOwn),
    ] {
        let figures = restarts(program, removes, effort.times(40)).await?;
        rows.push(Row::new(what, "ms", figures)?.within(LIMIT, HoldsFor::NearlyAll));
    }
    let figures = lost_sockets(program, effort.times(40)).await?;
    rows.push(Row::new("the plugin's socket deleted", "ms", figures)?);
    Ok(Group {
        title: "Back after a kubelet restart",
        how: "From the moment a new kubelet listens, 1 to 2 s after the old one ended, until it has \
              the list of GPUs; or from the moment the plugin's socket is deleted under a kubelet \
              that goes on, which the look at the sockets each second finds.",
        rows,
    })
}

/// The `n`th pause, spread over a second so that no period of the program is favoured.
fn pause(n: usize) -> Duration {
    let spread = u64::try_from(n).unwrap_or_default() * 377 % 1_000;
    Duration::from_millis(1_000 + spread)
}

async fn restarts(program: &Path, removes: Removes, times: usize) -> Result<Vec<f64>> {
    let node = Node::new(SHARED)?;
    let mut kubelet = Kubelet::start(&node.directory())?;
    let _program = Program::start(program, &node)?;
    kubelet.list(RESOURCE, SHARED.slots).await?;
    let mut figures = Vec::new();
    for n in 0..times {
        drop(kubelet);
        sleep(pause(n)).await;
        remove(&node, |name| removes == Removes::AllSockets || name == KUBELET_SOCKET)?;
        kubelet = Kubelet::start(&node.directory())?;
        let arrival = kubelet.list(RESOURCE, SHARED.slots).await?;
        figures.push(milliseconds(arrival.at.duration_since(kubelet.listening_since)));
    }
    Ok(figures)
}

async fn lost_sockets(program: &Path, times: usize) -> Result<Vec<f64>> {
    let node = Node::new(SHARED)?;
    let mut kubelet = Kubelet::start(&node.directory())?;
    let _program = Program::start(program, &node)?;
    kubelet.list(RESOURCE, SHARED.slots).await?;
    let mut figures = Vec::new();
    for n in 0..times {
        sleep(pause(n)).await;
        remove(&node, |name| name != KUBELET_SOCKET)?;
        let deleted = Instant::now();
        let arrival = kubelet.list(RESOURCE, SHARED.slots).await?;
        figures.push(milliseconds(arrival.at.duration_since(deleted)));
    }
    Ok(figures)
}

/// Removes what is in the kubelet's directory under the names that `goes` picks.
fn remove(node: &Node, goes: impl Fn(&str) -> bool) -> Result<()> {
    for entry in std::fs::read_dir(node.directory())? {
        let entry = entry?;
        if entry.file_name().to_str().is_some_and(&goes) {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}
