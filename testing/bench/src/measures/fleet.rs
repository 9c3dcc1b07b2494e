//! What an API server receives from the feature discovery of many nodes. The cluster's tests
//! measure it; here, their figures become a part of the report.
//!
//! The programs `directx-feature-discovery` of 1,000 nodes in one process, each with its own
//! account and connections, and an API server of Kubernetes 1.37 on the same machine, whose audit
//! log counts the requests. The programs start one after another. In the steady state, another
//! client changes every node object three times; it ends before the first heartbeats. Then the
//! programs are restarted, and the API server is killed and started again.

use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::group::{AppliesTo, Group, Row};

/// The figures of `testing/kubernetes/cluster`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Figures {
    start: Phase,
    steady: Phase,
    steady_seconds: f64,
    restart: Phase,
    start_pause_milliseconds: f64,
    outage: Phase,
    outage_seconds: f64,
}

/// What the API server has received from the programs of all nodes in some time.
#[derive(Deserialize)]
struct Phase {
    /// The number of each node.
    requests: Vec<u32>,
    writes: u32,
}

pub(super) fn measure(file: &Path) -> Result<Group> {
    let text = std::fs::read(file).with_context(|| format!("cannot read `{}`", file.display()))?;
    let figures: Figures = serde_json::from_slice(&text)
        .with_context(|| format!("`{}` has other figures than expected", file.display()))?;
    group(&figures)
}

fn group(figures: &Figures) -> Result<Group> {
    let Figures { start, steady, restart, outage, .. } = figures;
    let nodes = start.requests.len();
    let pause = figures.start_pause_milliseconds;
    let steady_seconds = figures.steady_seconds;
    let outage_seconds = figures.outage_seconds;
    let requests = "requests";
    let rows = vec![
        Row::new(
            format!("{nodes} starts, one every {pause} ms: requests of a node"),
            requests,
            start.all(),
        )?
        .within(4.0, AppliesTo::Percentile99),
        Row::new(
            format!("{steady_seconds:.0} s of steady state, before the first heartbeats: writes"),
            requests,
            steady.writes(),
        )?
        .within(1.0, AppliesTo::Median),
        Row::new(
            format!("restarts, one every {pause} ms: requests of a node"),
            requests,
            restart.all(),
        )?
        .within(4.0, AppliesTo::Percentile99),
        Row::new("restarts: writes", requests, restart.writes())?.within(1.0, AppliesTo::Median),
        Row::new(
            format!("outage of {outage_seconds:.0} s: requests of a node"),
            requests,
            outage.all(),
        )?
        .within(4.0, AppliesTo::Percentile99),
        Row::new("outage: writes", requests, outage.writes())?.within(1.0, AppliesTo::Median),
    ];
    Ok(Group { title: "API requests of many nodes", rows })
}

impl Phase {
    fn all(&self) -> Vec<f64> {
        self.requests.iter().copied().map(f64::from).collect()
    }

    fn writes(&self) -> Vec<f64> {
        vec![self.writes.into()]
    }
}
