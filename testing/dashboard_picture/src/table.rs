//! Draws tables.

use serde_json::Value;

use crate::panel::Panel;
use crate::prometheus::Series;
use crate::shapes::{CHARACTER, Frame, LINE, label};

/// The rows of a panel below their header.
pub(crate) fn table(panel: &Panel<'_>, results: &[Vec<Series>], frame: Frame) -> String {
    let columns = columns(panel);
    let header = columns.iter().map(|name| column_title(panel, name)).collect();
    let row = |series| columns.iter().map(|name| cell(panel, series, name)).collect();
    let rows = results.iter().flatten().map(row);
    let lines: Vec<Vec<String>> = std::iter::once(header).chain(rows).collect();
    let mut svg = String::new();
    let mut x = frame.left + 12.0;
    for column in 0..columns.len() {
        let longest = lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
        for (number, line) in (0_u32..).zip(&lines) {
            let y = frame.top + 42.0 + f64::from(number) * (LINE + 5.0);
            svg += &label(x, y, if number == 0 { "s t" } else { "s" }, &line[column]);
        }
        x += 16.0 + CHARACTER * f64::from(u32::try_from(longest).unwrap_or(u32::MAX));
    }
    svg
}

/// How the dashboard arranges the columns.
fn arrangement<'a>(panel: &Panel<'a>) -> &'a Value {
    &panel.json["transformations"][0]["options"]
}

/// The names of the columns in the order of the dashboard, without those that it hides.
fn columns<'a>(panel: &Panel<'a>) -> Vec<&'a str> {
    let options = arrangement(panel);
    let indexes = options["indexByName"].as_object().into_iter().flatten();
    let shown = indexes.filter(|(name, _)| options["excludeByName"][*name] != true);
    let mut columns: Vec<(u64, &str)> =
        shown.map(|(name, index)| (index.as_u64().unwrap_or(u64::MAX), name.as_str())).collect();
    columns.sort_unstable();
    columns.into_iter().map(|(_, name)| name).collect()
}

fn column_title(panel: &Panel<'_>, name: &str) -> String {
    let title = match name {
        "Value" => value_property(panel, "displayName"),
        name => &arrangement(panel)["renameByName"][name],
    };
    title.as_str().unwrap_or(name).to_owned()
}

fn cell(panel: &Panel<'_>, series: &Series, name: &str) -> String {
    if name != "Value" {
        return series.labels.get(name).cloned().unwrap_or_default();
    }
    let value = series.values.last().map_or(f64::NAN, |value| value.1).to_string();
    let mapped = &value_property(panel, "mappings")[0]["options"][value.as_str()]["text"];
    mapped.as_str().map_or(value, str::to_owned)
}

/// A property that the dashboard sets for the values of a table.
fn value_property<'a>(panel: &Panel<'a>, id: &str) -> &'a Value {
    let overrides = panel.json["fieldConfig"]["overrides"].as_array().into_iter().flatten();
    let mut properties = overrides.filter_map(|o| o["properties"].as_array()).flatten();
    properties.find(|property| property["id"] == id).map_or(&Value::Null, |found| &found["value"])
}
