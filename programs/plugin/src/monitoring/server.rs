//! An HTTP server whose clients can occupy only so much: connections, headers and time.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CONNECTION, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

#[cfg(test)]
mod tests;

/// What a client gets.
pub type Page = Response<Full<Bytes>>;

/// What clients can occupy.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// The maximum number of connections. A new one ends the oldest.
    pub(super) connections: usize,
    /// The maximum size of a request's headers, in bytes; at least 8192.
    pub(super) header_bytes: usize,
    /// How long a client may take to send the headers of a request.
    pub(super) header_time: Duration,
    /// How long a connection is used for new requests.
    pub(super) use_time: Duration,
    /// How long a connection lives after that, for a client that does not read its response.
    pub(super) linger: Duration,
}

pub(super) const LIMITS: Limits = Limits {
    connections: 32,
    header_bytes: 16 * 1024,
    header_time: Duration::from_secs(5),
    use_time: Duration::from_secs(30),
    linger: Duration::from_secs(10),
};

/// How long to wait after a connection could not be accepted, for example because the process has
/// too many open files.
const ACCEPT_RETRY: Duration = Duration::from_secs(1);

/// Answers requests with `answer` until the future is dropped.
///
/// # Errors
/// The listener does not work with this event loop.
pub(super) async fn serve<F>(
    listener: std::net::TcpListener,
    limits: Limits,
    answer: impl Fn(Request<Incoming>) -> F + Clone + Send + 'static,
) -> io::Result<Infallible>
where
    F: Future<Output = Page> + Send + 'static,
{
    let listener = TcpListener::from_std(listener)?;
    // The oldest first.
    let mut connections = VecDeque::new();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                connections.retain(|connection: &AbortOnDropHandle<()>| !connection.is_finished());
                if connections.len() >= limits.connections {
                    connections.pop_front();
                }
                let connection = tokio::spawn(serve_connection(stream, limits, answer.clone()));
                connections.push_back(AbortOnDropHandle::new(connection));
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept an HTTP connection");
                sleep(ACCEPT_RETRY).await;
            }
        }
    }
}

async fn serve_connection<F>(
    stream: TcpStream,
    limits: Limits,
    answer: impl Fn(Request<Incoming>) -> F,
) where
    F: Future<Output = Page>,
{
    let service = service_fn(move |request: Request<Incoming>| {
        // hyper leaves out the body of a response to HEAD.
        let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
        let answer = is_read.then(|| answer(request));
        async move {
            Ok::<_, Infallible>(match answer {
                Some(answer) => answer.await,
                None => refusal(),
            })
        }
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

fn refusal() -> Page {
    let mut refusal = text(StatusCode::METHOD_NOT_ALLOWED, "use GET\n");
    refusal.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    // Without this, the body of the request would be read.
    refusal.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    refusal
}

/// A page of plain text.
#[must_use]
pub fn text(status: StatusCode, text: impl Into<String>) -> Page {
    page(status, "text/plain; charset=utf-8", Bytes::from(text.into()))
}

/// A page of the type `content_type`.
#[must_use]
pub fn page(status: StatusCode, content_type: &'static str, body: Bytes) -> Page {
    let mut page = Response::new(Full::new(body));
    *page.status_mut() = status;
    page.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    page
}
