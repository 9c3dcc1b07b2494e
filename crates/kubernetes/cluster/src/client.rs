//! Requests to the API server: how long they may take, and what their failures mean.

use std::time::Duration;

use http::header::{RETRY_AFTER, USER_AGENT};
use http::{HeaderValue, Response};
use http_body::Body;
use http_body_util::BodyExt;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::Config;
use kube::client::{Client as Kube, ConfigExt};
use kube::core::Status;
use serde_json::json;
use tokio::time::timeout;
use tower::{BoxError, ServiceBuilder, ServiceExt};

use crate::access::{Access, AccessError};
use crate::error::ClusterError;

/// How long an answer may take, with the connect.
const LIMIT: Duration = Duration::from_secs(30);
/// The silence after which the operating system asks whether the other side still exists. Load
/// balancers drop connections that are silent for minutes, without a notice.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// A client for the object of one node.
#[derive(Clone)]
pub struct Client {
    pub(crate) kube: Kube,
    /// The URL of the API server.
    pub(crate) server: String,
    pub(crate) node: String,
    /// The field manager, and the name in the API server's audit log.
    pub(crate) program: &'static str,
}

impl Client {
    /// A client for `program` and the node called `node`. It connects with the first request. It
    /// needs a tokio runtime from now on.
    pub fn new(access: Access, program: &'static str, node: &str) -> Result<Client, AccessError> {
        let Access { mut config, path } = access;
        config.headers.push((USER_AGENT, HeaderValue::from_static(program)));
        let server = config.cluster_url.to_string();
        let kube =
            connect(&config).map_err(|error| AccessError::Unusable(path, error.to_string()))?;
        Ok(Client { kube, server, node: node.to_owned(), program })
    }

    /// The same client for the node called `node`.
    #[must_use]
    pub fn for_node(&self, node: &str) -> Client {
        Client { node: node.to_owned(), ..self.clone() }
    }

    /// Waits for the answer to a request that is to do `what`.
    pub(crate) async fn answer<T>(
        &self,
        what: &'static str,
        request: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, ClusterError> {
        match timeout(LIMIT, request).await {
            Ok(answer) => answer.map_err(|error| self.failure(what, error)),
            Err(_) => Err(ClusterError::Timeout(what, self.server.clone(), LIMIT)),
        }
    }

    pub(crate) fn failure(&self, what: &'static str, error: kube::Error) -> ClusterError {
        match error {
            kube::Error::Api(status) => ClusterError::Refused(what, status),
            kube::Error::Service(error) => ClusterError::Unreachable(self.server.clone(), error),
            error => ClusterError::Unreachable(self.server.clone(), error.into()),
        }
    }
}

/// `kube`'s own stack also logs each failure as an error, and has no keep-alive.
fn connect(config: &Config) -> kube::Result<Kube> {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_keepalive(Some(KEEP_ALIVE));
    connector.set_keepalive_interval(Some(KEEP_ALIVE));
    let connector = config.rustls_https_connector_with_connector(connector)?;
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(legacy::Client::builder(TokioExecutor::new()).build(connector));
    Ok(Kube::new(service.and_then(read_retry_after), config.default_namespace.trim()))
}

/// A server that is overloaded asks for a pause in a header, which `kube` does not read.
pub(crate) async fn read_retry_after<B>(response: Response<B>) -> Result<Response<B>, BoxError>
where
    B: Body<Error: Into<BoxError>>,
{
    let seconds = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    match seconds.and_then(|text| text.parse::<u32>().ok()) {
        Some(seconds) if !response.status().is_success() => {
            let code = response.status().as_u16();
            let body = response.into_body().collect().await.map_err(Into::into)?.to_bytes();
            // Not every refusal is an object: an overloaded server answers with plain text.
            let text = String::from_utf8_lossy(&body);
            let mut status: Status =
                serde_json::from_slice(&body).unwrap_or_else(|_| Status::failure(text.trim(), ""));
            status.code = code;
            status.details = serde_json::from_value(json!({"retryAfterSeconds": seconds}))?;
            Err(kube::Error::Api(status.boxed()).into())
        }
        _ => Ok(response),
    }
}
