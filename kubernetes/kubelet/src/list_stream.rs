//! The body of a `ListAndWatch` answer: the list, now and after every change, until
//! the endpoint closes.
//!
//! It sends the list's own bytes, so a thousand streams hold one list between them,
//! and it hands them over in slices, so that the last slice leaves only when the peer
//! has made room for all the others.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame};
use tokio::sync::watch;

use crate::DeviceList;
use crate::wire::Closing;

/// The largest slice, in bytes: the largest frame that HTTP/2 allows unasked.
const SLICE: usize = 16 * 1024;

/// Told how far a stream has come. Dropped when the stream ends, whichever way.
pub(crate) trait StreamObserver: Send + 'static {
    /// The peer has made room for the whole first list.
    fn list_taken(&mut self);
}

/// A running `ListAndWatch`.
pub(crate) struct ListStream<O> {
    /// What of the current list is still to be sent.
    unsent: Bytes,
    /// Waits for what comes after it.
    next: Pin<Box<dyn Future<Output = (Inputs, Next)> + Send>>,
    stage: Stage,
    observer: O,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    FirstList,
    Watching,
    Ended,
}

/// What a stream waits for.
struct Inputs {
    devices: watch::Receiver<Arc<DeviceList>>,
    closing: Closing,
}

enum Next {
    List(Arc<DeviceList>),
    Closing,
}

impl<O: StreamObserver> ListStream<O> {
    pub(crate) fn new(
        mut devices: watch::Receiver<Arc<DeviceList>>,
        closing: Closing,
        observer: O,
    ) -> Self {
        let list = devices.borrow_and_update().clone();
        let unsent = list.frame();
        let next = Box::pin(Inputs { devices, closing }.next(list));
        ListStream { unsent, next, stage: Stage::FirstList, observer }
    }
}

impl Inputs {
    /// Waits until the list is another one than `sent`, or the endpoint closes.
    async fn next(mut self, sent: Arc<DeviceList>) -> (Self, Next) {
        loop {
            let changed = tokio::select! {
                biased;
                () = self.closing.asked() => return (self, Next::Closing),
                changed = self.devices.changed() => changed,
            };
            if changed.is_err() {
                // Nobody will ever write again; the list stays what it is.
                self.closing.asked().await;
                return (self, Next::Closing);
            }
            let list = self.devices.borrow_and_update().clone();
            if list != sent {
                return (self, Next::List(list));
            }
        }
    }
}

impl<O: StreamObserver + Unpin> Body for ListStream<O> {
    type Data = Bytes;
    type Error = tonic::Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, tonic::Status>>> {
        if self.stage == Stage::Ended {
            return Poll::Ready(None);
        }
        if self.unsent.is_empty() {
            if self.stage == Stage::FirstList {
                self.stage = Stage::Watching;
                self.observer.list_taken();
            }
            let (inputs, next) = ready!(self.next.as_mut().poll(cx));
            match next {
                Next::Closing => {
                    self.stage = Stage::Ended;
                    return Poll::Ready(Some(Ok(Frame::trailers(closing_trailers()))));
                }
                Next::List(list) => {
                    self.unsent = list.frame();
                    self.next = Box::pin(inputs.next(list));
                }
            }
        }
        let length = self.unsent.len().min(SLICE);
        Poll::Ready(Some(Ok(Frame::data(self.unsent.split_to(length)))))
    }
}

/// The kubelet logs this as the reason why it takes the devices for unhealthy.
fn closing_trailers() -> HeaderMap {
    let mut trailers = HeaderMap::new();
    // Only a message that cannot be a header would be an error, and this one can.
    let _ = tonic::Status::unavailable("the device plugin closes this socket")
        .add_header(&mut trailers);
    trailers
}
