//! AF_UNIX listener and stream for tokio, the same on Unix and Windows.
