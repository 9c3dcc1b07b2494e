//! Requests to the API server.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, RETRY_AFTER, USER_AGENT};
use http::{Method, Request};
use http_body_util::Full;
use hyper::body::Incoming;
use serde_json::Value;
use tokio::time::timeout;

use crate::ClusterError;
use crate::connection::{Connection, Security};
use crate::server::Access;
use crate::tls;

/// How long a connect may take, and how long an answer.
const LIMIT: Duration = Duration::from_secs(30);
/// The largest answer: a node with many images has some hundred KiB.
pub(crate) const MAX_ANSWER: usize = 4 << 20;

/// A client of one API server.
pub struct Client {
    access: Access,
    security: Security,
    program: String,
    connection: Option<Connection>,
}

/// The body of a request.
pub(crate) enum Body {
    None,
    Json(Value),
    /// A whole object for server-side apply; JSON is YAML.
    Apply(Value),
    /// The members of an object to replace.
    Merge(Value),
}

/// A request.
pub(crate) struct Call {
    pub(crate) method: Method,
    /// The path with its query, from `/api`.
    pub(crate) path: String,
    pub(crate) body: Body,
}

impl Call {
    /// As it is named in errors: without the query.
    pub(crate) fn name(&self) -> String {
        let path = self.path.split('?').next().unwrap_or_default();
        format!("{} {path}", self.method)
    }
}

impl Client {
    /// A client that calls itself `program`. It connects with the first request.
    ///
    /// # Errors
    /// The certificates cannot be used.
    pub fn new(access: Access, program: &str) -> io::Result<Client> {
        let security = Security::Tls(tls::connector(&access)?);
        Ok(Client { access, security, program: program.to_owned(), connection: None })
    }

    /// A client of a server without TLS.
    #[cfg(test)]
    pub(crate) fn without_tls(access: Access) -> Client {
        Client { access, security: Security::None, program: "test".to_owned(), connection: None }
    }

    /// A client of a server in the memory of a test.
    #[cfg(any(test, feature = "test_server"))]
    pub(crate) fn in_memory(access: Access, connect: crate::connection::MemoryConnect) -> Client {
        let security = Security::Memory(connect);
        Client { access, security, program: "test".to_owned(), connection: None }
    }

    /// Connects to another port from now on.
    #[cfg(test)]
    pub(crate) fn redirect(&mut self, port: u16) {
        self.access.server.port = port;
    }

