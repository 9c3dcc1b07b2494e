//! Why a request has failed.

use std::error::Error;
use std::io;
use std::time::Duration;

use kube::core::Status;
use tower::BoxError;

/// A request has failed. Each of these may be temporary.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The server with this URL cannot be reached, or is not the one that was asked for.
    #[error("cannot reach the API server {0}")]
    Unreachable(String, #[source] BoxError),
    /// The API server did not answer this request within the limit.
    #[error("the API server {1} did not answer the request to {0} within {limit} s", limit = .2.as_secs())]
    Timeout(&'static str, String, Duration),
    /// The server ended the answer to this request before it contained anything.
    #[error(
        "the API server {1} ended the answer to the request to {0} before it contained anything"
    )]
    Ended(&'static str, String),
    /// The server refuses this request.
    #[error("the API server refused to {0} with {code}: {message}", code = .1.code, message = .1.message)]
    Refused(&'static str, Box<Status>),
}

/// The kind of a failure. Two failures of one kind may have different texts, for example because
/// one contains a port number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FailureKind {
    /// The server cannot be reached.
    Unreachable,
    /// The server does not answer.
    Timeout,
    /// The server ends its answer before it contains anything.
    Ended,
    /// The server answers with this status.
    Refused(u16),
    /// Not a request failed, but the operating system.
    Local(io::ErrorKind),
}

impl ClusterError {
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        match self {
            ClusterError::Unreachable(..) => FailureKind::Unreachable,
            ClusterError::Timeout(..) => FailureKind::Timeout,
            ClusterError::Ended(..) => FailureKind::Ended,
            ClusterError::Refused(_, status) => FailureKind::Refused(status.code),
        }
    }

    /// Whether the same request may succeed soon: the server is overloaded, or restarts.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        match self.kind() {
            FailureKind::Unreachable | FailureKind::Timeout | FailureKind::Ended => true,
            FailureKind::Refused(code) => code == 429 || code >= 500,
            FailureKind::Local(_) => false,
        }
    }

    /// What an administrator can do.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            ClusterError::Unreachable(_, error) if names_certificate(error.as_ref()) => {
                "the certificate authority of the account or of the kubeconfig file must have signed the server's certificate"
            }
            ClusterError::Ended(..) => {
                "check the API server, and the proxies between it and this node: they must let a watch last"
            }
            ClusterError::Unreachable(..) | ClusterError::Timeout(..) => {
                "check that the API server is running and can be reached from this node"
            }
            ClusterError::Refused(_, status) => match status.code {
                401 => {
                    "the token or certificate has expired or is unknown: check the service account, or the kubeconfig file"
                }
                403 | 422 if status.code == 403 || self.is_of_policy() => {
                    "apply the roles, their bindings and the ValidatingAdmissionPolicy of deploy/feature-discovery.yml"
                }
                404 => "check the name of the node: `--node-name`, or the variable NODE_NAME",
                _ => return None,
            },
        })
    }

    /// Whether an admission policy refuses the request.
    #[must_use]
    pub fn is_of_policy(&self) -> bool {
        matches!(self, ClusterError::Refused(_, status) if status.message.contains("AdmissionPolicy"))
    }

    /// Whether an admission policy or an admission webhook refuses the request. RBAC decides before
    /// them.
    #[must_use]
    pub fn is_of_admission(&self) -> bool {
        let is_of_webhook = matches!(self, ClusterError::Refused(_, status) if status.message.contains("admission webhook"));
        is_of_webhook || self.is_of_policy()
    }

    /// The token for the rest of a list that is too old to be continued, if the server has sent one.
    #[must_use]
    pub fn next_page(&self) -> Option<String> {
        let ClusterError::Refused(_, status) = self else { return None };
        status.metadata.as_ref()?.continue_.clone().filter(|token| !token.is_empty())
    }

    /// When to ask again, if the server says so.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        let ClusterError::Refused(_, status) = self else { return None };
        let seconds = status.details.as_ref()?.retry_after_seconds;
        (seconds > 0).then(|| Duration::from_secs(seconds.into()))
    }
}

fn names_certificate(error: &(dyn Error + 'static)) -> bool {
    error.to_string().contains("certificate") || error.source().is_some_and(names_certificate)
}
