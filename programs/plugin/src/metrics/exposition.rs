//! The text of a scrape, in either of the two formats that Prometheus reads.

use std::fmt::Write as _;

use http::HeaderMap;
use http::header::ACCEPT;

use crate::metrics::plugin_metrics::PluginMetrics;
use crate::metrics::scrape::Scrape;
use crate::metrics::sheet::{Labels, Sheet, labels};
use crate::metrics::{catalog, device_metrics};

/// A text format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// The text format of Prometheus, version 0.0.4.
    Prometheus,
    /// `OpenMetrics` 1.0.
    OpenMetrics,
}

impl Format {
    /// The format that a client with these headers gets.
    #[must_use]
    pub fn accepted(headers: &HeaderMap) -> Format {
        let mut accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        if accepted.any(|accept| accept.contains("application/openmetrics-text")) {
            Format::OpenMetrics
        } else {
            Format::Prometheus
        }
    }

    /// The value of the header `Content-Type`.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Format::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// The text of a scrape.
#[must_use]
pub fn render(metrics: &PluginMetrics, scrape: &Scrape<'_>, format: Format) -> String {
    let mut sheet = Sheet::default();
    device_metrics::add(&mut sheet, scrape);
    add_plugin_metrics(&mut sheet, metrics, scrape);
    sheet.render(format)
}

fn add_plugin_metrics(sheet: &mut Sheet, metrics: &PluginMetrics, scrape: &Scrape<'_>) {
    let build = [
        ("version", scrape.version),
        ("os", std::env::consts::OS),
        ("arch", std::env::consts::ARCH),
    ];
    sheet.gauges(catalog::BUILD_INFO, [(labels(&build), 1.0)]);
    let resources = &scrape.readiness.resources;
    let ready = resources.iter().map(|resource| {
        (labels(&[("resource", &resource.name)]), f64::from(u8::from(resource.is_ready())))
    });
    sheet.gauges(catalog::RESOURCE_READY, ready);
    sheet.add(catalog::ALLOCATIONS, metrics.allocations.clone());
    sheet.add(catalog::REFUSALS, metrics.refusals.clone());
    sheet.add(catalog::ALLOCATE_SECONDS, metrics.allocate_seconds.clone());
    let registrations = resources.iter().flat_map(|resource| {
        resource.registrations.iter().map(|(cause, count)| {
            (labels(&[("resource", &resource.name), ("cause", cause)]), *count)
        })
    });
    sheet.counters(catalog::REGISTRATIONS, registrations);
    sheet.add(catalog::LIST_UPDATES, metrics.list_updates.clone());
    sheet.add(catalog::DISCOVERY_SECONDS, metrics.discovery_seconds.clone());
    sheet.add(catalog::DISCOVERY_FAILURES, metrics.discovery_failures.clone());
    let reloads = [("applied", scrape.reloads.applied), ("rejected", scrape.reloads.rejected)];
    let reloads = reloads.map(|(result, count)| (labels(&[("result", result)]), count));
    sheet.counters(catalog::RELOADS, reloads);
    let current = f64::from(u8::from(scrape.reloads.last_error.is_none()));
    sheet.gauges(catalog::LAST_RELOAD_SUCCESSFUL, [(Labels::new(), current)]);
    sheet.counters(catalog::LOG_LINES_DROPPED, [(Labels::new(), scrape.log_lines_dropped)]);
    let age = scrape.telemetry.map(|(_, age)| (Labels::new(), age.as_secs_f64()));
    sheet.gauges(catalog::TELEMETRY_AGE, age);
    let readings = scrape.readings.iter().map(|(source, reason, failures)| {
        (labels(&[("source", source), ("reason", reason)]), *failures)
    });
    sheet.counters(catalog::READING_FAILURES, readings);
}

/// The same text in the format of Prometheus: the names of counters have their suffix everywhere,
/// and there is neither a unit nor an end mark.
pub(crate) fn prometheus_text(open_metrics: &str) -> String {
    let counters: Vec<&str> = open_metrics
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" counter"))
        .collect();
    let mut text = String::with_capacity(open_metrics.len() + counters.len() * 16);
    for line in open_metrics.lines() {
        let about = line.strip_prefix("# HELP ").or_else(|| line.strip_prefix("# TYPE "));
        match about.and_then(|about| about.split_once(' ')) {
            Some((name, rest)) if counters.contains(&name) => {
                let keyword = &line[..7];
                let _ = writeln!(text, "{keyword}{name}_total {rest}");
            }
            _ if line.starts_with("# EOF") || line.starts_with("# UNIT ") => {}
            _ => {
                text.push_str(line);
                text.push('\n');
            }
        }
    }
    text
}
