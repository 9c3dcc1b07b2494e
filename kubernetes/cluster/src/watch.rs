//! The node object, and every change of it.

use std::time::Duration;

use http::Method;
use hyper::body::Incoming;
use serde_json::Value;
use tokio::time::timeout;

use crate::client::{Body, Call, MAX_ANSWER, percent_encoded};
use crate::connection::Connection;
use crate::{Client, ClusterError, Node};

/// How long the server keeps a watch open. The server ends it, so that connections are
/// distributed over its replicas again.
const WATCH: Duration = Duration::from_secs(3600);
/// How long a node that exists may take to appear.
const FIRST: Duration = Duration::from_secs(30);

/// Follows one node object.
pub struct NodeWatch {
    name: String,
    stream: Option<Stream>,
}

struct Stream {
    connection: Connection,
    body: Incoming,
    buffer: Vec<u8>,
    call: Call,
    has_node: bool,
}

impl NodeWatch {
    /// Follows the node called `name`. Nothing is requested yet.
    #[must_use]
    pub fn new(name: &str) -> NodeWatch {
        NodeWatch { name: name.to_owned(), stream: None }
    }

    /// The node now, or when it has changed; `None` if it was deleted. After an error, the next
    /// call begins again. Nothing is lost if this is dropped before it completes, except that a
    /// connect begins again.
    pub async fn next(&mut self, client: &Client) -> Result<Option<Node>, ClusterError> {
        loop {
            let stream = match &mut self.stream {
                Some(stream) => stream,
                closed => closed.insert(Stream::open(client, &self.name).await?),
            };
            match stream.next().await {
                Ok(Some(change)) => return Ok(change),
                Ok(None) => self.stream = None,
                Err(error) => {
                    self.stream = None;
                    return Err(error);
                }
            }
        }
    }
}

impl Stream {
    async fn open(client: &Client, name: &str) -> Result<Stream, ClusterError> {
        // Without a version, the first event contains the node as it is.
        let path = format!(
            "/api/v1/nodes?watch=true&timeoutSeconds={}&fieldSelector=metadata.name%3D{}",
            WATCH.as_secs(),
            percent_encoded(name)
        );
        let call = Call { method: Method::GET, path, body: Body::None };
        let (connection, body) = client.stream(&call).await?;
        Ok(Stream { connection, body, buffer: Vec::new(), call, has_node: false })
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
