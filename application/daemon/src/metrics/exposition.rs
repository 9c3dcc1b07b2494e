//! The text of a scrape.

use crate::metrics::plugin_metrics::PluginMetrics;
use crate::metrics::scrape::Scrape;
use crate::metrics::sheet::{Labels, Sheet, labels};
use crate::metrics::{catalog, device_metrics};

/// The value of the header `Content-Type`: the text format of Prometheus, version 0.0.4.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The text of a scrape.
#[must_use]
pub fn render(metrics: &PluginMetrics, scrape: &Scrape<'_>) -> String {
    let mut sheet = Sheet::default();
    device_metrics::add(&mut sheet, scrape);
    add_plugin_metrics(&mut sheet, metrics, scrape);
    sheet.render()
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
    let reloads = [("applied", scrape.reloads.applied), ("rejected", scrape.reloads.rejected)]
        .map(|(result, count)| (labels(&[("result", result)]), count));
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
