//! A connection that passes its incoming bytes through an [`AuthorityRewriter`] until the rewriter
//! is done, and gives way to other tasks. The modules `authority_rewriter` and `reading_turn`
//! explain why.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::authority_rewriter::AuthorityRewriter;
use super::reading_turn::ReadingTurn;

/// How many bytes are read from the connection at once while the rewriter is active.
const CHUNK: usize = 4 * 1024;

/// A connection that passes its incoming bytes through an [`AuthorityRewriter`].
pub(super) struct RewritingStream<Io> {
    io: Io,
    rewriter: AuthorityRewriter,
    /// Rewritten bytes that are not read yet.
    rewritten: Vec<u8>,
    turn: ReadingTurn,
}

impl<Io> RewritingStream<Io> {
    pub(super) fn new(io: Io) -> Self {
        RewritingStream {
            io,
            rewriter: AuthorityRewriter::default(),
            rewritten: Vec::new(),
            turn: ReadingTurn::default(),
        }
    }

    fn copy_rewritten(&mut self, buf: &mut ReadBuf<'_>) {
        let length = self.rewritten.len().min(buf.remaining());
        buf.put_slice(&self.rewritten[..length]);
        if length == self.rewritten.len() {
            self.rewritten = Vec::new();
        } else {
            self.rewritten.drain(..length);
        }
    }
}

impl<Io: AsyncRead + Unpin> AsyncRead for RewritingStream<Io> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        while this.rewritten.is_empty() {
            if this.rewriter.is_done() {
                let io = Pin::new(&mut this.io);
                return this.turn.poll_read(cx, buf, |cx, buf| io.poll_read(cx, buf));
            }
            let mut chunk = [0; CHUNK];
            let mut chunk = ReadBuf::new(&mut chunk);
            ready!(Pin::new(&mut this.io).poll_read(cx, &mut chunk))?;
            if chunk.filled().is_empty() {
                // End of stream. The bytes held back can only be an incomplete frame.
                this.rewriter.finish(&mut this.rewritten);
                break;
            }
            this.rewriter.feed(chunk.filled(), &mut this.rewritten);
        }
        this.copy_rewritten(buf);
        Poll::Ready(Ok(()))
    }
}

impl<Io: AsyncWrite + Unpin> AsyncWrite for RewritingStream<Io> {
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
