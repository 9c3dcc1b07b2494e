//! The server.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, ALLOW, CONNECTION, CONTENT_TYPE};
use http::{HeaderValue, Method, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

/// What a client asks for.
#[derive(Clone, Debug)]
pub struct Request {
    /// The path of the URL, without the query.
    pub path: String,
    /// The header `Accept`, if it is text.
    pub accept: String,
}

/// What a client gets.
#[derive(Clone, Debug)]
pub struct Page {
    /// The HTTP status.
    pub status: StatusCode,
    /// The value of `Content-Type`.
    pub content_type: &'static str,
    /// The content.
    pub body: Bytes,
}

impl Page {
    /// A page of plain text.
    pub fn text(status: StatusCode, text: impl Into<String>) -> Page {
        let body = Bytes::from(text.into());
        Page { status, content_type: "text/plain; charset=utf-8", body }
    }
}

/// The pages of a server.
pub trait Pages: Send + Sync + 'static {
    /// The page at the path, if there is one.
    fn page(&self, request: Request) -> impl Future<Output = Option<Page>> + Send;
}

/// What clients can occupy.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The maximum number of connections. A new one ends the oldest.
    pub connections: usize,
    /// The maximum size of a request's headers, in bytes; at least 8192.
    pub header_bytes: usize,
    /// How long a client may take to send the headers of a request.
    pub header_time: Duration,
    /// How long a connection is used for new requests.
    pub use_time: Duration,
    /// How long a connection lives after that, for a client that does not read its response.
    pub linger: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections: 32,
            header_bytes: 16 * 1024,
            header_time: Duration::from_secs(5),
            use_time: Duration::from_secs(30),
            linger: Duration::from_secs(10),
        }
    }
}

/// How long to wait after a connection could not be accepted, for example because the process has
/// too many open files.
const ACCEPT_RETRY: Duration = Duration::from_secs(1);

/// Serves `pages` until the future is dropped.
///
/// # Errors
/// The listener does not work with this event loop.
pub async fn serve(
    listener: std::net::TcpListener,
    pages: Arc<impl Pages>,
    limits: Limits,
) -> io::Result<Infallible> {
    let listener = TcpListener::from_std(listener)?;
    let mut connections = Connections::default();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                connections.make_room(limits.connections);
                let connection = serve_connection(stream, Arc::clone(&pages), limits);
                connections.0.push_back(tokio::spawn(connection).abort_handle());
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept an HTTP connection");
                sleep(ACCEPT_RETRY).await;
            }
        }
    }
}

/// The connections, oldest first. Dropping it ends them.
#[derive(Default)]
struct Connections(VecDeque<AbortHandle>);

impl Connections {
    /// Ends the oldest connections until there are fewer than `limit`.
    fn make_room(&mut self, limit: usize) {
        self.0.retain(|connection| !connection.is_finished());
        while self.0.len() >= limit.max(1) {
            if let Some(oldest) = self.0.pop_front() {
                oldest.abort();
            }
        }
    }
}

impl Drop for Connections {
    fn drop(&mut self) {
        for connection in &self.0 {
            connection.abort();
        }
    }
}

async fn serve_connection(stream: TcpStream, pages: Arc<impl Pages>, limits: Limits) {
    let service = service_fn(move |request: http::Request<Incoming>| {
        let pages = Arc::clone(&pages);
        async move { Ok::<_, Infallible>(respond(&*pages, &request).await) }
    });
    let mut connection = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.header_time)
            .max_buf_size(limits.header_bytes)
            .serve_connection(TokioIo::new(stream), service)
    );
    let ended = match timeout(limits.use_time, connection.as_mut()).await {
        Ok(ended) => ended,
        Err(_elapsed) => {
            connection.as_mut().graceful_shutdown();
            timeout(limits.linger, connection).await.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "HTTP connection failed");
    }
}

async fn respond(pages: &impl Pages, request: &http::Request<Incoming>) -> Response<Full<Bytes>> {
    // hyper leaves out the body of a response to HEAD.
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let page = Page::text(StatusCode::METHOD_NOT_ALLOWED, "use GET\n");
        let mut response = response(page);
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        // Without this, the body of the request would be read.
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        return response;
    }
    let accept = request.headers().get_all(ACCEPT).iter();
    let accept: Vec<&str> = accept.filter_map(|value| value.to_str().ok()).collect();
    let asked = Request { path: request.uri().path().to_owned(), accept: accept.join(",") };
    let missing = || Page::text(StatusCode::NOT_FOUND, "no such page\n");
    response(pages.page(asked).await.unwrap_or_else(missing))
}

fn response(page: Page) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(page.body));
    *response.status_mut() = page.status;
    let content_type = HeaderValue::from_static(page.content_type);
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}
