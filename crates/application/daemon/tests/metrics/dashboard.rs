//! The Grafana dashboard asks only for metrics and labels that exist.

use std::collections::BTreeSet;

use daemon::metrics::METRICS;
use process::metrics::Metric;
use prometheus_client::metrics::MetricType;
use serde_json::Value;

const DASHBOARD: &str =
    include_str!("../../../../../deploy/charts/directx-device-plugin/directx-devices.json");

/// Labels that Prometheus adds to every metric.
const OF_PROMETHEUS: [&str; 2] = ["instance", "job"];

/// Every text in the dashboard below one of the keys.
fn texts<'a>(value: &'a Value, keys: &[&str], found: &mut Vec<&'a str>) {
    match value {
        Value::Object(entries) => {
            for (key, value) in entries {
                match value {
                    Value::String(text) if keys.contains(&key.as_str()) => found.push(text),
                    other => texts(other, keys, found),
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| texts(value, keys, found)),
        _ => {}
    }
}

/// The words of an expression, in their order: names of metrics, labels and functions.
fn words(expression: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    expression.split(move |c| !is_part(c)).filter(|word| !word.is_empty())
}

/// The metric whose series have this name.
fn metric(series: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| match metric.kind {
        MetricType::Histogram => {
            let suffix = series.strip_prefix(metric.name);
            matches!(suffix, Some("_bucket" | "_sum" | "_count"))
        }
        _ => series == metric.name,
    })
}

fn metrics_in(expression: &str) -> Vec<&'static Metric> {
    let names = words(expression).filter(|word| word.starts_with("directx_"));
    names.map(|name| metric(name).unwrap_or_else(|| panic!("no metric `{name}`"))).collect()
}

/// The labels of a selector `{…}`, of `by (…)`, `on (…)` and `group_left (…)`, and of a legend
/// `{{…}}`.
fn labels_in(expression: &str) -> BTreeSet<&str> {
    let mut labels = BTreeSet::new();
    for (open, close) in [("{", '}'), ("by (", ')'), ("on (", ')'), ("group_left (", ')')] {
        for part in expression.split(open).skip(1) {
            let list = part.split(close).next().unwrap_or_default();
            labels.extend(list.split(',').filter_map(|item| words(item).next()));
        }
    }
    labels
}

#[test]
fn every_metric_and_label_of_the_dashboard_exists() {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let mut expressions = Vec::new();
    texts(&dashboard, &["expr", "query", "definition"], &mut expressions);
    let mut used = BTreeSet::new();
    for expression in expressions.into_iter().filter(|text| text.contains("directx_")) {
        let metrics = metrics_in(expression);
        used.extend(metrics.iter().map(|metric| metric.name));
        for label in labels_in(expression).difference(&BTreeSet::from(["le"])) {
            let known = metrics.iter().any(|metric| metric.labels.contains(label));
            assert!(known || OF_PROMETHEUS.contains(label), "label `{label}` in {expression}");
        }
    }
    assert!(used.len() > 12, "{used:?}");
}

#[test]
fn every_panel_shows_only_the_chosen_nodes() {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    for target in panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap()) {
        let expression = target["expr"].as_str().unwrap();
        assert!(expression.contains(r#"~"$node""#), "{expression}");
    }
}

#[test]
fn every_label_of_a_legend_is_in_the_expression_or_the_metric() {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    let mut legends = 0;
    for target in targets {
        let Some(legend) = target["legendFormat"].as_str() else { continue };
        let expression = target["expr"].as_str().unwrap();
        // An aggregation keeps only the labels that it names.
        let is_aggregated = expression.contains("by (");
        for label in labels_in(legend) {
            let has = |metric: &&Metric| metric.labels.contains(&label);
            let is_kept = !is_aggregated || labels_in(expression).contains(label);
            assert!(is_kept && metrics_in(expression).iter().any(has), "{label} in {expression}");
        }
        legends += 1;
    }
    assert!(legends > 8, "{legends}");
}
