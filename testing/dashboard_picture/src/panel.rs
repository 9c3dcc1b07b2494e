//! The panels of a dashboard.

use serde_json::Value;

/// How a panel shows its results.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    TimeSeries,
    Stat,
    Table,
}

/// A panel: its place in units of the dashboard, and what it asks Prometheus.
pub(crate) struct Panel<'a> {
    pub(crate) kind: Kind,
    pub(crate) title: &'a str,
    pub(crate) unit: &'a str,
    /// Left, top, width and height.
    pub(crate) place: [u32; 4],
    pub(crate) queries: Vec<Query<'a>>,
    /// The limits of the axis that the dashboard fixes.
    pub(crate) range: (Option<f64>, Option<f64>),
    pub(crate) json: &'a Value,
}

/// One query of a panel.
pub(crate) struct Query<'a> {
    pub(crate) expression: &'a str,
    /// With `{{label}}` for the value of a label.
    pub(crate) legend: &'a str,
    pub(crate) kind: Kind,
}

/// The panels of a dashboard, in its order.
pub(crate) fn list(dashboard: &Value) -> Vec<Panel<'_>> {
    let panels = dashboard["panels"].as_array().into_iter().flatten();
    panels.map(panel).collect()
}

fn panel(json: &Value) -> Panel<'_> {
    let kind = match text(&json["type"]) {
        "stat" => Kind::Stat,
        "table" => Kind::Table,
        _ => Kind::TimeSeries,
    };
    let place = |key: &str| {
        let number = json["gridPos"][key].as_u64().unwrap_or_default();
        u32::try_from(number).unwrap_or_default()
    };
    let defaults = &json["fieldConfig"]["defaults"];
    let targets = json["targets"].as_array().into_iter().flatten();
    Panel {
        kind,
        title: text(&json["title"]),
        unit: text(&defaults["unit"]),
        place: ["x", "y", "w", "h"].map(place),
        queries: targets
            .map(|target| Query {
                expression: text(&target["expr"]),
                legend: text(&target["legendFormat"]),
                kind,
            })
            .collect(),
        range: (defaults["min"].as_f64(), defaults["max"].as_f64()),
        json,
    }
}

/// The text; empty if the value is none.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
