//! The response data of a connection that the peer has not taken yet.
//!
//! The data leaves in slices that record when they were handed to HTTP/2. A slice is dropped when
//! it is written to the connection. So the oldest slice shows how long a peer has not read, whether
//! it grants no flow-control window or its socket is full.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep};

/// The largest slice, in bytes: the default maximum frame size of HTTP/2.
pub(super) const SLICE: usize = 16 * 1024;

/// The slices of one connection that are not written.
#[derive(Clone, Default)]
pub(super) struct Unwritten(Arc<Mutex<Slices>>);

#[derive(Default)]
struct Slices {
    next: u64,
    /// When each slice was handed to HTTP/2, the oldest first.
    since: BTreeMap<u64, Instant>,
    /// Woken by the first slice.
    waker: Option<Waker>,
}

impl Unwritten {
    /// Records `bytes` as unwritten until the result is dropped.
    fn record(&self, bytes: Bytes) -> Bytes {
        let mut slices = self.lock();
        let number = slices.next;
        slices.next += 1;
        slices.since.insert(number, Instant::now());
        if let Some(waker) = slices.waker.take() {
            waker.wake();
        }
        drop(slices);
        Bytes::from_owner(Slice { bytes, number, unwritten: self.clone() })
    }

    /// When the oldest slice was handed to HTTP/2. Without one, the task is woken by the next.
    fn poll_oldest(&self, cx: &Context<'_>) -> Poll<Instant> {
        let mut slices = self.lock();
        if let Some(oldest) = slices.since.values().next() {
            return Poll::Ready(*oldest);
        }
        slices.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    fn lock(&self) -> MutexGuard<'_, Slices> {
        // Every change under this lock is complete, so a poisoned lock still holds a valid state.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Slice {
    bytes: Bytes,
    number: u64,
    unwritten: Unwritten,
}

impl AsRef<[u8]> for Slice {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Slice {
    fn drop(&mut self) {
        self.unwritten.lock().since.remove(&self.number);
    }
}

/// Ready once a slice has waited for `limit`. Without slices it causes no wake-ups.
pub(super) struct UnreadTimer {
    unwritten: Unwritten,
    limit: Duration,
    sleep: Pin<Box<Sleep>>,
}

impl UnreadTimer {
    pub(super) fn new(unwritten: Unwritten, limit: Duration) -> Self {
        UnreadTimer { unwritten, limit, sleep: Box::pin(sleep(limit)) }
    }

    /// Poll this after the connection: after a suspension of the host, the peer may read again.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let end = ready!(self.unwritten.poll_oldest(cx)) + self.limit;
            if Instant::now() >= end {
                return Poll::Ready(());
            }
            if self.sleep.deadline() != end {
                self.sleep.as_mut().reset(end);
            }
            ready!(self.sleep.as_mut().poll(cx));
        }
    }
}

/// A body whose data is recorded as unwritten.
pub(super) struct RecordedBody<B> {
    body: B,
    /// What of the last frame is not sent.
    rest: Bytes,
    unwritten: Unwritten,
}

impl<B> RecordedBody<B> {
    pub(super) fn new(body: B, unwritten: Unwritten) -> Self {
        RecordedBody { body, rest: Bytes::new(), unwritten }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for RecordedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        if self.rest.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                ended => return Poll::Ready(ended),
            }
        }
        let length = self.rest.len().min(SLICE);
        let slice = self.rest.split_to(length);
        Poll::Ready(Some(Ok(Frame::data(self.unwritten.record(slice)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}
