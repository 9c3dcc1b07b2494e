//! Places, texts and values in a picture.

/// The height of a line of the small font.
pub(crate) const LINE: f64 = 15.0;
/// The usual width of a character of the small font.
pub(crate) const CHARACTER: f64 = 5.8;

/// Where a panel is, in pixels.
#[derive(Clone, Copy)]
pub(crate) struct Frame {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// A value in a unit of Grafana.
pub(crate) fn format_value(value: f64, unit: &str) -> String {
    const GIB: f64 = 1024.0 * 1024.0 * 1024.0;
    match unit {
        "percentunit" => format!("{:.0} %", value * 100.0),
        "bytes" => format!("{:.1} GiB", value / GIB),
        "celsius" => format!("{value:.0} °C"),
        "hertz" => format!("{:.2} GHz", value / 1e9),
        "s" => format!("{:.0} µs", value * 1e6),
        _ if value.fract() == 0.0 => format!("{value:.0}"),
        _ => format!("{value:.2}"),
    }
}

/// A text at its baseline.
pub(crate) fn label(x: f64, y: f64, class: &str, text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    format!("<text x=\"{x:.0}\" y=\"{y:.0}\" class=\"{class}\">{text}</text>\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_the_units_of_the_dashboard() {
        let values = [
            (0.73, "percentunit", "73 %"),
            (1_610_612_736.0, "bytes", "1.5 GiB"),
            (61.4, "celsius", "61 °C"),
            (1.59e9, "hertz", "1.59 GHz"),
            (0.000_07, "s", "70 µs"),
            (2.0, "", "2"),
            (0.5, "", "0.50"),
        ];
        for (value, unit, expected) in values {
            assert_eq!(format_value(value, unit), expected);
        }
    }

    #[test]
    fn texts_are_escaped() {
        assert!(label(1.0, 2.0, "s", "a&b <c>").contains(">a&amp;b &lt;c&gt;<"));
    }
}
