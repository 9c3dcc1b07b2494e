//! The metrics of one scrape.

use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::text::encode_registry;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Metric as Encode, Registry};

use crate::metrics::catalog::{Metric, MetricKind};

/// The labels of one time series.
pub type Labels = Vec<(&'static str, String)>;

/// The labels with these names and values.
#[must_use]
pub fn labels(pairs: &[(&'static str, &str)]) -> Labels {
    pairs.iter().map(|(name, value)| (*name, (*value).to_owned())).collect()
}

/// The metrics of one scrape, in the text format of Prometheus.
#[derive(Default)]
pub struct Sheet(String);

impl Sheet {
    /// Adds a metric with all its time series.
    ///
    /// # Panics
    /// Never: writing to a string does not fail.
    pub fn add(&mut self, metric: Metric, value: impl Encode) {
        // The client writes OpenMetrics: it adds the suffix of a counter to the names of the time
        // series, but not to the name that has the help and the type.
        let name = match metric.kind {
            MetricKind::Counter => metric.name.trim_end_matches("_total"),
            MetricKind::Gauge | MetricKind::Histogram => metric.name,
        };
        let mut registry = Registry::default();
        registry.register(name, metric.help, value);
        let mut written = String::new();
        encode_registry(&mut written, &registry).expect("writing to a string does not fail");
        let text = written.replacen(&format!(" {name} "), &format!(" {} ", metric.name), 2);
        let (about, mut series): (Vec<&str>, Vec<&str>) =
            text.split_inclusive('\n').partition(|line| line.starts_with('#'));
        // The client has the time series in a hash map. The buckets of a histogram are in order.
        if metric.kind != MetricKind::Histogram {
            series.sort_unstable();
        }
        self.0.extend(about.into_iter().chain(series));
    }

    /// Adds gauges, if there are any.
    pub fn gauges(&mut self, metric: Metric, values: impl IntoIterator<Item = (Labels, f64)>) {
        self.family(metric, values, |gauge: &Gauge<f64, AtomicU64>, value| _ = gauge.set(value));
    }

    /// Adds counters of whole numbers, if there are any.
    pub fn counters(&mut self, metric: Metric, values: impl IntoIterator<Item = (Labels, u64)>) {
        self.family(metric, values, |counter: &Counter, value| _ = counter.inc_by(value));
    }

    /// Adds counters of seconds, if there are any.
    pub(crate) fn seconds(
        &mut self,
        metric: Metric,
        values: impl IntoIterator<Item = (Labels, f64)>,
    ) {
        self.family(metric, values, |counter: &Counter<f64, AtomicU64>, value| {
            counter.inc_by(value);
        });
    }

    /// Adds one time series for each of the `values`, if there are any.
    fn family<S, V>(
        &mut self,
        metric: Metric,
        values: impl IntoIterator<Item = (Labels, V)>,
        set: impl Fn(&S, V),
    ) where
        S: Default,
        Family<Labels, S>: Encode,
    {
        let family = Family::<Labels, S>::default();
        let mut is_empty = true;
        for (labels, value) in values {
            set(&family.get_or_create(&labels), value);
            is_empty = false;
        }
        if !is_empty {
            self.add(metric, family);
        }
    }

    /// The text of the metrics.
    #[must_use]
    pub fn render(self) -> String {
        self.0
    }
}
