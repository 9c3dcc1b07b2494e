//! Draws the Grafana dashboard of `deploy/grafana` from scrapes, without Grafana.
//!
//! The scrapes are texts of the product's own `metrics` crate for a recorded host with made-up
//! values. Prometheus stores them and evaluates every expression of the dashboard. This program
//! draws the results at the places that the dashboard gives its panels. It needs `prometheus` and
//! `promtool` 2.42 or newer in `PATH`, and nothing else uses it.
//!
//! `cargo run -p dashboard_picture -- docs/dashboard.svg`

mod panel;
mod plot;
mod prometheus;
mod scrapes;
mod shapes;
mod svg;
mod table;

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::prometheus::Prometheus;

const DASHBOARD: &str = include_str!("../../../deploy/grafana/directx-devices.json");

fn main() -> Result<()> {
    let output = std::env::args_os().nth(1).context("usage: dashboard_picture OUTPUT.svg")?;
    let dashboard: Value = serde_json::from_str(DASHBOARD)?;
    let prometheus = Prometheus::with(&scrapes::recording()?)?;
    let mut panels = Vec::new();
    for panel in panel::list(&dashboard) {
        let results = panel.queries.iter().map(|query| prometheus.evaluate(query));
        let results = results.collect::<Result<Vec<_>>>();
        panels.push(svg::panel(&panel, &results.with_context(|| panel.title.to_owned())?));
    }
    let path = Path::new(&output);
    std::fs::write(path, svg::document(&dashboard, &panels))
        .with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_picture_of_the_documentation_has_every_panel() {
        let picture = include_str!("../../../docs/dashboard.svg");
        let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
        let panels = panel::list(&dashboard);
        assert!(panels.len() > 10);
        for panel in panels {
            assert!(picture.contains(&format!(">{}<", panel.title)), "{}", panel.title);
        }
    }
}
