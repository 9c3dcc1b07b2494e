//! The text of a scrape, in either of the two formats that Prometheus reads.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use devices::{DeviceSet, Luid, Telemetry};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Metric as Encode, Registry};

use crate::catalog::{self, Metric, MetricKind};
use crate::device_metrics::{self, ContainerProcess, Holder};
use crate::plugin_metrics::{PluginMetrics, Reading, ReloadCounts};

/// A text format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// The text format of Prometheus, version 0.0.4.
    Prometheus,
    /// `OpenMetrics` 1.0.
    OpenMetrics,
}

impl Format {
    /// The format that a client with this `Accept` header gets.
    #[must_use]
    pub fn for_accept(accept: &str) -> Format {
        if accept.contains("application/openmetrics-text") {
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

/// What is known at the moment of a scrape.
pub struct Scrape<'a> {
    /// The name of the node.
    pub host_name: &'a str,
    /// The plugin's version.
    pub version: &'a str,
    /// The devices.
    pub devices: &'a DeviceSet,
    /// What was measured of each adapter.
    pub telemetry: &'a BTreeMap<Luid, Telemetry>,
    /// Who holds which slot; `None` if the kubelet does not say.
    pub holders: Option<&'a [Holder]>,
    /// The processes of containers that hold a device.
    pub processes: &'a [ContainerProcess],
    /// Each resource, and whether a kubelet has its list.
    pub resources: &'a [(String, bool)],
    /// Resource, cause and number of the registrations.
    pub registrations: &'a [(String, &'static str, u64)],
    /// The changes of the configuration.
    pub reloads: ReloadCounts,
    /// How many log lines could not be written.
    pub log_lines_dropped: u64,
    /// Failures to read data for metrics.
    pub readings: &'a [Reading],
}

/// The text of a scrape.
#[must_use]
#[expect(clippy::missing_panics_doc, reason = "writing to a string does not fail")]
pub fn render(metrics: &PluginMetrics, scrape: &Scrape<'_>, format: Format) -> String {
    let mut sheet = Sheet::default();
    device_metrics::add(&mut sheet, scrape);
    add_plugin_metrics(&mut sheet, metrics, scrape);
    let mut text = String::new();
    encode(&mut text, &sheet.0).expect("writing to a string does not fail");
    match format {
        Format::OpenMetrics => text,
        Format::Prometheus => prometheus_text(&text),
    }
}

fn add_plugin_metrics(sheet: &mut Sheet, metrics: &PluginMetrics, scrape: &Scrape<'_>) {
    let build = [
        ("version", scrape.version),
        ("os", std::env::consts::OS),
        ("arch", std::env::consts::ARCH),
    ];
    sheet.gauges(catalog::BUILD_INFO, [(labels(&build), 1.0)]);
    let ready = scrape
        .resources
        .iter()
        .map(|(resource, ready)| (labels(&[("resource", resource)]), f64::from(u8::from(*ready))));
    sheet.gauges(catalog::RESOURCE_READY, ready);
    sheet.add(catalog::ALLOCATIONS, metrics.allocations.clone());
    sheet.add(catalog::REFUSALS, metrics.refusals.clone());
    sheet.add(catalog::ALLOCATE_SECONDS, metrics.allocate_seconds.clone());
    let registrations = scrape.registrations.iter().map(|(resource, cause, count)| {
        (labels(&[("resource", resource), ("cause", cause)]), *count)
    });
    sheet.counters(catalog::REGISTRATIONS, registrations);
    sheet.add(catalog::LIST_UPDATES, metrics.list_updates.clone());
    sheet.add(catalog::DISCOVERY_SECONDS, metrics.discovery_seconds.clone());
    sheet.add(catalog::DISCOVERY_FAILURES, metrics.discovery_failures.clone());
    let ReloadCounts { applied, rejected, current } = scrape.reloads;
    let reloads = [("applied", applied), ("rejected", rejected)];
    let reloads = reloads.map(|(result, count)| (labels(&[("result", result)]), count));
    sheet.counters(catalog::RELOADS, reloads);
    let current = f64::from(u8::from(current));
    sheet.gauges(catalog::LAST_RELOAD_SUCCESSFUL, [(Labels::new(), current)]);
    sheet.counters(catalog::LOG_LINES_DROPPED, [(Labels::new(), scrape.log_lines_dropped)]);
    let readings = scrape.readings.iter().map(|reading| {
        let Reading { source, reason, failures } = reading;
        (labels(&[("source", source), ("reason", reason)]), *failures)
    });
    sheet.counters(catalog::READING_FAILURES, readings);
}

/// The labels of one time series.
pub(crate) type Labels = Vec<(&'static str, String)>;

pub(crate) fn labels(pairs: &[(&'static str, &str)]) -> Labels {
    pairs.iter().map(|(name, value)| (*name, (*value).to_owned())).collect()
}

/// The metrics of one scrape.
#[derive(Default)]
pub(crate) struct Sheet(Registry);

impl Sheet {
    fn add(&mut self, metric: Metric, value: impl Encode) {
        // The client adds the suffix itself.
        let name = match metric.kind {
            MetricKind::Counter => metric.name.trim_end_matches("_total"),
            MetricKind::Gauge | MetricKind::Histogram => metric.name,
        };
        self.0.register(name, metric.help, value);
    }

    /// Adds gauges, if there are any.
    pub(crate) fn gauges(
        &mut self,
        metric: Metric,
        values: impl IntoIterator<Item = (Labels, f64)>,
    ) {
        let family = Family::<Labels, Gauge<f64, std::sync::atomic::AtomicU64>>::default();
        let mut values = values.into_iter().peekable();
        if values.peek().is_none() {
            return;
        }
        for (labels, value) in values {
            family.get_or_create(&labels).set(value);
        }
        self.add(metric, family);
    }

    /// Adds counters of whole numbers, if there are any.
    pub(crate) fn counters(
        &mut self,
        metric: Metric,
        values: impl IntoIterator<Item = (Labels, u64)>,
    ) {
        let family = Family::<Labels, Counter>::default();
        let mut values = values.into_iter().peekable();
        if values.peek().is_none() {
            return;
        }
        for (labels, value) in values {
            family.get_or_create(&labels).inc_by(value);
        }
        self.add(metric, family);
    }

    /// Adds counters of seconds, if there are any.
    pub(crate) fn seconds(
        &mut self,
        metric: Metric,
        values: impl IntoIterator<Item = (Labels, f64)>,
    ) {
        let family = Family::<Labels, Counter<f64, std::sync::atomic::AtomicU64>>::default();
        let mut values = values.into_iter().peekable();
        if values.peek().is_none() {
            return;
        }
        for (labels, value) in values {
            family.get_or_create(&labels).inc_by(value);
        }
        self.add(metric, family);
    }
}

/// The same text in the format of Prometheus: the names of counters have their suffix everywhere,
/// and there is neither a unit nor an end mark.
fn prometheus_text(open_metrics: &str) -> String {
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
