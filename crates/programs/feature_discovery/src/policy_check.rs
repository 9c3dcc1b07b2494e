//! Whether an admission policy restricts the account of this program. Pure, but for the log.
//!
//! A policy that matches no request does not fail, so the program asks once for something that the
//! policy must refuse.

use std::time::Duration;

use cluster::ClusterError;
use tokio::time::Instant;

use crate::reconcile::Attempt;

/// A label that the policy does not permit.
pub(crate) const LABEL: &str = "example.com/directx-feature-discovery";

/// How long after the first sight of the node to ask. What installs the program creates the policy
/// at the same time, and an API server applies a new policy after a moment.
const PATIENCE: Duration = Duration::from_mins(1);

const HINT: &str = "apply the ValidatingAdmissionPolicy directx-feature-discovery of \
     deploy/feature-discovery.yml and its binding, or set featureDiscovery.admissionPolicy of the \
     chart; its condition its-account must match the account of this pod. If you leave the policy \
     out on purpose, use --no-policy-check";

/// The question, until it is answered.
pub(crate) struct PolicyCheck {
    /// When to ask for the first time, once the node is known.
    not_before: Option<Instant>,
    attempt: Attempt,
}

impl PolicyCheck {
    pub(crate) fn new() -> PolicyCheck {
        PolicyCheck { not_before: None, attempt: Attempt::new() }
    }

    /// When to ask, unless the question is on its way. The node is known.
    pub(crate) fn due(&mut self, now: Instant) -> Option<Instant> {
        let at = *self.not_before.get_or_insert(now + PATIENCE);
        (!self.attempt.is_running).then(|| self.attempt.due(at))
    }

    /// The question is on its way.
    pub(crate) fn started(&mut self) {
        self.attempt.is_running = true;
    }

    /// Whether this answer is the last one. RBAC refuses a request before a policy is asked, and a
    /// server that cannot be reached has not asked it either.
    pub(crate) fn is_last(&mut self, answer: &Result<(), ClusterError>, now: Instant) -> bool {
        self.attempt.is_running = false;
        match answer {
            Ok(()) => {
                tracing::warn!(
                    hint = HINT,
                    "no admission policy restricts the account of this pod"
                );
                true
            }
            Err(error) if error.is_of_admission() => true,
            Err(error) => {
                self.attempt.failed(error.kind(), error.retry_after(), now);
                false
            }
        }
    }
}
