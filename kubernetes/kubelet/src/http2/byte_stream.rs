//! Connections of any kind as one type, so that HTTP/2 is compiled once and not for each kind.

use tokio::io::{AsyncRead, AsyncWrite};

/// A connection.
pub trait ByteStream: AsyncRead + AsyncWrite + Unpin + Send + 'static {}

impl<Io: AsyncRead + AsyncWrite + Unpin + Send + 'static> ByteStream for Io {}

/// A connection of any kind.
pub(super) type AnyStream = Box<dyn ByteStream>;
