//! Draws time series.

use std::fmt::Write as _;

use crate::panel::Panel;
use crate::prometheus::Series;
use crate::scrapes::{END, START};
use crate::shapes::{CHARACTER, Frame, LINE, format_value, label};

const COLORS: [&str; 8] =
    ["#1f77b4", "#d62728", "#2ca02c", "#ff7f0e", "#9467bd", "#8c564b", "#17becf", "#7f7f7f"];

/// The area of the curves in pixels, and the values at its lower and upper end.
struct Plot {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    low: f64,
    high: f64,
}

/// The curves of a panel, its axis and its legends.
#[expect(clippy::cast_precision_loss, reason = "there are few series")]
pub(crate) fn time_series(panel: &Panel<'_>, results: &[Vec<Series>], frame: Frame) -> String {
    let queries = panel.queries.iter().zip(results);
    let series: Vec<(String, &Series)> = queries
        .flat_map(|(query, result)| result.iter().map(|s| (legend(query.legend, s), s)))
        .collect();
    // Legends below the plot, in two columns if they fit.
    let longest = series.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let columns = if longest as f64 * CHARACTER + 40.0 < frame.width / 2.0 { 2 } else { 1 };
    let rows = series.len().div_ceil(columns) as f64;
    let (low, high) = range(panel, &series);
    let plot = Plot {
        left: frame.left + 62.0,
        right: frame.left + frame.width - 12.0,
        top: frame.top + 30.0,
        bottom: frame.top + frame.height - 12.0 - rows * LINE,
        low,
        high,
    };
    let mut svg = plot.axis(frame.left + 10.0, panel.unit);
    for (number, (name, series)) in series.iter().enumerate() {
        let color = COLORS[number % COLORS.len()];
        svg += &plot.curve(series, color);
        let x = frame.left + 14.0 + (number % columns) as f64 * frame.width / 2.0;
        let y = plot.bottom + LINE * (number / columns + 1) as f64;
        writeln!(svg, "<path d=\"M{x} {y}h10\" stroke=\"{color}\" stroke-width=\"3\"/>")
            .expect("a text can be written");
        svg += &label(x + 15.0, y + 4.0, "s", name);
    }
    svg
}

/// The lowest and the highest value, unless the dashboard fixes them.
fn range(panel: &Panel<'_>, series: &[(String, &Series)]) -> (f64, f64) {
    let values = || series.iter().flat_map(|(_, series)| &series.values).map(|value| value.1);
    let low = panel.range.0.unwrap_or_else(|| values().fold(f64::INFINITY, f64::min));
    let high = panel.range.1.unwrap_or_else(|| values().fold(low, f64::max));
    (low, if high > low { high } else { low + 1.0 })
}

impl Plot {
    /// Three lines with their values at `x`.
    fn axis(&self, x: f64, unit: &str) -> String {
        let middle = (f64::midpoint(self.low, self.high), f64::midpoint(self.top, self.bottom));
        let mut svg = String::new();
        for (value, y) in [(self.high, self.top), middle, (self.low, self.bottom)] {
            let (left, right) = (self.left, self.right);
            writeln!(svg, "<path d=\"M{left} {y:.0}H{right}\" stroke=\"#e4e4e4\"/>")
                .expect("a text can be written");
            svg += &label(x, y + 4.0, "s", &format_value(value, unit));
        }
        svg
    }

    /// The lines of a series. A value that is no number interrupts them.
    fn curve(&self, series: &Series, color: &str) -> String {
        let mut svg = String::new();
        for part in series.values.split(|(_, value)| value.is_nan()).filter(|p| !p.is_empty()) {
            let points: Vec<String> = part.iter().map(|value| self.point(*value)).collect();
            let points = points.join(" ");
            writeln!(svg, "<polyline points=\"{points}\" stroke=\"{color}\"/>")
                .expect("a text can be written");
        }
        svg
    }

    #[expect(clippy::cast_precision_loss, reason = "times of this century are exact")]
    fn point(&self, (time, value): (f64, f64)) -> String {
        let part = (time - START as f64) / (END - START) as f64;
        let x = self.left + (self.right - self.left) * part;
        let part = (value - self.low) / (self.high - self.low);
        format!("{x:.0},{:.1}", self.bottom - (self.bottom - self.top) * part)
    }
}

/// The legend with the values of labels.
fn legend(template: &str, series: &Series) -> String {
    let mut legend = template.to_owned();
    for (name, value) in &series.labels {
        legend = legend.replace(&format!("{{{{{name}}}}}"), value);
    }
    legend
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(values: &[(f64, f64)]) -> Series {
        let labels = [("gpu".to_owned(), "0".to_owned()), ("kind".to_owned(), "a&b".to_owned())];
        Series { labels: labels.into(), values: values.to_vec() }
    }

    #[test]
    fn a_legend_has_the_values_of_labels() {
        assert_eq!(legend("GPU {{gpu}} {{kind}} used", &series(&[])), "GPU 0 a&b used");
    }

    #[test]
    #[expect(clippy::cast_precision_loss, reason = "times of this century are exact")]
    fn a_value_that_is_no_number_interrupts_the_curve() {
        let plot = Plot { left: 0.0, right: 3600.0, top: 0.0, bottom: 10.0, low: 0.0, high: 1.0 };
        let start = START as f64;
        let values = [0.0, 1.0, f64::NAN, 0.5];
        let values: Vec<_> = (0..4).zip(values).map(|(n, v)| (start + f64::from(n), v)).collect();
        let curve = plot.curve(&series(&values), "red");
        assert_eq!(curve.matches("<polyline").count(), 2, "{curve}");
        assert!(curve.contains("\"0,10.0 1,0.0\"") && curve.contains("\"3,5.0\""), "{curve}");
    }
}
