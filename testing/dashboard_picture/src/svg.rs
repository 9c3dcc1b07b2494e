//! Draws panels as SVG, at the places that the dashboard gives them.

use serde_json::Value;

use crate::panel::{Kind, Panel, text};
use crate::plot::time_series;
use crate::prometheus::Series;
use crate::shapes::{Frame, format_value, label};
use crate::table::table;

/// The size of the dashboard's units in pixels.
const UNIT: [f64; 2] = [50.0, 34.0];
const HEADER: f64 = 50.0;
const MARGIN: f64 = 4.0;
/// The columns of a dashboard.
const COLUMNS: f64 = 24.0;

const STYLE: &str = "text{font:12px sans-serif;fill:#222}.t{font-weight:bold}.s{font-size:10px;\
                     fill:#555}.b{font-size:32px}polyline{fill:none;stroke-width:1.5}";

/// A panel with its results, one for each query, and the height where it ends.
pub(crate) fn panel(panel: &Panel<'_>, results: &[Vec<Series>]) -> (String, f64) {
    let [x, y, w, h] = panel.place.map(f64::from);
    let frame = Frame {
        left: x * UNIT[0] + MARGIN,
        top: y * UNIT[1] + MARGIN + HEADER,
        width: w * UNIT[0] - 2.0 * MARGIN,
        height: h * UNIT[1] - 2.0 * MARGIN,
    };
    let Frame { left, top, width, height } = frame;
    let mut svg = format!(
        "<rect x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" rx=\"3\" \
         fill=\"#fff\" stroke=\"#d0d0d0\"/>\n"
    );
    svg += &label(left + 10.0, top + 18.0, "t", panel.title);
    svg += &match panel.kind {
        Kind::TimeSeries => time_series(panel, results, frame),
        Kind::Stat => stat(panel, results, frame),
        Kind::Table => table(panel, results, frame),
    };
    (svg, top + height)
}

/// The whole picture.
pub(crate) fn document(dashboard: &Value, panels: &[(String, f64)]) -> String {
    let height = panels.iter().map(|(_, end)| *end).fold(HEADER, f64::max) + MARGIN;
    let width = COLUMNS * UNIT[0];
    let title = label(14.0, 28.0, "t", text(&dashboard["title"]));
    let note = "drawn from made-up scrapes by testing/dashboard_picture, not by Grafana";
    let note = label(14.0, 44.0, "s", note);
    let panels: String = panels.iter().map(|(svg, _)| svg.as_str()).collect();
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\">\n\
         <style>{STYLE}</style>\n<rect width=\"{width}\" height=\"{height}\" fill=\"#f4f5f5\"/>\n\
         {title}{note}{panels}</svg>\n"
    )
}

fn stat(panel: &Panel<'_>, results: &[Vec<Series>], frame: Frame) -> String {
    let value = results.iter().flatten().find_map(|series| series.values.last());
    let text = value.map_or("no data".to_owned(), |value| format_value(value.1, panel.unit));
    label(frame.left + 12.0, frame.top + frame.height - 22.0, "b", &text)
}
