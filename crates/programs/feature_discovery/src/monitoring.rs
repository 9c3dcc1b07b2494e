//! `--listen`: metrics and probes over HTTP.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::UNIX_EPOCH;

use http::StatusCode;
use process::ProcessError;
use process::metrics::{CONTENT_TYPE, Metric, labels, render};
use process::monitoring::{Answer, Page, health, other_page, page, serve_pages, text};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;
use strum::VariantArray as _;
use tokio::runtime::Handle;

/// How often the program reached the API server.
pub(crate) const REQUESTS: Metric = Metric {
    name: "directx_feature_discovery_requests_total",
    kind: MetricType::Counter,
    labels: &["purpose", "result"],
    help: "Requests to the API server, changes of the node that it sent, and changes of the file with cordoned devices",
};

/// When it did the last time.
pub(crate) const LAST_SUCCESS: Metric = Metric {
    name: "directx_feature_discovery_last_success_timestamp_seconds",
    kind: MetricType::Gauge,
    labels: &["purpose"],
    help: "When the last attempt for this purpose succeeded, in Unix time",
};

/// What attempts are for: requests, and the file with cordoned devices.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, strum::IntoStaticStr, strum::VariantArray,
)]
#[strum(serialize_all = "lowercase")]
pub(crate) enum Purpose {
    Labels,
    Condition,
    Taints,
    Events,
    Watch,
    Cordons,
}

impl Purpose {
    /// What the program cannot do while attempts for this purpose fail.
    fn task(self) -> &'static str {
        match self {
            Purpose::Labels => "set the labels",
            Purpose::Condition => "set the conditions",
            Purpose::Taints => "remove the startup taint",
            Purpose::Events => "report Events",
            Purpose::Watch => "follow the node object",
            Purpose::Cordons => "hand cordoned devices to the plugin",
        }
    }

    /// The problem of a program for which attempts for these purposes fail, if there are any.
    pub(crate) fn problem_of(failing: &[Purpose]) -> Option<String> {
        let tasks: Vec<&str> = failing.iter().map(|purpose| purpose.task()).collect();
        let problem = format!("cannot {}; the log has the reason", tasks.join(", "));
        (!tasks.is_empty()).then_some(problem)
    }
}

/// Counts requests, and knows whether the program does its work. A clone is the same one.
#[derive(Clone, Debug)]
pub(crate) struct Requests(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    counts: BTreeMap<Purpose, Counts>,
    /// What keeps the program from being ready, if something does.
    problem: Option<String>,
}

/// The requests for one purpose.
#[derive(Clone, Copy, Default, Debug)]
struct Counts {
    successes: u64,
    failures: u64,
    /// In Unix time.
    last_success: Option<f64>,
}

impl Requests {
    /// Every counter exists before the first request.
    pub(crate) fn new() -> Requests {
        let counts = Purpose::VARIANTS.iter().map(|purpose| (*purpose, Counts::default()));
        let problem = Some("starting".to_owned());
        Requests(Arc::new(Mutex::new(State { counts: counts.collect(), problem })))
    }

    /// Sets what keeps the program from being ready, if something does.
    pub(crate) fn set_problem(&self, problem: Option<String>) {
        self.lock().problem = problem;
    }

    /// What keeps the program from being ready, if something does.
    pub(crate) fn problem(&self) -> Option<String> {
        self.lock().problem.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn succeeded(&self, purpose: Purpose) {
        let mut state = self.lock();
        let counts = state.counts.entry(purpose).or_default();
        counts.successes += 1;
        counts.last_success = Some(UNIX_EPOCH.elapsed().unwrap_or_default().as_secs_f64().floor());
    }

    pub(crate) fn failed(&self, purpose: Purpose) {
        self.lock().counts.entry(purpose).or_default().failures += 1;
    }
}

impl Collector for Requests {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let requests = self.lock().counts.clone();
        let counts = requests.iter().flat_map(|(purpose, counts)| {
            [("success", counts.successes), ("failure", counts.failures)].map(|(result, count)| {
                (labels(&[("purpose", purpose.into()), ("result", result)]), count)
            })
        });
        REQUESTS.encode_counters(&mut encoder, counts)?;
        let last_successes = requests.iter().filter_map(|(purpose, counts)| {
            Some((labels(&[("purpose", purpose.into())]), counts.last_success?))
        });
        LAST_SUCCESS.encode_gauges(&mut encoder, last_successes)
    }
}

/// Starts to serve `/metrics`, `/readyz`, and `/healthz` for the event loop of the caller.
pub(crate) fn start(address: SocketAddr, requests: Requests) -> Result<(), ProcessError> {
    let event_loop = Handle::current();
    let answer: Answer = Arc::new(move |request| {
        let event_loop = event_loop.clone();
        let requests = requests.clone();
        Box::pin(async move { answer_to(request.uri().path(), &event_loop, requests).await })
    });
    serve_pages(address, "/metrics, /healthz and /readyz", answer)
}

async fn answer_to(path: &str, event_loop: &Handle, requests: Requests) -> Page {
    match path {
        "/metrics" => page(StatusCode::OK, CONTENT_TYPE, render(requests).into()),
        "/healthz" => health(event_loop).await,
        "/readyz" => match requests.problem() {
            None => text(StatusCode::OK, "ready\n"),
            Some(problem) => {
                text(StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {problem}\n"))
            }
        },
        path => other_page("directx-feature-discovery", path),
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    #[test]
    fn the_page_about_metrics_lists_every_metric() {
        let requests = Requests::new();
        requests.succeeded(Purpose::Labels);
        let exposed = render(requests);
        let mut rows = String::from("| metric | meaning | labels |\n|---|---|---|\n");
        for Metric { name, labels, help, .. } in [REQUESTS, LAST_SUCCESS] {
            let labels = labels.join("`, `");
            writeln!(rows, "| `{name}` | {help} | `{labels}` |").unwrap();
        }
        assert_eq!(rows.lines().count() - 2, exposed.matches("# TYPE ").count());
        let begin = "<!-- generated from crates/programs/feature_discovery/src/monitoring.rs by \
                     cargo xtask update -->\n";
        doc_pages::assert_part("reference/metrics.md", begin, &rows);
    }

    #[tokio::test]
    async fn every_page_has_an_answer() {
        for (path, status) in
            [("/", 200), ("/metrics", 200), ("/healthz", 200), ("/readyz", 503), ("/metric", 404)]
        {
            let page = answer_to(path, &Handle::current(), Requests::new()).await;
            assert_eq!(page.status(), status, "{path}");
        }
    }

    #[test]
    fn requests_are_counted_by_purpose_and_result() {
        let requests = Requests::new();
        requests.succeeded(Purpose::Condition);
        requests.clone().failed(Purpose::Watch);
        let text = render(requests);
        for line in [
            "# TYPE directx_feature_discovery_requests counter",
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
