//! The client side of a connection.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper_util::rt::TokioIo;
use tonic::body::Body;

use super::byte_stream::{AnyStream, ByteStream};
use super::calls::Calls;

/// Makes calls while the connection's [`Driver`] is polled. It works with the clients that tonic
/// generates: `RegistrationClient::with_origin(client, Client::origin())`.
#[derive(Clone)]
pub struct Client(http2::SendRequest<Body>);

impl Client {
    /// The origin of the calls. Kubelets use the same authority since release 1.26.
    #[must_use]
    pub fn origin() -> http::Uri {
        http::Uri::from_static("http://localhost")
    }
}

impl tower_service::Service<Request<Body>> for Client {
    type Response = Response<Incoming>;
    type Error = hyper::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Incoming>, hyper::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), hyper::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.0.send_request(request))
    }
}

/// Transfers the bytes of a connection and completes when the connection ends. Dropping it closes
/// the connection.
#[must_use = "calls make no progress unless the driver is polled"]
pub struct Driver {
    connection: http2::Connection<TokioIo<AnyStream>, Body, Calls>,
    calls: Calls,
}

impl Future for Driver {
    /// The error that ended the connection, or `None` if the peer closed it.
    type Output = Option<hyper::Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Poll::Ready(ended) = Pin::new(&mut self.connection).poll(cx) {
            return Poll::Ready(ended.err());
        }
        // These tasks are hyper's own. A panic in one of them means that the connection is lost.
        self.calls.poll_panicked(cx, "a client connection").map(|_panicked| None)
    }
}

/// Starts HTTP/2 on a byte stream.
///
/// # Errors
/// The connection was lost.
pub async fn connect(io: impl ByteStream) -> io::Result<(Client, Driver)> {
    connect_any(Box::new(io)).await
}

async fn connect_any(io: AnyStream) -> io::Result<(Client, Driver)> {
    let calls = Calls::default();
    let (client, connection) = http2::Builder::new(calls.clone())
        .handshake(TokioIo::new(io))
        .await
        .map_err(io::Error::other)?;
    Ok((Client(client), Driver { connection, calls }))
}
