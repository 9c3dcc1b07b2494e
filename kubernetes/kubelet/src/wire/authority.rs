//! A connection whose incoming bytes are looked at until its first request has come:
//! `rewriter` says why and for what.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::rewriter::Rewriter;

/// Bytes taken from the connection at once while they are looked at.
const CHUNK: usize = 4 * 1024;

/// A connection whose incoming bytes are looked at until its first request has come.
pub(super) struct Acceptable<Io> {
    io: Io,
    rewriter: Rewriter,
    /// Looked at, and not yet handed on.
    ready: Vec<u8>,
}

impl<Io> Acceptable<Io> {
    pub(super) fn new(io: Io) -> Self {
        Acceptable { io, rewriter: Rewriter::default(), ready: Vec::new() }
    }

    fn hand_on(&mut self, buf: &mut ReadBuf<'_>) {
        let length = self.ready.len().min(buf.remaining());
        buf.put_slice(&self.ready[..length]);
        if length == self.ready.len() {
            self.ready = Vec::new();
        } else {
            self.ready.drain(..length);
        }
    }
}

impl<Io: AsyncRead + Unpin> AsyncRead for Acceptable<Io> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        while this.ready.is_empty() {
            if this.rewriter.is_done() {
                return Pin::new(&mut this.io).poll_read(cx, buf);
            }
            let mut chunk = [0; CHUNK];
            let mut chunk = ReadBuf::new(&mut chunk);
            ready!(Pin::new(&mut this.io).poll_read(cx, &mut chunk))?;
            if chunk.filled().is_empty() {
                // The end. What was held back can only be a frame that was cut off.
                this.rewriter.finish(&mut this.ready);
                break;
            }
            this.rewriter.feed(chunk.filled(), &mut this.ready);
        }
        this.hand_on(buf);
        Poll::Ready(Ok(()))
    }
}

impl<Io: AsyncWrite + Unpin> AsyncWrite for Acceptable<Io> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
