//! `--listen`: metrics and a liveness probe over HTTP.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use http::StatusCode;
use node::cli::Failure;
use plugin::metrics::{Format, Metric, MetricKind, Sheet, labels};
use plugin::monitoring::{health, page, serve_pages, text};
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
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    Labels,
    Condition,
    Taints,
    Events,
    Watch,
}

impl Purpose {
    pub(crate) const ALL: [Purpose; 5] =
        [Self::Labels, Self::Condition, Self::Taints, Self::Events, Self::Watch];

    fn name(self) -> &'static str {
        match self {
            Purpose::Labels => "labels",
            Purpose::Condition => "condition",
            Purpose::Taints => "taints",
            Purpose::Events => "events",
            Purpose::Watch => "watch",
        }
    }
}

/// Counts requests. A clone counts into the same counters.
#[derive(Clone, Default)]
pub(crate) struct Requests(Arc<Mutex<[Counts; Purpose::ALL.len()]>>);

#[derive(Clone, Copy, Default)]
struct Counts {
    succeeded: u64,
    failed: u64,
    last_success: Option<SystemTime>,
}

impl Requests {
    fn counts(&self) -> MutexGuard<'_, [Counts; Purpose::ALL.len()]> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn succeeded(&self, purpose: Purpose) {
        let counts = &mut self.counts()[purpose as usize];
        counts.succeeded += 1;
        counts.last_success = Some(SystemTime::now());
    }

    pub(crate) fn failed(&self, purpose: Purpose) {
        self.counts()[purpose as usize].failed += 1;
    }

    /// The text of a scrape.
    pub(crate) fn render(&self, format: Format) -> String {
        let mut sheet = Sheet::default();
        let counted = Purpose::ALL.into_iter().zip(*self.counts());
        let results = counted.clone().flat_map(|(purpose, counts)| {
            [("success", counts.succeeded), ("failure", counts.failed)].map(|(result, count)| {
                (labels(&[("purpose", purpose.name()), ("result", result)]), count)
            })
        });
        sheet.counters(REQUESTS, results);
        let times = counted.filter_map(|(purpose, counts)| {
            let time = counts.last_success?.duration_since(UNIX_EPOCH).ok()?;
            Some((labels(&[("purpose", purpose.name())]), time.as_secs_f64().floor()))
        });
        sheet.gauges(LAST_SUCCESS, times);
        sheet.render(format)
    }
}

/// Starts to serve `/metrics`, and `/healthz` for the event loop of the caller.
pub(crate) fn start(address: SocketAddr, requests: Requests) -> Result<(), Failure> {
    let event_loop = Handle::current();
    serve_pages(address, "/metrics and /healthz", move |request| {
        let (event_loop, requests) = (event_loop.clone(), requests.clone());
        async move {
            match request.uri().path() {
                "/metrics" => {
                    let format = Format::accepted(request.headers());
                    page(StatusCode::OK, format.content_type(), requests.render(format).into())
                }
                "/healthz" => health(&event_loop).await,
                _ => text(StatusCode::NOT_FOUND, "no such page\n"),
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_about_labels_lists_the_metrics() {
        let page = include_str!("../../../docs/labels.md");
        for Metric { name, kind, labels, .. } in [REQUESTS, LAST_SUCCESS] {
            let row = format!("| `{name}` | {} | `{}` | ", kind.name(), labels.join("`, `"));
            assert!(page.contains(&row), "docs/labels.md needs the row {row}");
        }
    }

    #[test]
    fn requests_are_counted_by_purpose_and_result() {
        let requests = Requests::default();
        requests.succeeded(Purpose::Condition);
        requests.clone().failed(Purpose::Watch);
        let text = requests.render(Format::Prometheus);
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
