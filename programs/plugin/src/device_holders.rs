//! Which devices containers hold, asked when the grace period of a removed device has expired, and
//! while containers use a driver that was replaced.
//!
//! A separate thread asks the kubelet, and shares the answers with the metrics. However many devices
//! disappear, it asks at most once a second.

use std::sync::Arc;
use std::time::Duration;

use kubelet::pod_resources::{Attribution, FailureReason, PodAttribution};
use node::daemon::background_query::BackgroundQuery;
use node::daemon::event_loop;
use tokio::time::{Instant, sleep_until};

/// When to ask again if the kubelet did not answer: as often as its answers are renewed.
const PAUSE: Duration = Duration::from_secs(10);

/// The holders, or why the kubelet does not report them.
pub(crate) type Answer = Result<Arc<Attribution>, FailureReason>;

/// Asks which devices are held, for a node whose last allocation was at this time. It blocks,
/// perhaps forever.
pub(crate) type AskHolders = Arc<dyn Fn(Option<Instant>) -> Answer + Send + Sync>;

/// Asks the kubelet.
pub(crate) fn ask_kubelet(pods: Arc<PodAttribution>) -> AskHolders {
    Arc::new(move |last_allocation| {
        let event_loop = event_loop::build().map_err(|_| FailureReason::Other)?;
        event_loop.block_on(pods.current(last_allocation))
    })
}

/// The question and its answer.
pub(crate) struct DeviceHolders {
    /// `None`: there is no kubelet to ask.
    ask: Option<AskHolders>,
    query: BackgroundQuery<Answer>,
    is_asked: bool,
    last_allocation: Option<Instant>,
    /// When to ask again.
    due: Option<Instant>,
    pub(crate) pause: Duration,
}

impl DeviceHolders {
    /// A question to nobody: the answer is always `None`.
    pub(crate) fn unknown() -> DeviceHolders {
        let query = BackgroundQuery::new("device holders", "removed devices stay listed");
        let (is_asked, last_allocation) = (false, None);
        DeviceHolders { ask: None, query, is_asked, last_allocation, due: None, pause: PAUSE }
    }

    /// A question that `ask` answers.
    pub(crate) fn new(ask: AskHolders) -> DeviceHolders {
        DeviceHolders { ask: Some(ask), ..DeviceHolders::unknown() }
    }

    /// Whether an answer is awaited.
    pub(crate) fn is_asked(&self) -> bool {
        self.is_asked
    }

    /// Asks. While an earlier question hangs, no other is asked.
    pub(crate) fn ask(&mut self, last_allocation: Option<Instant>) {
        (self.is_asked, self.last_allocation) = (true, last_allocation);
    }

    /// Waits for the answer: `None` if nobody reports holders. A kubelet that does not answer now is
    /// asked again. Never completes if nothing was asked. Cancel safe.
    pub(crate) async fn next(&mut self) -> Option<Arc<Attribution>> {
        if !self.is_asked {
            return std::future::pending().await;
        }
        let answer = loop {
            let Some(ask) = &self.ask else { break None };
            if let Some(due) = self.due {
                sleep_until(due).await;
                self.due = None;
            }
            if !self.query.is_running() {
                let (ask, last_allocation) = (Arc::clone(ask), self.last_allocation);
                self.query.start(move || ask(last_allocation));
            }
            match self.query.answer().await {
                Ok(holders) => break Some(holders),
                Err(FailureReason::Missing | FailureReason::Refused) => break None,
                Err(_) => self.due = Some(Instant::now() + self.pause),
            }
        };
        self.is_asked = false;
        answer
    }
}

/// A pod that holds each of these slots of a resource.
#[cfg(test)]
pub(crate) fn attribution(slots: &[(&str, &str)]) -> Attribution {
    use kubelet::pod_resources::Holder;
    let name = || "x".to_owned();
    let holder = || Holder { namespace: name(), pod: "render".to_owned(), container: name() };
    let held = |(resource, slot): &(&str, &str)| {
        ((*resource).to_owned(), (*slot).to_owned(), Arc::new(holder()))
    };
    slots.iter().map(held).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    fn held() -> Arc<Attribution> {
        Arc::new(attribution(&[("example.com/gpu", r"PCI\A\0")]))
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_kubelet_nothing_is_known() {
        let mut holders = DeviceHolders::unknown();
        let unasked = tokio::time::timeout(Duration::from_hours(1), holders.next()).await;
        assert!(unasked.is_err());
        holders.ask(None);
        assert!(holders.is_asked());
        assert_eq!(holders.next().await, None);
        assert!(!holders.is_asked());
    }

    /// A busy kubelet answers later than half a second after the question.
    #[tokio::test]
    async fn a_kubelet_that_does_not_answer_is_asked_again() {
        use FailureReason::{Exhausted, Other, Timeout};
        let answers = [Err(Timeout), Err(Exhausted), Err(Other), Ok(held())].into_iter();
        let answers = Mutex::new(answers);
        let ask = move |_| answers.lock().unwrap().next().unwrap();
        let pause = Duration::from_millis(5);
        let mut holders = DeviceHolders { pause, ..DeviceHolders::new(Arc::new(ask)) };
        holders.ask(None);
        // Whoever waits may do something else in between.
        while tokio::time::timeout(pause / 2, holders.next()).await.is_err() {
            assert!(holders.is_asked());
        }
        assert!(!holders.is_asked());
        holders.ask = None;
        holders.ask(None);
        assert_eq!(holders.next().await, None);
    }

    /// It never reports holders, so only the grace period decides.
    #[tokio::test]
    async fn a_kubelet_that_refuses_is_not_asked_again() {
        for reason in [FailureReason::Missing, FailureReason::Refused] {
            let mut holders = DeviceHolders::new(Arc::new(move |_| Err(reason)));
            holders.ask(None);
            assert_eq!(holders.next().await, None);
        }
    }

    #[tokio::test]
    async fn an_endpoint_that_does_not_exist_answers_that_nothing_is_known() {
        let path = if cfg!(windows) { r"\\.\pipe\no-kubelet" } else { "/nowhere/kubelet.sock" };
        let endpoint = kubelet::pod_resources::Endpoint::new(path).unwrap();
        let ask = ask_kubelet(Arc::new(PodAttribution::new(endpoint)));
        let mut holders = DeviceHolders::new(ask);
        holders.ask(None);
        assert_eq!(holders.next().await, None);
    }
}
