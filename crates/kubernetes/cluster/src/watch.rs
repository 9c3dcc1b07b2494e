//! The node object, and every change of it.

use std::time::Duration;

use futures_util::stream::{BoxStream, StreamExt};
use k8s_openapi::api::core::v1::Node;
use kube::api::{WatchEvent, WatchParams};
use kube::core::Status;
use tokio::time::timeout;

use crate::client::Client;
use crate::error::ClusterError;

/// How long the server keeps a watch open at least, and at most twice as long: random, so that the
/// watches of nodes that were started together do not end together. The server ends it, so that
/// connections are distributed over its replicas again. `kube`'s own watches last five minutes.
const WATCH_SECONDS: u32 = 1800;
/// When this side ends a watch that the server should have ended.
const END: Duration = Duration::from_secs(3700);
/// How long a node that exists may take to appear.
const FIRST: Duration = Duration::from_secs(30);
const FOLLOW: &str = "follow the node object";

/// Follows the node object of a client.
#[derive(Default)]
pub struct NodeWatch(Option<Stream>);

struct Stream {
    events: BoxStream<'static, kube::Result<WatchEvent<Node>>>,
    has_node: bool,
}

impl NodeWatch {
    /// The node as it is, or its next change. `None` at the end of the watch. After that and after
    /// an error, the next call begins another watch. Nothing is lost if this is dropped before it
    /// completes, except that a connect begins again.
    pub async fn next(
        &mut self,
        client: &Client,
    ) -> Result<Option<WatchEvent<Node>>, ClusterError> {
        let stream = match &mut self.0 {
            Some(stream) => stream,
            closed => closed.insert(Stream::open(client).await?),
        };
        let had_node = stream.has_node;
        let event = stream.next().await.transpose();
        if !matches!(event, Ok(Some(_))) {
            self.0 = None;
        }
        match event {
            // The first event of each watch contains the node as it is.
            Ok(None) if !had_node => Err(ClusterError::Ended(FOLLOW, client.server.clone())),
            event => event.map_err(|error| client.failure(FOLLOW, error)),
        }
    }
}

impl Stream {
    async fn open(client: &Client) -> Result<Stream, ClusterError> {
        let seconds = fastrand::u32(WATCH_SECONDS..=2 * WATCH_SECONDS);
        let name = format!("metadata.name={}", client.node);
        let params = WatchParams::default().disable_bookmarks().fields(&name).timeout(seconds);
        // Without a version, the first event contains the node as it is.
        let events = client.answer(FOLLOW, client.nodes().watch(&params, "")).await?.boxed();
        Ok(Stream { events, has_node: false })
    }

    async fn next(&mut self) -> Option<kube::Result<WatchEvent<Node>>> {
        let limit = if self.has_node { END } else { FIRST };
        let event = timeout(limit, self.events.next()).await;
        let has_node = std::mem::replace(&mut self.has_node, true);
        match event {
            Ok(Some(Ok(WatchEvent::Error(status)))) => Some(Err(kube::Error::Api(status))),
            Ok(event) => event,
            Err(_) if has_node => None,
            Err(_) => {
                let message = format!("no such node within {} s", FIRST.as_secs());
                let status = Status::failure(&message, "").with_code(404);
                Some(Err(kube::Error::Api(status.boxed())))
            }
        }
    }
}
