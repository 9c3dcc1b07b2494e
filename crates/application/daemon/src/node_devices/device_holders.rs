//! Which devices containers hold, asked when the grace period of a removed device has expired, and
//! when the driver of a device was replaced.
//!
//! The answers are shared with the metrics. However many devices disappear, the kubelet is asked at
//! most once a second.

use std::sync::Arc;
use std::time::Duration;

use device_plugin::pod_resources::{Attribution, FailureReason, PodAttribution};
use futures_util::future::BoxFuture;
use tokio::time::{Instant, sleep};

/// When to ask again if the kubelet did not answer: as often as its answers are renewed.
const PAUSE: Duration = Duration::from_secs(10);

/// How long a kubelet may restart: until then it has no endpoint, and then for a moment no pods,
/// whatever runs on the node.
const RESTART: Duration = Duration::from_mins(1);

/// The holders, or why the kubelet does not report them.
pub(crate) type Answer = Result<Arc<Attribution>, FailureReason>;

/// Asks which devices are held, for a node whose last allocation was at this time.
pub(crate) type AskHolders =
    Box<dyn Fn(Option<Instant>) -> BoxFuture<'static, Answer> + Send + Sync>;

/// Asks the kubelet.
pub(crate) fn ask_kubelet(pods: Arc<PodAttribution>) -> AskHolders {
    Box::new(move |last_allocation| {
        let pods = Arc::clone(&pods);
        Box::pin(async move { pods.current(last_allocation).await })
    })
}

/// The question and its answer.
pub(crate) struct DeviceHolders {
    ask: Arc<AskHolders>,
    /// The answer that is awaited.
    answer: Option<BoxFuture<'static, Option<Arc<Attribution>>>>,
}

impl DeviceHolders {
    /// A question that no kubelet answers, so that the answer is always `None`.
    pub(crate) fn unknown() -> DeviceHolders {
        DeviceHolders::new(Box::new(|_| Box::pin(async { Err(FailureReason::Missing) })))
    }

    /// A question that `ask` answers.
    pub(crate) fn new(ask: AskHolders) -> DeviceHolders {
        DeviceHolders { ask: Arc::new(ask), answer: None }
    }

    /// Whether an answer is awaited.
    pub(crate) fn is_asked(&self) -> bool {
        self.answer.is_some()
    }

    /// Asks for the holders. A kubelet that does not answer now is asked again. One that has no
    /// endpoint or no pods is believed after a minute.
    pub(crate) fn ask(&mut self, last_allocation: Option<Instant>) {
        let ask = Arc::clone(&self.ask);
        let restarted = Instant::now() + RESTART;
        self.answer = Some(Box::pin(async move {
            loop {
                let may_restart = Instant::now() < restarted;
                match ask(last_allocation).await {
                    Ok(holders) if holders.has_pods() || !may_restart => return Some(holders),
                    Err(FailureReason::Missing | FailureReason::Refused) if !may_restart => {
                        return None;
                    }
                    _ => sleep(PAUSE).await,
                }
            }
        }));
    }

    /// The holders now, from a kubelet that is asked only once.
    pub(crate) fn now(&self, last_allocation: Option<Instant>) -> BoxFuture<'static, Answer> {
        (self.ask)(last_allocation)
    }

    /// Waits for the answer: `None` if no kubelet reports holders. Never completes if nothing was
    /// asked. Cancel safe.
    pub(crate) async fn next(&mut self) -> Option<Arc<Attribution>> {
        let Some(answer) = &mut self.answer else { return std::future::pending().await };
        let holders = answer.await;
        self.answer = None;
        holders
    }
}

/// A pod that holds each of these replicas of a resource.
#[cfg(test)]
pub(crate) fn attribution(replicas: &[(&str, &str)]) -> Attribution {
    use device_plugin::pod_resources::Holder;
    let [namespace, pod, container] = ["x", "render", "x"].map(str::to_owned);
    let holder = Arc::new(Holder { namespace, pod, container });
    let mut attribution = Attribution::default();
    for (resource, replica) in replicas {
        attribution.insert(resource, (*replica).to_owned(), Arc::clone(&holder));
    }
    attribution
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn held() -> Arc<Attribution> {
        Arc::new(attribution(&[("example.com/gpu", r"PCI\A\0")]))
    }

    fn asking(answer: impl Fn() -> Option<Answer> + Send + Sync + 'static) -> DeviceHolders {
        let answer = move || std::future::ready(answer().unwrap());
        DeviceHolders::new(Box::new(move |_| Box::pin(answer())))
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
    #[tokio::test(start_paused = true)]
    async fn a_kubelet_that_does_not_answer_is_asked_again() {
        use FailureReason::{Exhausted, Other, Timeout};
        let answers = [Err(Timeout), Err(Exhausted), Err(Other), Ok(held())].into_iter();
        let answers = Mutex::new(answers);
        let mut holders = asking(move || answers.lock().unwrap().next());
        holders.ask(None);
        // Whoever waits may do something else in between.
        while tokio::time::timeout(PAUSE / 2, holders.next()).await.is_err() {
            assert!(holders.is_asked());
        }
        assert!(!holders.is_asked());
    }

    /// What a kubelet answers while it restarts. If that lasts, it never reports holders, or the node
    /// has no pods, so only the grace period decides.
    #[tokio::test(start_paused = true)]
    async fn a_kubelet_that_restarts_is_asked_for_a_minute() {
        let restarting: [fn() -> Answer; 3] =
            [|| Err(FailureReason::Missing), || Err(FailureReason::Refused), || Ok(Arc::default())];
        for answer in restarting {
            let mut holders = asking(move || Some(answer()));
            holders.ask(None);
            let start = Instant::now();
            assert_eq!(holders.next().await, answer().ok());
            assert_eq!(start.elapsed(), RESTART);

            let asked = AtomicUsize::new(0);
            let mut holders = asking(move || {
                let is_running = asked.fetch_add(1, Ordering::SeqCst) == 2;
                Some(if is_running { Ok(held()) } else { answer() })
            });
            holders.ask(None);
            assert_eq!(holders.next().await, Some(held()));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_endpoint_that_does_not_exist_answers_that_nothing_is_known() {
        let path = if cfg!(windows) { r"\\.\pipe\no-kubelet" } else { "/nowhere/kubelet.sock" };
        let ask = ask_kubelet(Arc::new(PodAttribution::new(path.into())));
        let mut holders = DeviceHolders::new(ask);
        holders.ask(None);
        assert_eq!(holders.next().await, None);
    }
}
