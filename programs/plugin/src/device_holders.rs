//! Which devices containers hold, asked when the grace time of a removed device has expired, and
//! while containers use a driver that was replaced.
//!
//! In comes the kubelet's `PodResources` API; out go the holders, or `None` if the kubelet does not
//! report them in time. The question is asked on a thread of its own and shares its answers with
//! the metrics, so that however many devices disappear, the kubelet is asked at most once a second.

use std::sync::Arc;
use std::time::Duration;

use daemon::background_query::BackgroundQuery;
use daemon::event_loop;
use kubelet::pod_resources::{Attribution, PodAttribution};
use tokio::time::{Instant, sleep_until};

/// How long to wait for an answer. The kubelet gets half a second, and after that only the
/// grace time decides.
const LIMIT: Duration = Duration::from_secs(2);

/// Asks which devices are held, for a node whose last allocation was at this time. It blocks,
/// perhaps for ever.
pub(crate) type AskHolders = Arc<dyn Fn(Option<Instant>) -> Option<Arc<Attribution>> + Send + Sync>;

/// Asks the kubelet.
pub(crate) fn ask_kubelet(pods: Arc<PodAttribution>) -> AskHolders {
    Arc::new(move |last_allocation| {
        let event_loop = event_loop::build().ok()?;
        event_loop.block_on(pods.current(last_allocation))
    })
}

/// The question and its answer.
pub(crate) struct DeviceHolders {
    /// `None`: there is no kubelet to ask.
    ask: Option<AskHolders>,
    query: BackgroundQuery<Option<Arc<Attribution>>>,
    /// Until when to wait for the answer; `None` if nothing was asked.
    until: Option<Instant>,
    pub(crate) limit: Duration,
}

impl DeviceHolders {
    /// A question to nobody: the answer is always `None`.
    pub(crate) fn unknown() -> DeviceHolders {
        let effect = "removed devices are dropped after their grace time";
        let query = BackgroundQuery::new("device holders", effect);
        DeviceHolders { ask: None, query, until: None, limit: LIMIT }
    }

    /// A question that `ask` answers.
    pub(crate) fn new(ask: AskHolders) -> DeviceHolders {
        DeviceHolders { ask: Some(ask), ..DeviceHolders::unknown() }
    }

    /// Whether an answer is awaited.
    pub(crate) fn is_asked(&self) -> bool {
        self.until.is_some()
    }

    /// Asks. While an earlier question hangs, no other is asked.
    pub(crate) fn ask(&mut self, last_allocation: Option<Instant>) {
        let now = Instant::now();
        let Some(ask) = &self.ask else {
            self.until = Some(now);
            return;
        };
        self.until = Some(now + self.limit);
        if !self.query.is_running() {
            let ask = Arc::clone(ask);
            self.query.start(move || ask(last_allocation));
        }
    }

    /// Waits for the answer. Never completes if nothing was asked.
    pub(crate) async fn next(&mut self) -> Option<Arc<Attribution>> {
        loop {
            let until = self.until;
            let too_late = async {
                match until {
                    Some(until) => sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                answer = self.query.answer() => if self.until.take().is_some() {
                    return answer;
                },
                () = too_late => {
                    self.until = None;
                    return None;
                }
            }
        }
    }
}

/// A pod that holds each of these slots of a resource.
#[cfg(test)]
pub(crate) fn attribution(slots: &[(&str, &str)]) -> Attribution {
    use kubelet::pod_resources::{Assignment, Holder};
    let name = || "x".to_owned();
    let holder = || Holder { namespace: name(), pod: "render".to_owned(), container: name() };
    Attribution::new(slots.iter().map(|(resource, slot)| Assignment {
        holder: Arc::new(holder()),
        resource: (*resource).to_owned(),
        device_ids: vec![(*slot).to_owned()],
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use std::sync::mpsc::{Receiver, channel};

    /// Much longer than anything takes on a slow machine.
    const ENOUGH: Duration = Duration::from_secs(120);

    fn held() -> Arc<Attribution> {
        Arc::new(attribution(&[("example.com/gpu", r"PCI\A\0")]))
    }

    /// Holders whose answer a test releases.
    fn hanging(limit: Duration) -> (DeviceHolders, std::sync::mpsc::Sender<()>) {
        let (release, released) = channel();
        let released: Mutex<Receiver<()>> = Mutex::new(released);
        let ask = move |_| {
            let _ = released.lock().unwrap().recv();
            Some(held())
        };
        (DeviceHolders { limit, ..DeviceHolders::new(Arc::new(ask)) }, release)
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

    #[tokio::test]
    async fn a_kubelet_that_hangs_is_not_waited_for_and_its_late_answer_is_discarded() {
        let (mut holders, release) = hanging(Duration::from_millis(20));
        holders.ask(None);
        assert_eq!(holders.next().await, None);
        // A second question starts no second thread.
        holders.ask(None);
        assert_eq!(holders.next().await, None);
        release.send(()).unwrap();
        let began = Instant::now();
        while holders.query.is_running() {
            let next = tokio::time::timeout(Duration::from_millis(20), holders.next()).await;
            assert!(next.is_err() && began.elapsed() < ENOUGH);
        }
        drop(release);
        holders.limit = ENOUGH;
        holders.ask(None);
        assert_eq!(holders.next().await, Some(held()));
    }

    #[tokio::test]
    async fn an_endpoint_that_does_not_exist_answers_that_nothing_is_known() {
        let path = if cfg!(windows) { r"\\.\pipe\no-kubelet" } else { "/nowhere/kubelet.sock" };
        let endpoint = kubelet::pod_resources::Endpoint::new(path).unwrap();
        let ask = ask_kubelet(Arc::new(PodAttribution::new(endpoint)));
        let mut holders = DeviceHolders { limit: ENOUGH, ..DeviceHolders::new(ask) };
        holders.ask(None);
        assert_eq!(holders.next().await, None);
    }
}
