//! How long an allocation takes, compared with a call that does nothing.
//!
//! One connection and one call at a time: `GetDevicePluginOptions` and `Allocate` of one replica,
//! with 16 files, alternate. The time ends when the bytes of the answer are received. The ratio is
//! that of the medians of 1,000 pairs.

use std::path::Path;
use std::time::Instant;

use crate::minimal_kubelet::MinimalKubelet;
use crate::node::{FILES, Node, REPLICAS, RESOURCE};
use crate::process::Program;
use crate::raw_client::{Method, RawPlugin};
use crate::sample::{Sample, microseconds};
use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use device_plugin::v1beta1::{AllocateRequest, AllocateResponse, ContainerAllocateRequest};
use prost::Message;

use crate::group::{Effort, Group, Row};

/// The number of pairs of calls in a round. The ratio of a round's medians is one value.
const PAIRS: usize = 1_000;

pub(super) async fn measure(program: &Path, effort: Effort) -> Result<Group> {
    let node = Node::new()?;
    let mut kubelet = MinimalKubelet::start(&node.directory())?;
    let _program = Program::start(program, &node)?;
    let list = kubelet.list(RESOURCE, REPLICAS).await?;
    let mut plugin = RawPlugin::new(list.connection);
    let mut replicas = list.healthy.iter().cycle();
    let mut empty = Vec::new();
    let mut allocate = Vec::new();
    let mut ratios = Vec::new();
    // The first round is a warm-up and is not counted.
    for round in 0..=effort.times(20) {
        let mut this_round = (Vec::new(), Vec::new());
        for replica in replicas.by_ref().take(PAIRS) {
            this_round.0.push(time_empty(&mut plugin).await?);
            this_round.1.push(time_allocate(&mut plugin, replica).await?);
        }
        if round > 0 {
            let medians = (Sample::new(this_round.0.clone()), Sample::new(this_round.1.clone()));
            let (Some(empty_calls), Some(allocations)) = medians else { continue };
            ratios.push(allocations.median() / empty_calls.median());
            empty.append(&mut this_round.0);
            allocate.append(&mut this_round.1);
        }
    }
    Ok(Group {
        title: "Allocate compared with an empty call",
        rows: vec![
            Row::new("empty call", "µs", empty)?,
            Row::new("Allocate", "µs", allocate)?,
            Row::new("ratio", "×", ratios)?,
        ],
    })
}

async fn time_empty(plugin: &mut RawPlugin) -> Result<f64> {
    let start = Instant::now();
    plugin.call(Method::GetDevicePluginOptions, Bytes::new()).await?;
    Ok(microseconds(start.elapsed()))
}

async fn time_allocate(plugin: &mut RawPlugin, replica: &str) -> Result<f64> {
    let container = ContainerAllocateRequest { devices_ids: vec![replica.to_owned()] };
    let request = AllocateRequest { container_requests: vec![container] }.encode_to_vec().into();
    let start = Instant::now();
    let answer = plugin.call(Method::Allocate, request).await;
    let time = start.elapsed();
    let answer = answer.with_context(|| format!("cannot allocate replica {replica}"))?;
    let [container] = &*AllocateResponse::decode(answer)?.container_responses else {
        bail!("the answer for replica {replica} does not have exactly one container");
    };
    let devices = container.devices.len();
    let mounts = container.mounts.len();
    ensure!(
        (devices, mounts) == (1, FILES),
        "the answer for replica {replica} has {devices} devices and {mounts} mounts, expected 1 \
         and {FILES}"
    );
    Ok(microseconds(time))
}
