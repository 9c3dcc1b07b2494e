//! How much of a connection is read before other tasks get their turn.
//!
//! All connections share one thread. A peer that sends without a pause would otherwise be read for
//! as long as data arrives, and its frames would be kept until the calls get their turn.

use std::io;
use std::task::{Context, Poll, ready};

use tokio::io::ReadBuf;

/// How many bytes are read in one turn, plus at most one read. A frame has at least 9 bytes and
/// occupies about 300 after it was received, so a turn keeps at most a MiB.
const TURN: usize = 16 * 1024;

/// The bytes of the current turn.
#[derive(Default)]
pub(super) struct ReadingTurn {
    read: usize,
}

impl ReadingTurn {
    /// Reads with `read` unless the turn is over. Then the task is woken for its next turn.
    pub(super) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
        read: impl FnOnce(&mut Context<'_>, &mut ReadBuf<'_>) -> Poll<io::Result<()>>,
    ) -> Poll<io::Result<()>> {
        if self.read >= TURN {
            self.read = 0;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = buf.filled().len();
        let polled = read(cx, buf);
        if polled.is_pending() {
            self.read = 0;
        }
        ready!(polled)?;
        self.read += buf.filled().len() - before;
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_always_has_data_gives_way() {
        let mut cx = Context::from_waker(std::task::Waker::noop());
        let mut turn = ReadingTurn::default();
        let mut poll = |available: usize| {
            let mut storage = [0; 1000];
            let mut buf = ReadBuf::new(&mut storage);
            let polled = turn.poll_read(&mut cx, &mut buf, |_, buf| {
                buf.put_slice(&[1; 1000][..available]);
                if available == 0 { Poll::Pending } else { Poll::Ready(Ok(())) }
            });
            polled.is_ready()
        };
        for _ in 0..3 {
            assert!((0..17).all(|_| poll(1000)));
            assert!(!poll(1000), "read more than its turn");
        }
        assert!((0..16).all(|_| poll(1000)) && !poll(0));
        assert!((0..17).all(|_| poll(1000)), "a pause begins a new turn");
    }
}
