//! How long an allocation takes, against a call that does nothing.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use kubelet_double::v1beta1::{AllocateRequest, AllocateResponse, ContainerAllocateRequest};
use prost::Message;

use super::{Effort, Group, HoldsFor, RESOURCE, Row};
use crate::kubelet_side::Kubelet;
use crate::node::{Node, Shape};
use crate::program::Program;
use crate::raw::{Method, RawPlugin};
use crate::sample::{Sample, microseconds};

/// Eight GPUs, from exclusive to shared by 2,048, and from one file to 16.
const SHAPES: [Shape; 5] = [
    Shape { slots: 128, files: 1 },
    Shape { slots: 128, files: 4 },
    Shape { slots: 8, files: 16 },
    Shape { slots: 128, files: 16 },
    Shape { slots: 16_384, files: 16 },
];

/// Pairs of calls in a round; the ratio of each round's medians is one figure.
const PAIRS: usize = 1_000;

/// What an allocation may cost, in empty calls.
const RATIO: f64 = 1.25;

pub(super) async fn measure(program: &Path, effort: Effort) -> Result<Group> {
    let mut rows = Vec::new();
    for shape in SHAPES {
        rows.extend(measure_shape(program, shape, effort.times(20)).await?);
    }
    Ok(Group {
        title: "Allocate against an empty call",
        how: "One connection, one call at a time, `GetDevicePluginOptions` and `Allocate` of one \
              slot by turns, each slot in turn; until the answer's bytes are there. The ratio is \
              that of the medians of 1,000 pairs.",
        rows,
    })
}

async fn measure_shape(program: &Path, shape: Shape, rounds: usize) -> Result<Vec<Row>> {
    let node = Node::new(shape)?;
    let mut kubelet = Kubelet::start(&node.directory())?;
    let _program = Program::start(program, &node)?;
    let arrival = kubelet.list(RESOURCE, shape.slots).await?;
    let mut plugin = RawPlugin::new(arrival.connection);
    let mut slots = arrival.healthy.iter().cycle();
    let (mut empty, mut allocate, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    // The first round warms up and is not counted.
    for round in 0..=rounds {
        let mut this_round = (Vec::new(), Vec::new());
        for slot in slots.by_ref().take(PAIRS) {
            this_round.0.push(time_empty(&mut plugin).await?);
            this_round.1.push(time_allocate(&mut plugin, slot, shape.files).await?);
        }
        if round > 0 {
            let medians = (Sample::new(this_round.0.clone()), Sample::new(this_round.1.clone()));
            let (Some(nothing), Some(something)) = medians else { continue };
            ratios.push(something.median() / nothing.median());
            empty.append(&mut this_round.0);
            allocate.append(&mut this_round.1);
        }
    }
    let files = if shape.files == 1 { "file" } else { "files" };
    let of = |call: &str| format!("{call}, {} slots, {} {files}", shape.slots, shape.files);
    Ok(vec![
        Row::new(of("empty call"), "µs", empty)?,
        Row::new(of("Allocate"), "µs", allocate)?,
        Row::new(of("ratio"), "×", ratios)?.within(RATIO, HoldsFor::Median),
    ])
}

async fn time_empty(plugin: &mut RawPlugin) -> Result<f64> {
    let start = Instant::now();
    plugin.call(Method::GetDevicePluginOptions, Bytes::new()).await?;
    Ok(microseconds(start.elapsed()))
}

async fn time_allocate(plugin: &mut RawPlugin, slot: &str, files: usize) -> Result<f64> {
    let container = ContainerAllocateRequest { devices_ids: vec![slot.to_owned()] };
    let request = AllocateRequest { container_requests: vec![container] }.encode_to_vec().into();
    let start = Instant::now();
    let answer = plugin.call(Method::Allocate, request).await;
    let time = start.elapsed();
    let answer = answer.with_context(|| format!("no allocation of {slot}"))?;
    let [container] = &*AllocateResponse::decode(answer)?.container_responses else {
        bail!("the allocation of {slot} is not for one container");
    };
    let given = (container.devices.len(), container.mounts.len());
    ensure!(given == (1, files), "the allocation of {slot} gives {given:?} devices and files");
    Ok(microseconds(time))
}
