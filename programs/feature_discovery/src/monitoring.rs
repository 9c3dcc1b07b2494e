//! `--listen`: metrics and a liveness probe over HTTP.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use http::{HeaderMap, StatusCode};
use node::cli::Failure;
use plugin::metrics::{Format, Metric, MetricKind, Sheet, labels};
use plugin::monitoring::{Page, health, page, serve_pages, text};
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
    const ALL: [Purpose; 5] =
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
pub(crate) struct Requests(Arc<[Counts; Purpose::ALL.len()]>);

#[derive(Default)]
struct Counts {
    succeeded: AtomicU64,
    failed: AtomicU64,
    /// In seconds since 1970; 0 before the first success.
    last_success: AtomicU64,
}

impl Requests {
    pub(crate) fn succeeded(&self, purpose: Purpose) {
        let counts = &self.0[purpose as usize];
        counts.succeeded.fetch_add(1, Ordering::Relaxed);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        counts.last_success.store(now.as_secs(), Ordering::Relaxed);
    }

    pub(crate) fn failed(&self, purpose: Purpose) {
        self.0[purpose as usize].failed.fetch_add(1, Ordering::Relaxed);
    }

    /// The text of a scrape.
    pub(crate) fn render(&self, format: Format) -> String {
        let mut sheet = Sheet::default();
        let read = |value: &AtomicU64| value.load(Ordering::Relaxed);
        let counted = Purpose::ALL.into_iter().zip(&*self.0);
        let results = counted.clone().flat_map(|(purpose, counts)| {
            [("success", read(&counts.succeeded)), ("failure", read(&counts.failed))].map(
                |(result, count)| {
                    (labels(&[("purpose", purpose.name()), ("result", result)]), count)
                },
            )
        });
        sheet.counters(REQUESTS, results);
        let times = counted.filter(|(_, counts)| read(&counts.last_success) > 0);
        #[expect(clippy::cast_precision_loss, reason = "exact for millions of years")]
        let times = times.map(|(purpose, counts)| {
            (labels(&[("purpose", purpose.name())]), read(&counts.last_success) as f64)
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
        let (path, headers) = (request.uri().path().to_owned(), request.headers().clone());
        async move { answer(&path, &headers, &event_loop, &requests).await }
    })
}

async fn answer(path: &str, headers: &HeaderMap, event_loop: &Handle, requests: &Requests) -> Page {
    match path {
        "/metrics" => {
            let format = Format::accepted(headers);
            page(StatusCode::OK, format.content_type(), requests.render(format).into())
        }
        "/healthz" => health(event_loop).await,
        _ => text(StatusCode::NOT_FOUND, "no such page\n"),
    }
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
