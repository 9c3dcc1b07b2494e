//! An HTTP server whose clients can occupy only so much: connections, headers and time.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

#[cfg(test)]
mod tests;

/// What a client gets.
pub type Page = Response<Full<Bytes>>;

/// Answers a request.
pub type Answer =
    Arc<dyn Fn(Request<Incoming>) -> Pin<Box<dyn Future<Output = Page> + Send>> + Send + Sync>;

/// The maximum number of connections. A new one ends the oldest.
const CONNECTIONS: usize = 32;

/// The maximum size of a request's headers, in bytes.
const HEADER_BYTES: usize = 16 * 1024;

/// How long a connection lives, which is used for one request.
pub(super) const LIFETIME: Duration = Duration::from_secs(30);

/// How long to wait after a connection could not be accepted, for example because the process has
/// too many open files.
const ACCEPT_RETRY: Duration = Duration::from_secs(1);

/// Answers requests with `answer` until the future is dropped.
///
/// # Errors
/// The listener does not work with this event loop.
pub(super) async fn serve(
    listener: std::net::TcpListener,
    lifetime: Duration,
    answer: &Answer,
) -> io::Result<Infallible> {
    let listener = TcpListener::from_std(listener)?;
    // The oldest connection is the first one.
    let mut connections = VecDeque::new();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                connections.retain(|connection: &AbortOnDropHandle<()>| !connection.is_finished());
                if connections.len() >= CONNECTIONS {
                    connections.pop_front();
                }
                let connection =
                    tokio::spawn(serve_connection(stream, lifetime, Arc::clone(answer)));
                connections.push_back(AbortOnDropHandle::new(connection));
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept an HTTP connection");
                sleep(ACCEPT_RETRY).await;
            }
        }
    }
}

async fn serve_connection(stream: TcpStream, lifetime: Duration, answer: Answer) {
    // hyper leaves out the body of a response to HEAD.
    let service = service_fn(move |request| {
        let answer = answer(request);
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let connection = http1::Builder::new()
        .keep_alive(false)
        .max_buf_size(HEADER_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    if let Ok(Err(error)) = timeout(lifetime, connection).await {
        tracing::debug!(%error, "HTTP connection failed");
    }
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