    /// The namespace of this program's own objects.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.access.namespace()
    }

    /// Sends `call`, and reads its answer.
    pub(crate) async fn call(&mut self, call: Call) -> Result<Value, ClusterError> {
        let name = call.name();
        let answered = timeout(LIMIT, self.exchange(&call)).await;
        let bytes = answered.unwrap_or_else(|_| {
            self.connection = None;
            Err(ClusterError::Timeout { request: name.clone(), limit: LIMIT })
        })?;
        serde_json::from_slice(&bytes)
            .map_err(|_| ClusterError::Answer { request: name, expected: "JSON" })
    }

    async fn exchange(&mut self, call: &Call) -> Result<Vec<u8>, ClusterError> {
        // The server closes connections that are idle, perhaps at this moment: a call that breaks
        // on an old connection is repeated on a new one. Every call may be repeated.
        if let Some(connection) = self.connection.take().filter(|open| !open.has_ended()) {
            let request = self.request(call)?;
            match self.exchange_on(connection, request, call).await {
                Err(ClusterError::Lost { .. }) => {}
                answer => return answer,
            }
        }
        let request = self.request(call)?;
        let connection = self.connect().await?;
        self.exchange_on(connection, request, call).await
    }

    async fn exchange_on(
        &mut self,
        mut connection: Connection,
        request: Request<Full<Bytes>>,
        call: &Call,
    ) -> Result<Vec<u8>, ClusterError> {
        let lost = |source| ClusterError::Lost { request: call.name(), source };
        let answer = connection.send(request).await.map_err(lost)?;
        let (head, mut body) = answer.into_parts();
        let mut bytes = Vec::new();
        while let Some(data) = connection.data(&mut body).await.map_err(lost)? {
            if bytes.len() + data.len() > MAX_ANSWER {
                let (request, expected) = (call.name(), "at most 4 MiB");
                return Err(ClusterError::Answer { request, expected });
            }
            bytes.extend_from_slice(&data);
        }
        self.connection = Some(connection);
        if head.status.is_success() { Ok(bytes) } else { Err(refusal(call, &head, &bytes)) }
    }

    async fn connect(&self) -> Result<Connection, ClusterError> {
        let server = &self.access.server;
        Connection::open(server, &self.security)
            .await
            .map_err(|source| ClusterError::Connect { server: server.to_string(), source })
    }

    /// Starts an answer that does not end, on a connection of its own.
    pub(crate) async fn stream(&self, call: &Call) -> Result<(Connection, Incoming), ClusterError> {
        let start = async {
            let request = self.request(call)?;
            let mut connection = self.connect().await?;
            let lost = |source| ClusterError::Lost { request: call.name(), source };
            let answer = connection.send(request).await.map_err(lost)?;
            let (head, mut body) = answer.into_parts();
            if head.status.is_success() {
                return Ok((connection, body));
            }
            let mut bytes = Vec::new();
            while let Some(data) = connection.data(&mut body).await.map_err(lost)? {
                bytes.extend_from_slice(&data[..data.len().min(MAX_ANSWER - bytes.len())]);
            }
            Err(refusal(call, &head, &bytes))
        };
        let limit = LIMIT;
        let timed_out = |_| ClusterError::Timeout { request: call.name(), limit };
        timeout(limit, start).await.map_err(timed_out)?
    }

    fn request(&self, call: &Call) -> Result<Request<Full<Bytes>>, ClusterError> {
        let server = &self.access.server;
        let (content_type, body) = match &call.body {
            Body::None => (None, String::new()),
            Body::Json(value) => (Some("application/json"), value.to_string()),
            Body::Apply(value) => (Some("application/apply-patch+yaml"), value.to_string()),
            Body::Merge(value) => (Some("application/merge-patch+json"), value.to_string()),
        };
        let mut request = Request::builder()
            .method(call.method.clone())
            .uri(format!("{}{}", server.prefix, call.path))
            .header(HOST, server.authority())
            .header(USER_AGENT, &self.program)
            .header(ACCEPT, "application/json");
        if let Some(content_type) = content_type {
            request = request.header(CONTENT_TYPE, content_type);
        }
        if let Some(token) = self.access.credentials.header()? {
            request = request.header(AUTHORIZATION, token);
        }
        let (request_name, expected) = (call.name(), "a request that can be sent");
        request
            .body(Full::from(body))
            .map_err(|_| ClusterError::Answer { request: request_name, expected })
    }
}

/// The server's reason: the message of a `Status`, or what it wrote instead.
fn refusal(call: &Call, head: &http::response::Parts, body: &[u8]) -> ClusterError {
    let status: Option<Value> = serde_json::from_slice(body).ok();
    let message = status.as_ref().and_then(|status| status["message"].as_str());
    let text = String::from_utf8_lossy(body);
    let seconds = head.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    ClusterError::Refused {
        request: call.name(),
        code: head.status.as_u16(),
        message: message.unwrap_or(text.trim()).chars().take(512).collect(),
        retry_after: seconds.and_then(|text| text.parse().ok()).map(Duration::from_secs),
    }
}

/// `text` as a part of a path or as a value of a query.
pub(crate) fn percent_encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().fold(String::new(), |mut encoded, byte| {
        if plain(byte) {
            encoded.push(char::from(byte));
        } else {
            use std::fmt::Write as _;
            // Writing to a String cannot fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
        encoded
    })
}
