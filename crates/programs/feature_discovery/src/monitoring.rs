//! `--listen`: metrics and a liveness probe over HTTP.

use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::UNIX_EPOCH;

use command_line::Failure;
use daemon::metrics::{CONTENT_TYPE, Labels, Metric, MetricKind, Sheet, labels};
use daemon::monitoring::{Answer, health, page, serve_pages, text};
use http::StatusCode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use strum::VariantArray as _;
use tokio::runtime::Handle;

/// How often the program reached the API server.
pub(crate) const REQUESTS: Metric = Metric {
    name: "directx_feature_discovery_requests_total",
    kind: MetricKind::Counter,
    labels: &["purpose", "result"],
    help: "Requests to the API server, and changes of the node that it sent",
    source: "the program",
};

/// When it did the last time.
pub(crate) const LAST_SUCCESS: Metric = Metric {
    name: "directx_feature_discovery_last_success_timestamp_seconds",
    kind: MetricKind::Gauge,
    labels: &["purpose"],
    help: "When the API server last accepted a request for this purpose, in Unix time",
    source: "the program",
};

/// What requests are for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "lowercase")]
pub(crate) enum Purpose {
    Labels,
    Condition,
    Taints,
    Events,
    Watch,
}

/// Counts requests. A clone counts into the same counters.
#[derive(Clone)]
pub(crate) struct Requests {
    counts: Family<Labels, Counter>,
    last_success: Family<Labels, Gauge<f64, AtomicU64>>,
}

impl Requests {
    /// Every counter exists before the first request.
    pub(crate) fn new() -> Requests {
        let requests = Requests { counts: Family::default(), last_success: Family::default() };
        for &purpose in Purpose::VARIANTS {
            drop(requests.count(purpose, "success"));
            drop(requests.count(purpose, "failure"));
        }
        requests
    }

    fn count(&self, purpose: Purpose, result: &str) -> impl Deref<Target = Counter> {
        let labels = labels(&[("purpose", purpose.into()), ("result", result)]);
        self.counts.get_or_create(&labels)
    }

    pub(crate) fn succeeded(&self, purpose: Purpose) {
        self.count(purpose, "success").inc();
        let time = UNIX_EPOCH.elapsed().unwrap_or_default().as_secs_f64().floor();
        self.last_success.get_or_create(&labels(&[("purpose", purpose.into())])).set(time);
    }

    pub(crate) fn failed(&self, purpose: Purpose) {
        self.count(purpose, "failure").inc();
    }

    /// The text of a scrape.
    pub(crate) fn render(&self) -> String {
        let mut sheet = Sheet::default();
        sheet.add(REQUESTS, self.counts.clone());
        sheet.add(LAST_SUCCESS, self.last_success.clone());
        sheet.render()
    }
}

/// Starts to serve `/metrics`, and `/healthz` for the event loop of the caller.
pub(crate) fn start(address: SocketAddr, requests: Requests) -> Result<(), Failure> {
    let event_loop = Handle::current();
    let answer: Answer = Arc::new(move |request| {
        let (event_loop, requests) = (event_loop.clone(), requests.clone());
        Box::pin(async move {
            match request.uri().path() {
                "/metrics" => page(StatusCode::OK, CONTENT_TYPE, requests.render().into()),
                "/healthz" => health(&event_loop).await,
                _ => text(StatusCode::NOT_FOUND, "no such page\n"),
            }
        })
    });
    serve_pages(address, "/metrics and /healthz", answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_about_labels_lists_the_metrics() {
        let page = include_str!("../../../../docs/labels.md");
        for Metric { name, kind, labels, .. } in [REQUESTS, LAST_SUCCESS] {
            let kind = format!("{kind:?}").to_lowercase();
            let row = format!("| `{name}` | {kind} | `{}` | ", labels.join("`, `"));
            assert!(page.contains(&row), "docs/labels.md needs the row {row}");
        }
    }

    #[test]
    fn requests_are_counted_by_purpose_and_result() {
        let requests = Requests::new();
        requests.succeeded(Purpose::Condition);
        requests.clone().failed(Purpose::Watch);
        let text = requests.render();
        for line in [
            "# TYPE directx_feature_discovery_requests_total counter",
            r#"directx_feature_discovery_requests_total{purpose="condition",result="success"} 1"#,
            r#"directx_feature_discovery_requests_total{purpose="watch",result="failure"} 1"#,
            r#"directx_feature_discovery_requests_total{purpose="labels",result="failure"} 0"#,
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
        let last = "directx_feature_discovery_last_success_timestamp_seconds{purpose=";
        assert_eq!(text.matches(last).count(), 1, "only for a purpose that succeeded:\n{text}");
    }
}
