//! Keeps the kubelet's last answer for metrics.
//!
//! Input: readers, who know when a device was last allocated. Output: the newest [`Attribution`]. No task and no
//! timer exists: the kubelet is asked when somebody reads, at most once in ten seconds or a second
//! after an allocation, and a reader waits half a second at most.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::attribution::{Attribution, PodUids};
use super::endpoint::Endpoint;
use super::error::{FailureReason, PodResourcesError};
use super::list::{list, list_pod_uids};
use super::schedule::{Condition, MAX_AGE, is_due};
use crate::text::ErrorChain;

/// How long a reader waits for the kubelet, which usually answers within some milliseconds.
/// Prometheus waits ten seconds for a scrape.
const WAIT: Duration = Duration::from_millis(500);

/// A call of the kubelet in progress.
type Answer = Pin<Box<dyn Future<Output = Result<Attribution, PodResourcesError>> + Send>>;

/// Which container holds which device, as the kubelet last reported it.
pub struct PodAttribution {
    ask: Box<dyn Fn() -> Answer + Send + Sync>,
    /// Held while the kubelet is asked, so that concurrent readers ask once.
    asking: tokio::sync::Mutex<()>,
    state: Mutex<State>,
}

struct State {
    /// When the kubelet was asked the last time.
    asked: Option<Instant>,
    /// The last answer, and when it came.
    answer: Option<(Instant, Arc<Attribution>)>,
    condition: Condition,
    failures: [u64; FailureReason::ALL.len()],
}

/// How well the kubelet answers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AttributionStatistics {
    /// How often the kubelet did not answer, for every reason.
    pub failures: Vec<(FailureReason, u64)>,
    /// The age of the answer in use. `None` if there is none.
    pub age: Option<Duration>,
}

impl PodAttribution {
    /// An attribution by the kubelet at `endpoint`, which is not asked yet.
    #[must_use]
    pub fn new(endpoint: Endpoint) -> Self {
        Self::asking(move || {
            let endpoint = endpoint.clone();
            Box::pin(async move {
                let (assignments, uids) = tokio::join!(list(&endpoint, WAIT), uids(&endpoint));
                Ok(Attribution::new(assignments?).with_uids(uids))
            })
        })
    }

    fn asking(ask: impl Fn() -> Answer + Send + Sync + 'static) -> Self {
        PodAttribution {
            ask: Box::new(ask),
            asking: tokio::sync::Mutex::default(),
            state: Mutex::new(State {
                asked: None,
                answer: None,
                condition: Condition::Unknown,
                failures: [0; FailureReason::ALL.len()],
            }),
        }
    }

    /// The newest attribution. Asks the kubelet first if the last answer is too old, or if a device
    /// was allocated after it, at `allocated`, and at least a second has passed. While the kubelet
    /// fails to answer, this is its last answer, and `None` after five minutes.
    pub async fn current(&self, allocated: Option<Instant>) -> Option<Arc<Attribution>> {
        let _one_at_a_time = self.asking.lock().await;
        if self.begin(allocated) {
            let answer = (self.ask)().await;
            self.state().finish(answer, Instant::now());
        }
        self.state().answer.as_ref().map(|(_, attribution)| Arc::clone(attribution))
    }

    /// How well the kubelet has answered so far.
    #[must_use]
    pub fn statistics(&self) -> AttributionStatistics {
        let state = self.state();
        AttributionStatistics {
            failures: FailureReason::ALL.into_iter().zip(state.failures).collect(),
            age: state.answer.as_ref().map(|(answered, _)| answered.elapsed()),
        }
    }

    /// Whether to ask the kubelet now, which is recorded at once: a reader that goes away while
    /// the kubelet hangs must not let the next one wait again.
    fn begin(&self, allocated: Option<Instant>) -> bool {
        let (mut state, now) = (self.state(), Instant::now());
        let due = is_due(state.asked, allocated, now);
        if due {
            state.asked = Some(now);
        }
        due
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change under this lock is complete, so a poisoned lock still holds a valid state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn finish(&mut self, answer: Result<Attribution, PodResourcesError>, now: Instant) {
        let failure = answer.as_ref().err().map(PodResourcesError::reason);
        let condition = Condition::of(failure);
        if self.condition.is_news(condition) {
            log(answer.as_ref().err());
        }
        self.condition = condition;
        match answer {
            Ok(attribution) => self.answer = Some((now, Arc::new(attribution))),
            Err(error) => {
                self.failures[error.reason() as usize] += 1;
                self.answer.take_if(|(answered, _)| now - *answered > MAX_AGE);
            }
        }
    }
}

/// The UIDs of pods; none if the kubelet does not say. Nothing but labels depends on them.
async fn uids(endpoint: &Endpoint) -> PodUids {
    let Some(endpoint) = endpoint.pods_api() else { return PodUids::new() };
    list_pod_uids(&endpoint, WAIT).await.unwrap_or_else(|error| {
        tracing::debug!(error = ErrorChain(&error).to_string(), "the kubelet reports no pod UIDs");
        PodUids::new()
    })
}

/// Logs that the kubelet began to answer, or to fail.
fn log(error: Option<&PodResourcesError>) {
    let Some(error) = error else {
        tracing::info!("pod attribution is available");
        return;
    };
    let (text, hint) = (ErrorChain(error).to_string(), error.hint());
    if error.reason() == FailureReason::Missing {
        tracing::info!(error = text, hint, "pod attribution is unavailable");
    } else {
        tracing::warn!(error = text, hint, "cannot read pod attribution; metrics may lack pods");
    }
}

#[cfg(test)]
mod tests;
