//! `--listen`: the metrics and probes of the daemon.

pub(crate) mod scrape;

use std::net::SocketAddr;
use std::sync::Arc;

use http::{Request, StatusCode};
use hyper::body::Incoming;
use plugin_status::status;
use process::ProcessError;
use process::metrics::CONTENT_TYPE;
use process::monitoring::{Answer, Page, health, other_page, page, serve_pages, text};

use crate::monitoring::scrape::Sources;

/// Starts to serve the pages.
pub(crate) fn start(address: SocketAddr, sources: Sources) -> Result<(), ProcessError> {
    let sources = Arc::new(sources);
    let answer: Answer = Arc::new(move |request| Box::pin(Arc::clone(&sources).answer(request)));
    serve_pages(address, "/metrics, /healthz and /readyz", answer)
}

impl Sources {
    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Page {
        match request.uri().path() {
            "/metrics" => page(StatusCode::OK, CONTENT_TYPE, self.text().await.into()),
            "/healthz" => health(&self.event_loop).await,
            "/readyz" => self.readiness(),
            path => other_page("directx-device-plugin", path),
        }
    }

    /// Whether a kubelet has the current list of every resource, otherwise the reason.
    fn readiness(&self) -> Page {
        let now = tokio::time::Instant::now();
        let readiness = self.readiness.borrow().clone();
        let (status, first) = if readiness.is_ready() {
            (StatusCode::OK, "ready\n")
        } else {
            (StatusCode::SERVICE_UNAVAILABLE, "not ready\n")
        };
        text(status, first.to_owned() + &status::status_lines(readiness.report(now)))
    }
}
