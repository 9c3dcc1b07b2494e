//! A connection from the kubelet to a plugin.

use std::path::PathBuf;

use kubelet::http2::Closer;

/// A connection to a plugin. Dropping it closes the connection.
pub(crate) struct Connection {
    pub(crate) socket: PathBuf,
    closer: Option<Closer>,
}

impl Connection {
    /// Creates a connection that is not established yet.
    pub(crate) fn new(socket: PathBuf) -> Self {
        Connection { socket, closer: None }
    }

    pub(crate) fn is_established(&self) -> bool {
        self.closer.is_some()
    }

    /// Records that the connection is established, and how to close it.
    pub(crate) fn set_established(&mut self, closer: Closer) {
        self.closer = Some(closer);
    }
}
