//! Why a request has failed.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// The part of a request's path by which a request for a `NodeFeature` object is recognised.
pub(crate) const NODE_FEATURES: &str = "/nodefeatures/";

/// A request has failed. Each of these may be temporary.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The token cannot be read.
    #[error("cannot read the token `{}`", path.display())]
    Token {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The server cannot be reached, or is not the one that was asked for.
    #[error("cannot connect to the API server {server}")]
    Connect {
        /// Its URL.
        server: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// There is no answer.
    #[error("the API server has not answered {request} within {} s", limit.as_secs())]
    Timeout {
        /// The request.
        request: String,
        /// The time limit.
        limit: Duration,
    },
    /// The connection broke.
    #[error("the connection to the API server ended during {request}")]
    Lost {
        /// The request.
        request: String,
        /// Why.
        #[source]
        source: hyper::Error,
    },
    /// The server refuses the request.
    #[error("the API server refused {request} with {code}: {message}")]
    Refused {
        /// The request.
        request: String,
        /// The status of HTTP.
        code: u16,
        /// The server's reason.
        message: String,
        /// When to ask again, if the server says so.
        retry_after: Option<Duration>,
    },
    /// The answer is too large or not JSON.
    #[error("the API server answered {request} with something else than {expected}")]
    Answer {
        /// The request.
        request: String,
        /// What was expected.
        expected: &'static str,
    },
}

impl ClusterError {
    /// What an administrator can do.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            ClusterError::Token { .. } => Some(
                "the pod needs `automountServiceAccountToken: true`, or a kubeconfig file with a \
                 token that exists",
            ),
            ClusterError::Connect { source, .. } if source.kind() == io::ErrorKind::InvalidData => {
                Some(
                    "the certificate authority of the account or of the kubeconfig file must have signed the server's certificate",
                )
            }
            ClusterError::Connect { .. } | ClusterError::Timeout { .. } => {
                Some("check that the API server is running and can be reached from this node")
            }
            ClusterError::Refused { code: 404, request, .. } if request.contains(NODE_FEATURES) => {
                Some(
                    "install Node Feature Discovery 0.14 or newer, which defines NodeFeature, or remove `--node-feature`",
                )
            }
            ClusterError::Refused { code, .. } => refusal_hint(*code),
            ClusterError::Lost { .. } | ClusterError::Answer { .. } => None,
        }
    }

    /// When to ask again, if the server says so.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            ClusterError::Refused { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Whether the object does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, ClusterError::Refused { code: 404, .. })
    }

    /// Whether the object has changed since it was read.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        matches!(self, ClusterError::Refused { code: 409, .. })
    }
}

fn refusal_hint(code: u16) -> Option<&'static str> {
    match code {
        401 => Some(
            "the token or certificate has expired or is unknown: check the service account, or the kubeconfig file",
        ),
        403 | 422 => Some(
            "apply the roles, their bindings and the ValidatingAdmissionPolicy of deploy/feature-discovery.yml",
        ),
        404 => Some("check the name of the node: `--node-name`, or the variable NODE_NAME"),
        _ => None,
    }
}
