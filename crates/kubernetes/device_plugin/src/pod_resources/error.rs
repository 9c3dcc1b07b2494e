//! Why the kubelet's pods cannot be read.

use std::io;
use std::path::Path;
use std::time::Duration;

use strum::{IntoStaticStr, VariantArray};
use tonic::{Code, Status};

use crate::connection;
use crate::text::printable;

/// Why a list of pods could not be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct PodResourcesError {
    /// The kind of the failure.
    pub reason: FailureReason,
    /// What failed, with its causes.
    pub message: String,
    /// What an administrator can do about the failure, if that is known.
    pub hint: Option<&'static str>,
}

/// The kinds of failures that are counted separately. Their names are values of a metric, which
/// never change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
pub enum FailureReason {
    /// The kubelet has no endpoint: it is not running, or too old.
    Missing,
    /// The endpoint, or the kubelet behind it, refuses the request.
    Refused,
    /// The kubelet did not answer in time.
    Timeout,
    /// The kubelet's limit of requests per second is exhausted by all its clients together.
    Exhausted,
    /// A lost connection, or an answer that is not valid.
    Other,
}

impl FailureReason {
    /// All reasons, in a fixed order.
    pub const ALL: &'static [FailureReason] = FailureReason::VARIANTS;

    /// The value of a label, one lower-case word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl PodResourcesError {
    fn new(reason: FailureReason, message: String) -> Self {
        PodResourcesError { reason, message, hint: None }
    }

    /// The error of an attempt to connect.
    pub(super) fn of_connect(endpoint: &Path, error: &io::Error) -> Self {
        let path = printable(&endpoint.display().to_string());
        if error.kind() == io::ErrorKind::NotFound {
            let message = format!("kubelet's pod resources endpoint `{path}` does not exist");
            let hint = Some(if cfg!(windows) {
                "check that kubelet is running; on Windows, kubelets serve pod resources since \
                 Kubernetes 1.28"
            } else {
                "check that kubelet is running and which `--root-dir` it uses"
            });
            return PodResourcesError { hint, ..Self::new(FailureReason::Missing, message) };
        }
        let message =
            format!("cannot connect to kubelet's pod resources endpoint `{path}`: {error}");
        let run_as = if cfg!(windows) {
            "run the plugin as SYSTEM or an administrator, in a HostProcess container"
        } else {
            "run the plugin as root"
        };
        let hint = (error.kind() == io::ErrorKind::PermissionDenied).then_some(run_as);
        PodResourcesError { hint, ..Self::new(FailureReason::Refused, message) }
    }

    /// No complete answer arrived within `limit`.
    pub(super) fn timeout(limit: Duration) -> Self {
        let message = format!("kubelet did not list its pods within {} ms", limit.as_millis());
        Self::new(FailureReason::Timeout, message)
    }

    /// The connection ended before the answer was complete.
    pub(super) fn lost(cause: &str) -> Self {
        let message = format!("kubelet closed the connection before it listed its pods: {cause}");
        Self::new(FailureReason::Other, message)
    }

    /// The error of a call.
    pub(super) fn of_call(status: &Status) -> Self {
        if let Some(cause) = connection::lost(status) {
            return Self::lost(&cause);
        }
        let (reason, hint) = match status.code() {
            Code::ResourceExhausted => (
                FailureReason::Exhausted,
                Some(
                    "find the program that calls kubelet's pod resources API more than 100 times \
                     a second",
                ),
            ),
            Code::DeadlineExceeded => (FailureReason::Timeout, None),
            // tonic itself reports these codes, for a message that is too long or is not one.
            Code::OutOfRange | Code::Internal => (FailureReason::Other, None),
            _ => (FailureReason::Refused, None),
        };
        let text = printable(status.message());
        let code = status.code();
        let message = format!("kubelet refused to list its pods: {text} ({code:?})");
        PodResourcesError { hint, ..Self::new(reason, message) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_a_reason_a_text_and_where_it_is_known_a_hint() {
        let connect = |kind: io::ErrorKind| {
            PodResourcesError::of_connect(Path::new("/kubelet.sock"), &io::Error::from(kind))
        };
        let call = |status| PodResourcesError::of_call(&status);
        let cases = [
            (connect(io::ErrorKind::NotFound), FailureReason::Missing, "does not exist", true),
            (
                connect(io::ErrorKind::PermissionDenied),
                FailureReason::Refused,
                "permission denied",
                true,
            ),
            (
                connect(io::ErrorKind::ConnectionRefused),
                FailureReason::Refused,
                "connection refused",
                false,
            ),
            (
                call(Status::resource_exhausted("rate limit")),
                FailureReason::Exhausted,
                "kubelet refused to list its pods: rate limit (ResourceExhausted)",
                true,
            ),
            (
                call(Status::unimplemented("unknown\nservice")),
                FailureReason::Refused,
                r"unknown\nservice (Unimplemented)",
                false,
            ),
            (
                call(Status::deadline_exceeded("slow")),
                FailureReason::Timeout,
                "slow (DeadlineExceeded)",
                false,
            ),
            (
                PodResourcesError::timeout(Duration::from_millis(200)),
                FailureReason::Timeout,
                "kubelet did not list its pods within 200 ms",
                false,
            ),
        ];
        for (error, reason, text, has_hint) in cases {
            let shown = error.to_string();
            assert!(shown.contains(text), "{shown}");
            assert_eq!((error.reason, error.hint.is_some()), (reason, has_hint), "{shown}");
        }
    }
}
