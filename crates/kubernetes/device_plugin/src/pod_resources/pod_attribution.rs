//! Keeps the kubelet's last answer for metrics.
//!
//! No task and no timer exists: the kubelet is asked for a reader, at most once in ten seconds, and a
//! reader waits half a second at most.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::attribution::{Attribution, PodUids};
use super::endpoint::pods_api;
use super::error::{FailureReason, PodResourcesError};
use super::list::{list, list_pod_uids};

/// How long a reader waits for the kubelet, which usually answers within some milliseconds.
/// Prometheus waits ten seconds for a scrape.
const WAIT: Duration = Duration::from_millis(500);

/// How old an answer may get while it is read. Pods come and go more slowly than Prometheus
/// usually scrapes.
const PERIOD: Duration = Duration::from_secs(10);

/// How long an answer is used while the kubelet gives no newer one: longer than a kubelet takes to
/// restart. After that, its pods may be gone.
const MAX_AGE: Duration = Duration::from_mins(5);

/// A call of the kubelet in progress.
type Answer = Pin<Box<dyn Future<Output = Result<Attribution, PodResourcesError>> + Send>>;

/// Which container holds which device, as the kubelet last reported it.
pub struct PodAttribution {
    ask: Box<dyn Fn() -> Answer + Send + Sync>,
    /// Locked while the kubelet is asked, so that concurrent readers ask once.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// When the kubelet was asked the last time.
    asked: Option<Instant>,
    /// The last answer, and when it came.
    answer: Option<(Instant, Arc<Attribution>)>,
    /// Why the kubelet did not answer the last question, if it did not.
    failure: Option<FailureReason>,
    failures: [u64; FailureReason::ALL.len()],
}

impl PodAttribution {
    /// An attribution by the kubelet at `endpoint`, which is not asked yet.
    #[must_use]
    pub fn new(endpoint: PathBuf) -> Self {
        Self::asking(move || {
            let endpoint = endpoint.clone();
            Box::pin(async move {
                let (holders, uids) = tokio::join!(list(&endpoint, WAIT), uids(&endpoint));
                Ok(holders?.with_uids(uids))
            })
        })
    }

    fn asking(ask: impl Fn() -> Answer + Send + Sync + 'static) -> Self {
        PodAttribution { ask: Box::new(ask), state: Mutex::default() }
    }

    /// The newest attribution. Asks the kubelet first if the last answer is too old.
    ///
    /// # Errors
    /// Why the kubelet does not answer, if it has not answered in the last five minutes.
    pub async fn current(&self) -> Result<Arc<Attribution>, FailureReason> {
        let mut state = self.state.lock().await;
        let now = Instant::now();
        if state.asked.is_none_or(|asked| now - asked >= PERIOD) {
            // The time is stored before the answer: a reader that goes away while the kubelet hangs
            // must not let the next one wait again.
            state.asked = Some(now);
            state.finish((self.ask)().await, Instant::now());
        }
        let answer = state.answer.as_ref().map(|(_, attribution)| Arc::clone(attribution));
        // If there is no failure either, the reader that asked went away.
        answer.ok_or(state.failure.unwrap_or(FailureReason::Timeout))
    }

    /// How often the kubelet did not answer, for every reason.
    pub async fn failures(&self) -> Vec<(FailureReason, u64)> {
        FailureReason::ALL.iter().copied().zip(self.state.lock().await.failures).collect()
    }
}

impl State {
    fn finish(&mut self, answer: Result<Attribution, PodResourcesError>, now: Instant) {
        let before = self.failure;
        self.failure = answer.as_ref().err().map(|error| error.reason);
        match answer {
            Ok(attribution) => {
                if before.is_some() {
                    tracing::info!("pod attribution is available");
                }
                self.answer = Some((now, Arc::new(attribution)));
            }
            Err(error) => {
                self.failures[error.reason as usize] += 1;
                self.answer.take_if(|(answered, _)| now - *answered > MAX_AGE);
                if is_news(before, error.reason) {
                    log(&error);
                }
            }
        }
    }
}

/// Whether to log a failure: the first one, and each change between "no endpoint", which is normal
/// on some nodes, and other failures.
fn is_news(before: Option<FailureReason>, now: FailureReason) -> bool {
    before
        .is_none_or(|before| (before == FailureReason::Missing) != (now == FailureReason::Missing))
}

/// The UIDs of pods; none if the kubelet does not say. Nothing but labels depends on them.
async fn uids(endpoint: &Path) -> PodUids {
    let Some(endpoint) = pods_api(endpoint) else { return PodUids::new() };
    list_pod_uids(&endpoint, WAIT).await.unwrap_or_else(|error| {
        tracing::debug!(%error, "the kubelet reports no pod UIDs");
        PodUids::new()
    })
}

fn log(error: &PodResourcesError) {
    let hint = error.hint;
    if error.reason == FailureReason::Missing {
        tracing::info!(%error, hint, "pod attribution is unavailable");
    } else {
        tracing::warn!(%error, hint, "cannot read pod attribution; metrics may lack pods");
    }
}

#[cfg(test)]
mod tests;
