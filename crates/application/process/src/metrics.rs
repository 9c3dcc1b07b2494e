//! The text format of metrics, `OpenMetrics` 1.0. Prometheus reads it since version 2.5.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeCounterValue, EncodeMetric, MetricEncoder,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

/// The value of the header `Content-Type`.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The labels of one time series.
pub type Labels = Vec<(&'static str, String)>;

/// The labels with these names and values.
#[must_use]
pub fn labels(pairs: &[(&'static str, &str)]) -> Labels {
    pairs.iter().map(|(name, value)| (*name, (*value).to_owned())).collect()
}

/// One metric.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// The name, with the suffix `_total` of a counter.
    pub name: &'static str,
    /// The type.
    pub kind: MetricType,
    /// The labels.
    pub labels: &'static [&'static str],
    /// One phrase for the help text, without a period.
    pub help: &'static str,
}

/// The text of all metrics that `collector` writes.
///
/// # Panics
/// Never: writing to a string does not fail.
#[must_use]
pub fn render(collector: impl Collector) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(collector));
    let mut text = String::new();
    encode(&mut text, &registry).expect("writing to a string does not fail");
    text
}

/// How the values of a metric are written. A metric with labels is left out if it has no time
/// series.
#[expect(clippy::missing_errors_doc, reason = "writing to the string of `render` does not fail")]
impl Metric {
    /// Writes a metric without labels.
    pub fn encode_value(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        value: &impl EncodeMetric,
    ) -> fmt::Result {
        value.encode(self.describe(encoder)?)
    }

    /// Writes gauges.
    pub fn encode_gauges(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        values: impl IntoIterator<Item = (Labels, f64)>,
    ) -> fmt::Result {
        let values = values.into_iter();
        self.encode(encoder, values.map(|(labels, value)| (labels, ConstGauge::new(value))))
    }

    /// Writes counters.
    pub fn encode_counters<N: EncodeCounterValue>(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        values: impl IntoIterator<Item = (Labels, N)>,
    ) -> fmt::Result {
        let values = values.into_iter();
        self.encode(encoder, values.map(|(labels, value)| (labels, ConstCounter::new(value))))
    }

    /// Writes time series.
    pub fn encode(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        series: impl IntoIterator<Item = (Labels, impl EncodeMetric)>,
    ) -> fmt::Result {
        let mut series = series.into_iter().peekable();
        if series.peek().is_none() {
            return Ok(());
        }
        let mut family = self.describe(encoder)?;
        for (labels, value) in series {
            value.encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }

    /// Writes help and type.
    fn describe<'a>(
        &self,
        encoder: &'a mut DescriptorEncoder<'_>,
    ) -> Result<MetricEncoder<'a>, fmt::Error> {
        // Only the time series of a counter have the suffix `_total`, which the client adds.
        let family = self.name.strip_suffix("_total").unwrap_or(self.name);
        encoder.encode_descriptor(family, &format!("{}.", self.help), None, self.kind)
    }
}
