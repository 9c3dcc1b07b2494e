//! The client side of one connection.

use std::io;

use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tonic::Status;
use tonic::transport::{Channel, Endpoint, Error};
use tower::service_fn;

/// Makes calls over a connection. Kubelets send the same authority since release 1.26. Dropping the
/// channel closes the connection.
///
/// # Errors
/// The connection was lost.
pub(crate) async fn over<Io>(io: Io) -> Result<Channel, Error>
where
    Io: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut io = Some(TokioIo::new(io));
    let once = service_fn(move |_| {
        let taken = io.take().ok_or_else(|| io::Error::from(io::ErrorKind::NotConnected));
        std::future::ready(taken)
    });
    Endpoint::from_static("http://localhost").connect_with_connector(once).await
}

/// Whether a call failed because its connection was lost: tonic's own errors have a source.
pub(crate) fn is_lost(status: &Status) -> bool {
    std::error::Error::source(status).is_some()
}
