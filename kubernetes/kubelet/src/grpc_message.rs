//! The messages of unary calls, received and sent within the memory budget.
//!
//! The code that tonic generates buffers requests and responses of each call without a common
//! limit, so unary calls do not use it.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, Response};
use http_body::Frame;
use prost::Message;
use prost::encoding::message::encoded_len as field_len;
use tokio::time::timeout;
use tonic::Status;
use tonic::body::Body;

use crate::device_list::{FRAME_HEADER, MESSAGE_LIMIT};
use crate::memory_budget::{Buffer, Share};

/// How long a request may take to arrive. A kubelet that is suspended meanwhile must send it again.
const REQUEST_LIMIT: Duration = Duration::from_secs(30);

/// The trailer with the status code of a call.
const STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// The tag of the containers in every response for devices.
const CONTAINER: u32 = 1;

/// The message of a request.
pub(crate) struct RequestMessage(Buffer);

impl RequestMessage {
    /// The encoded message.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0.as_ref()[FRAME_HEADER..]
    }
}

/// Receives the message of a unary call.
///
/// # Errors
/// The request is too large, does not arrive in time, is not one message, or the connection was
/// lost.
pub(crate) async fn receive<B>(body: B, share: &Share) -> Result<RequestMessage, Status>
where
    B: http_body::Body<Data = Bytes, Error: std::fmt::Display> + Unpin,
{
    timeout(REQUEST_LIMIT, receive_without_limit(body, share)).await.unwrap_or_else(|_| {
        let error = format!("no request received within {} s", REQUEST_LIMIT.as_secs());
        Err(Status::deadline_exceeded(error))
    })
}

async fn receive_without_limit<B>(mut body: B, share: &Share) -> Result<RequestMessage, Status>
where
    B: http_body::Body<Data = Bytes, Error: std::fmt::Display> + Unpin,
{
    let mut buffer = share.buffer();
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        let frame = frame.map_err(|error| Status::cancelled(format!("request ended: {error}")))?;
        if let Ok(data) = frame.into_data() {
            // Before the bytes are kept: with the header, the length of the message is known.
            let known = if buffer.as_ref().is_empty() { &*data } else { buffer.as_ref() };
            check_size(known, buffer.as_ref().len() + data.len())?;
            buffer.append(&data)?;
        }
    }
    match message_len(buffer.as_ref()) {
        Some(length) if FRAME_HEADER + length == buffer.as_ref().len() => {
            Ok(RequestMessage(buffer))
        }
        _ => Err(Status::invalid_argument("request is not one complete message")),
    }
}

/// Checks what is known of a message that begins with `start` and has `received` bytes so far.
fn check_size(start: &[u8], received: usize) -> Result<(), Status> {
    if start.first().is_some_and(|flag| *flag != 0) {
        return Err(Status::unimplemented("compressed requests are not supported"));
    }
    let length = message_len(start).unwrap_or(0).max(received.saturating_sub(FRAME_HEADER));
    if length > MESSAGE_LIMIT {
        return Err(too_long("request", length));
    }
    Ok(())
}

/// The length of a message from its header, which may be incomplete.
fn message_len(start: &[u8]) -> Option<usize> {
    let length = start.get(1..FRAME_HEADER)?.try_into().ok()?;
    usize::try_from(u32::from_be_bytes(length)).ok()
}

fn too_long(what: &str, length: usize) -> Status {
    let text =
        format!("{what} is at least {length} bytes long; the limit is {MESSAGE_LIMIT} bytes");
    Status::resource_exhausted(text)
}

/// The message of a response while it is built.
pub(crate) struct ResponseMessage(Buffer);

impl ResponseMessage {
    /// A response that consists of one message.
    ///
    /// # Errors
    /// The message exceeds [`MESSAGE_LIMIT`] or the budget.
    pub(crate) fn of(message: &impl Message, share: &Share) -> Result<Self, Status> {
        let mut response = ResponseMessage::new(share)?;
        response.grow(message.encoded_len())?;
        message.encode_raw(response.0.bytes_mut());
        Ok(response)
    }

    /// A response without containers.
    pub(crate) fn new(share: &Share) -> Result<Self, Status> {
        let mut buffer = share.buffer();
        buffer.append(&[0; FRAME_HEADER])?;
        Ok(ResponseMessage(buffer))
    }

