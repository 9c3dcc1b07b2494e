//! The body of a `ListAndWatch` response: the current device list, and the new list after every
//! change, until the endpoint closes.
//!
//! All streams send the same shared bytes, so a thousand streams hold one list in memory. The
//! bytes are sent in slices, so the last slice is taken only after the peer has granted
//! flow-control window for all earlier slices.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame};
use tokio::sync::watch;

use crate::DeviceList;
use crate::http2::CloseSignal;

/// The largest slice, in bytes: the default maximum frame size of HTTP/2.
const SLICE: usize = 16 * 1024;

/// Receives the progress of a stream. It is dropped when the stream ends, for any reason.
pub(crate) trait StreamObserver: Send + 'static {
    /// The peer has granted flow-control window for the whole first list.
    fn list_delivered(&mut self);
}

/// A running `ListAndWatch`.
pub(crate) struct ListStream<O> {
    /// The part of the current list that is not sent yet.
    unsent: Bytes,
    /// Waits for what to send after the current list.
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
    close_signal: CloseSignal,
}

enum Next {
    List(Arc<DeviceList>),
    Close,
}

impl<O: StreamObserver> ListStream<O> {
    pub(crate) fn new(
        mut devices: watch::Receiver<Arc<DeviceList>>,
        close_signal: CloseSignal,
        observer: O,
    ) -> Self {
        let list = devices.borrow_and_update().clone();
        let unsent = list.frame();
        let next = Box::pin(Inputs { devices, close_signal }.next(list));
        ListStream { unsent, next, stage: Stage::FirstList, observer }
    }
}

impl Inputs {
    /// Waits until the list differs from `sent`, or the endpoint closes.
    async fn next(mut self, sent: Arc<DeviceList>) -> (Self, Next) {
        loop {
            let changed = tokio::select! {
                biased;
                () = self.close_signal.requested() => return (self, Next::Close),
                changed = self.devices.changed() => changed,
            };
            if changed.is_err() {
                // The sender was dropped, so the list never changes again.
                self.close_signal.requested().await;
                return (self, Next::Close);
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
                self.observer.list_delivered();
            }
            let (inputs, next) = ready!(self.next.as_mut().poll(cx));
            match next {
                Next::Close => {
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

/// The kubelet logs this message when it marks the devices unhealthy.
fn closing_trailers() -> HeaderMap {
    let mut trailers = HeaderMap::new();
    // Fails only for a message that is not a valid header value, and this one is valid.
    let _ = tonic::Status::unavailable("device plugin is closing this socket")
        .add_header(&mut trailers);
    trailers
}
