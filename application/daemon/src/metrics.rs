//! The metrics of the plugin and its devices, and their text format.
//!
//! [`PluginMetrics`] counts what the daemon does. A [`Scrape`] adds what is known at one moment:
//! the device set, the telemetry and who holds which device. [`render`] turns both into text.
//! Names, types, labels and descriptions are in [`METRICS`], from which the documentation is
//! generated.

mod catalog;
mod device_metrics;
mod exposition;
mod plugin_metrics;
mod scrape;
mod sheet;

pub use catalog::{DEVICE_LABELS, METRICS, Metric, MetricKind};
pub use exposition::{CONTENT_TYPE, render};
pub use plugin_metrics::{PluginMetrics, REFUSAL_REASONS};
pub use scrape::{Holder, Scrape};
pub use sheet::{Labels, Sheet, labels};
