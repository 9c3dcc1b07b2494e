//! The client side of one connection.
#![cfg_attr(not(feature = "testing"), allow(unreachable_pub, reason = "the double exports it"))]

use std::error::Error as _;
use std::io;

use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tonic::Status;
use tonic::transport::{Channel, Endpoint, Error};
use tower::service_fn;

use crate::text::error_chain;

/// Makes calls over a connection, as a kubelet or a plugin does. Kubelets send the same authority since release 1.26. Dropping the
/// channel closes the connection.
///
/// # Errors
/// The connection was lost.
pub async fn connect<Io>(io: Io) -> Result<Channel, Error>
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

/// How the connection of a call was lost, if that is why it failed: only tonic's own errors have a
/// cause. Their own text contains the internals of the cause.
pub(crate) fn lost(status: &Status) -> Option<String> {
    status.source().map(error_chain)
}
