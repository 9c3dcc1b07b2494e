//! The node object, and every change of it.

use std::time::Duration;

use http::Method;
use hyper::body::Incoming;
use serde_json::Value;
use tokio::time::{Instant, sleep_until, timeout};

use crate::client::{Body, Call, MAX_ANSWER, percent_encoded};
use crate::connection::Connection;
use crate::retry::{Retry, random_time};
use crate::{Client, ClusterError, Node};

/// How long the server keeps a watch open at most, and at least half of it: random, so that the
/// watches of nodes that were started together do not end together. The server ends it, so that
/// connections are distributed over its replicas again.
const WATCH: Duration = Duration::from_secs(3600);
/// The limit of the pause before a watch begins again; it doubles with each watch that fails or
/// ends early. A server that ends also ends the watches of all nodes.
const PAUSE: Duration = Duration::from_secs(4);
/// A watch that ends after less than this ends early.
const EARLY: Duration = Duration::from_secs(60);
/// How long a node that exists may take to appear.
const FIRST: Duration = Duration::from_secs(30);

/// Follows one node object.
pub struct NodeWatch {
    name: String,
    stream: Option<Stream>,
    pub(crate) pauses: Retry,
    /// No watch begins before this time.
    next: Option<Instant>,
    answer_time: Duration,
}

struct Stream {
    connection: Connection,
    body: Incoming,
    buffer: Vec<u8>,
    call: Call,
    has_node: bool,
    opened: Instant,
}

impl NodeWatch {
    /// Follows the node called `name`. Nothing is requested yet.
    #[must_use]
    pub fn new(name: &str) -> NodeWatch {
        let pauses = Retry::from_limit(PAUSE);
        NodeWatch {
            name: name.to_owned(),
            stream: None,
            pauses,
            next: None,
            answer_time: Duration::ZERO,
        }
    }

    /// The node now, or when it has changed; `None` if it was deleted. After an error, the next
    /// call begins again after a [`pause`](NodeWatch::pause). Nothing is lost if this is dropped
    /// before it completes, except that a connect begins again.
    pub async fn next(&mut self, client: &Client) -> Result<Option<Node>, ClusterError> {
        loop {
            if let Some(at) = self.next {
                sleep_until(at).await;
                self.next = None;
            }
            let stream = match &mut self.stream {
                Some(stream) => stream,
                closed => {
                    let start = Instant::now();
                    match Stream::open(client, &self.name).await {
                        Ok(stream) => {
                            self.answer_time = start.elapsed();
                            closed.insert(stream)
                        }
                        Err(error) => return Err(self.failed(error)),
                    }
                }
            };
            match stream.next().await {
                Ok(Some(change)) => return Ok(change),
                Ok(None) => self.end(None),
                Err(error) => return Err(self.failed(error)),
            }
        }
    }

    /// How long until the next watch begins; zero if one does not wait.
    #[must_use]
    pub fn pause(&self) -> Duration {
        self.next.map_or(Duration::ZERO, |at| at - Instant::now())
    }

    /// How long the server has taken to accept the newest watch, with the connect.
    #[must_use]
    pub fn answer_time(&self) -> Duration {
        self.answer_time
    }

    fn failed(&mut self, error: ClusterError) -> ClusterError {
        self.end(error.retry_after());
        error
    }

    /// The watch has ended, or could not begin; the server may want a pause of this length.
    fn end(&mut self, wanted: Option<Duration>) {
        if self.stream.take().is_some_and(|stream| stream.opened.elapsed() >= EARLY) {
            self.pauses.succeeded();
        }
        self.next = Some(Instant::now() + self.pauses.failed(wanted));
    }
}

impl Stream {
    async fn open(client: &Client, name: &str) -> Result<Stream, ClusterError> {
        // Without a version, the first event contains the node as it is.
        let path = format!(
            "/api/v1/nodes?watch=true&timeoutSeconds={}&fieldSelector=metadata.name%3D{}",
            (WATCH / 2 + random_time(WATCH / 2)).as_secs(),
            percent_encoded(name)
        );
        let call = Call { method: Method::GET, path, body: Body::None };
        let (connection, body) = client.stream(&call).await?;
        let opened = Instant::now();
        Ok(Stream { connection, body, buffer: Vec::new(), call, has_node: false, opened })
    }

    /// The next change; `None` at the end of the watch.
    async fn next(&mut self) -> Result<Option<Option<Node>>, ClusterError> {
        let limit = if self.has_node { WATCH + FIRST } else { FIRST };
        let missing = |call: &Call| ClusterError::Refused {
            request: call.name(),
            code: 404,
            message: format!("no such node within {} s", FIRST.as_secs()),
            retry_after: None,
        };
        let line = match timeout(limit, self.line()).await {
            Ok(line) => line?,
            Err(_) if self.has_node => return Ok(None),
            Err(_) => return Err(missing(&self.call)),
        };
        let Some(line) = line else { return Ok(None) };
        let malformed =
            |_| ClusterError::Answer { request: self.call.name(), expected: "events of a watch" };
        let mut event: Value = serde_json::from_slice(&line).map_err(malformed)?;
        let object = event["object"].take();
        match event["type"].as_str() {
            Some("ADDED" | "MODIFIED") => {
                self.has_node = true;
                Ok(Some(Some(Node(object))))
            }
            Some("DELETED") => Ok(Some(None)),
            _ => Err(ClusterError::Refused {
                request: self.call.name(),
                code: object["code"].as_u64().and_then(|code| code.try_into().ok()).unwrap_or(500),
                message: object["message"].as_str().unwrap_or("the watch ended").to_owned(),
                retry_after: None,
            }),
        }
    }

    /// The next line; `None` at the end.
    async fn line(&mut self) -> Result<Option<Vec<u8>>, ClusterError> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let rest = self.buffer.split_off(end + 1);
                return Ok(Some(std::mem::replace(&mut self.buffer, rest)));
            }
            let lost = |source| ClusterError::Lost { request: self.call.name(), source };
            let Some(data) = self.connection.data(&mut self.body).await.map_err(lost)? else {
                return Ok(None);
            };
            if self.buffer.len() + data.len() > MAX_ANSWER {
                let (request, expected) = (self.call.name(), "at most 4 MiB");
                return Err(ClusterError::Answer { request, expected });
            }
            self.buffer.extend_from_slice(&data);
        }
    }
}
