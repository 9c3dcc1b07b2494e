//! What an API server receives from the feature discovery of many nodes. The cluster's tests
//! measure it; here, their figures become a part of the report.

use std::collections::BTreeMap;
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
    /// How many of all nodes were refused, by the status.
    refused: BTreeMap<String, u32>,
    /// When the watch of each node was accepted; negative if none was.
    seconds: Vec<f64>,
    /// The largest number of requests in a second.
    busiest: u32,
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
    let most = start.requests.iter().copied().max().map(f64::from);
    let requests = "requests";
    let rows = vec![
        Row::new(
            format!("{nodes} starts, one every {pause} ms: requests of a node"),
            requests,
            start.all(),
        )?
        .within(4.0, AppliesTo::Percentile99),
        Row::new("starts: most requests of a node", requests, most.into_iter().collect())?
            .within(4.0, AppliesTo::Median),
        Row::new("starts: refused requests of all nodes", requests, start.refused())?,
        Row::new("starts: requests in the busiest second", requests, vec![start.busiest.into()])?,
        Row::new("starts: from the first watched node to each", "s", start.spread())?,
        Row::new(
            format!("{steady_seconds:.0} s of steady state, before the first heartbeats: writes"),
            requests,
            steady.writes(),
        )?
        .within(1.0, AppliesTo::Median),
        Row::new(
            "steady state: reads",
            requests,
            vec![f64::from(steady.total()) - f64::from(steady.writes)],
        )?,
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
        Row::new("outage: refused requests of all nodes", requests, outage.refused())?,
        Row::new("outage: requests in the busiest second", requests, vec![outage.busiest.into()])?,
        Row::new("outage: from the first watched node to each", "s", outage.spread())?,
    ];
    Ok(Group { title: "API requests of many nodes", how: HOW, rows })
}

const HOW: &str = "\
The programs `directx-feature-discovery` of 1,000 nodes in one process, each with its own account and connections, and an API server of
Kubernetes 1.37 on the same machine, whose audit log counts the requests, also those that it refuses. The programs start one after another;
the controller of DaemonSets starts 20 pods in a second. In the steady state, another client changes every node object three times. It
ends before the first heartbeats: each node writes its condition every four to five minutes, which are 3.7 requests per second for 1,000 nodes. Then
the programs are restarted one after another. In the outage, the API server is killed and started again. A starting API server accepts
connections some seconds before it answers, and refuses requests until it knows the roles.";

impl Phase {
    fn all(&self) -> Vec<f64> {
        self.requests.iter().copied().map(f64::from).collect()
    }

    fn total(&self) -> u32 {
        self.requests.iter().sum()
    }

    fn writes(&self) -> Vec<f64> {
        vec![self.writes.into()]
    }

    fn refused(&self) -> Vec<f64> {
        vec![self.refused.values().copied().sum::<u32>().into()]
    }

    /// For each node, how long after the first one its watch was accepted.
    fn spread(&self) -> Vec<f64> {
        let accepted = || self.seconds.iter().copied().filter(|seconds| *seconds >= 0.0);
        let first = accepted().fold(f64::INFINITY, f64::min);
        accepted().map(|seconds| seconds - first).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_of_the_cluster_become_rows_with_budgets() {
        let phase = r#"{"requests": [3, 4], "writes": 5, "refused": {"429": 1},
            "seconds": [7.5, -1, 9], "busiest": 6}"#;
        let text = format!(
            r#"{{"start": {phase}, "steady": {phase}, "steadySeconds": 180.2, "restart": {phase},
            "startPauseMilliseconds": 20, "outage": {phase}, "outageSeconds": 60}}"#
        );
        let group = group(&serde_json::from_str(&text).unwrap()).unwrap();
        let found = |what: &str| group.rows.iter().find(|row| row.what.contains(what)).unwrap();
        assert_eq!(found("2 starts, one").sample.count(), 2);
        assert!(found("most requests").sample.median() >= 4.0);
        assert!(found("180 s of steady state, before the first heartbeats").sample.median() >= 5.0);
        let spread = &found("outage: from the first watched").sample;
        assert_eq!((spread.count(), spread.percentile(100)), (2, 1.5));
        assert!(measure(Path::new("/nonexistent")).is_err());
    }
}
