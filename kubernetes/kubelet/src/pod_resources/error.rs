//! Why the kubelet's pods cannot be read.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use tonic::{Code, Status};

use super::RESPONSE_LIMIT;
use crate::channel;
use crate::text::printable;

/// Why a list of pods could not be read.
#[derive(Debug, thiserror::Error)]
pub enum PodResourcesError {
    /// Nothing exists at the endpoint.
    #[error("kubelet's pod resources endpoint `{}` does not exist", shown(.path))]
    Missing {
        /// The endpoint.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The endpoint refuses connections.
    #[error("cannot connect to kubelet's pod resources endpoint `{}`", shown(.path))]
    Connect {
        /// The endpoint.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// No complete answer arrived in time.
    #[error("kubelet did not list its pods within {} ms", .0.as_millis())]
    Timeout(Duration),
    /// The connection ended before the answer was complete.
    #[error("kubelet closed the connection before it listed its pods")]
    Lost(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The kubelet answered with an error.
    #[error("kubelet refused to list its pods: {} ({:?})", printable(.0.message()), .0.code())]
    Refused(Status),
    /// The answer is larger than any node needs.
    #[error("kubelet's list of pods exceeds {RESPONSE_LIMIT} bytes")]
    TooLarge,
}

/// The kinds of failures that are counted separately.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FailureReason {
    /// The kubelet has no endpoint: it is not running, or too old.
    Missing,
    /// The endpoint, or the kubelet behind it, refuses the request.
    Refused,
    /// No answer in time.
    Timeout,
    /// The kubelet's limit of requests per second is exhausted by all its clients together.
    Exhausted,
    /// A lost connection, or an answer that is not valid.
    Other,
}

impl FailureReason {
    /// All reasons, in a fixed order.
    pub const ALL: [FailureReason; 5] =
        [Self::Missing, Self::Refused, Self::Timeout, Self::Exhausted, Self::Other];

    /// The value of a label, one lower-case word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Refused => "refused",
            Self::Timeout => "timeout",
            Self::Exhausted => "exhausted",
            Self::Other => "other",
        }
    }
}

impl fmt::Display for FailureReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl PodResourcesError {
    /// The error of an attempt to connect.
    pub(super) fn of_connect(path: PathBuf, source: io::Error) -> Self {
        if source.kind() == io::ErrorKind::NotFound {
            Self::Missing { path, source }
        } else {
            Self::Connect { path, source }
        }
    }

    /// The error of a call.
    pub(super) fn of_call(status: Status) -> Self {
        match status.code() {
            _ if channel::is_lost(&status) => Self::Lost(status.into()),
            // tonic's own, when the size in a message's header exceeds the limit.
            Code::OutOfRange => Self::TooLarge,
            _ => Self::Refused(status),
        }
    }

    /// The kind of the failure.
    #[must_use]
    pub fn reason(&self) -> FailureReason {
        match self {
            Self::Missing { .. } => FailureReason::Missing,
            Self::Connect { .. } => FailureReason::Refused,
            Self::Timeout(_) => FailureReason::Timeout,
            Self::Refused(status) => match status.code() {
                Code::ResourceExhausted => FailureReason::Exhausted,
                Code::DeadlineExceeded => FailureReason::Timeout,
                // tonic's own, for a message that is not one.
                Code::Internal => FailureReason::Other,
                _ => FailureReason::Refused,
            },
            Self::Lost(_) | Self::TooLarge => FailureReason::Other,
        }
    }

    /// What an administrator can do about the failure, if that is known.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Missing { .. } if cfg!(windows) => Some(
                "check that kubelet is running; on Windows, kubelets serve pod resources since \
                     Kubernetes 1.28",
            ),
            Self::Missing { .. } => {
                Some("check that kubelet is running and which `--root-dir` it uses")
            }
            Self::Connect { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                Some(if cfg!(windows) {
                    "run the plugin as SYSTEM or an administrator, in a HostProcess container"
                } else {
                    "run the plugin as root"
                })
            }
            Self::Refused(status) => match status.code() {
                Code::ResourceExhausted => Some(
                    "find the program that calls kubelet's pod resources API more than 100 times \
                     a second",
                ),
                Code::Unimplemented => Some("use Kubernetes 1.26 or newer"),
                _ => None,
            },
            _ => None,
        }
    }
}

fn shown(path: &std::path::Path) -> String {
    printable(&path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::ErrorChain;

    #[test]
    fn every_reason_has_its_own_label() {
        let labels: std::collections::BTreeSet<_> =
            FailureReason::ALL.iter().map(|reason| reason.as_str()).collect();
        assert_eq!(labels.len(), FailureReason::ALL.len());
    }

    #[test]
    fn failures_name_the_endpoint_the_reason_and_the_fix() {
        let connect =
            |kind: io::ErrorKind| PodResourcesError::of_connect("/run/k.sock".into(), kind.into());
        let cases = [
            (
                connect(io::ErrorKind::NotFound),
                FailureReason::Missing,
                "`/run/k.sock` does not exist",
                true,
            ),
            (
                connect(io::ErrorKind::PermissionDenied),
                FailureReason::Refused,
                "`/run/k.sock`: permission denied",
                true,
            ),
            (
                connect(io::ErrorKind::ConnectionRefused),
                FailureReason::Refused,
                "connection refused",
                false,
            ),
            (
                PodResourcesError::Timeout(Duration::from_millis(500)),
                FailureReason::Timeout,
                "within 500 ms",
                false,
            ),
            (
                PodResourcesError::of_call(Status::resource_exhausted("rejected by rate limit")),
                FailureReason::Exhausted,
                "rejected by rate limit (ResourceExhausted)",
                true,
            ),
            (
                PodResourcesError::of_call(Status::unimplemented("unknown\nservice")),
                FailureReason::Refused,
                r"unknown\nservice (Unimplemented)",
                true,
            ),
            (
                PodResourcesError::Lost("reset".into()),
                FailureReason::Other,
                "closed the connection",
                false,
            ),
        ];
        for (error, reason, text, has_hint) in cases {
            let shown = ErrorChain(&error).to_string();
            assert!(shown.contains(text), "{shown}");
            assert_eq!((error.reason(), error.hint().is_some()), (reason, has_hint), "{shown}");
        }
    }
}