    /// Adds the response for one more container.
    ///
    /// # Errors
    /// The response would exceed [`MESSAGE_LIMIT`] or the budget.
    pub(crate) fn add_container(&mut self, container: &impl Message) -> Result<(), Status> {
        self.grow(field_len(CONTAINER, container))?;
        prost::encoding::message::encode(CONTAINER, container, self.0.bytes_mut());
        Ok(())
    }

    fn grow(&mut self, additional: usize) -> Result<(), Status> {
        let length = self.0.as_ref().len() - FRAME_HEADER + additional;
        if length > MESSAGE_LIMIT {
            return Err(too_long("response", length));
        }
        self.0.reserve(additional)
    }

    /// The response. Its memory is released when all of it is written.
    pub(crate) fn send(mut self) -> Response<Body> {
        let length =
            u32::try_from(self.0.as_ref().len() - FRAME_HEADER).expect("at most MESSAGE_LIMIT");
        self.0.bytes_mut()[1..FRAME_HEADER].copy_from_slice(&length.to_be_bytes());
        let message = Bytes::from_owner(self.0);
        let mut response = Response::new(Body::new(ResponseBody::Message(message)));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        response
    }
}

/// What of a response is not sent yet.
enum ResponseBody {
    Message(Bytes),
    Trailers,
    Nothing,
}

impl http_body::Body for ResponseBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        Poll::Ready(match std::mem::replace(&mut *self, ResponseBody::Nothing) {
            ResponseBody::Message(message) => {
                *self = ResponseBody::Trailers;
                Some(Ok(Frame::data(message)))
            }
            ResponseBody::Trailers => {
                let success = (STATUS, HeaderValue::from_static("0"));
                Some(Ok(Frame::trailers(HeaderMap::from_iter([success]))))
            }
            ResponseBody::Nothing => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use tonic::Code;

    use super::*;
    use crate::memory_budget::MemoryBudget;

    /// A body that arrives in parts.
    struct Parts(VecDeque<Bytes>);

    impl http_body::Body for Parts {
        type Data = Bytes;
        type Error = Status;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
            Poll::Ready(self.0.pop_front().map(|part| Ok(Frame::data(part))))
        }
    }

    async fn receive_parts(parts: &[&[u8]]) -> Result<Vec<u8>, (Code, String)> {
        let parts = Parts(parts.iter().map(|part| Bytes::copy_from_slice(part)).collect());
        let received = receive(parts, MemoryBudget::default().others()).await;
        let error = |status: Status| (status.code(), status.message().to_owned());
        received.map(|message| message.bytes().to_vec()).map_err(error)
    }

    #[tokio::test]
    async fn a_message_arrives_in_any_parts() {
        assert_eq!(receive_parts(&[&[0, 0, 0, 0, 0]]).await.unwrap(), b"");
        assert_eq!(receive_parts(&[&[0], &[0, 0], &[0, 3, b'a'], b"bc"]).await.unwrap(), b"abc");
    }

    #[tokio::test]
    async fn anything_but_one_message_is_refused() {
        let incomplete = "request is not one complete message".to_owned();
        for parts in [&[][..], &[&[0, 0]], &[&[0, 0, 0, 0, 2, 1]], &[&[0, 0, 0, 0, 0], &[0]]] {
            let refused = receive_parts(parts).await.unwrap_err();
            assert_eq!(refused, (Code::InvalidArgument, incomplete.clone()), "{parts:?}");
        }
        let (code, text) = receive_parts(&[&[1, 0, 0, 0, 0]]).await.unwrap_err();
        assert_eq!((code, &*text), (Code::Unimplemented, "compressed requests are not supported"));
    }

    /// The header is enough to refuse a message, and without one, the bytes that arrived are.
    #[tokio::test]
    async fn a_long_message_is_refused_before_it_arrives() {
        let (code, text) = receive_parts(&[&[0, 0, 0x40, 0, 1]]).await.unwrap_err();
        let expected = "request is at least 4194305 bytes long; the limit is 4194304 bytes";
        assert_eq!((code, &*text), (Code::ResourceExhausted, expected));
        let chunk = vec![0; 1024 * 1024];
        let (code, _) = receive_parts(&[&chunk; 5]).await.unwrap_err();
        assert_eq!(code, Code::ResourceExhausted);
    }
}
