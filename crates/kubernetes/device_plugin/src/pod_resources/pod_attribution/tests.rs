//! The cache against a kubelet whose answers a test chooses, on a paused clock.

use std::sync::atomic::{AtomicU32, Ordering};

use tokio::time::{advance, timeout};
use tonic::Status;

use super::*;
use crate::pod_resources::Holder;

/// What the kubelet does next, and how often it was asked.
#[derive(Clone, Default)]
struct Kubelet {
    asked: Arc<AtomicU32>,
    fails: Arc<std::sync::Mutex<Option<FailureReason>>>,
}

impl Kubelet {
    /// The pod that holds the device is named after the number of the answer.
    fn attribution(&self) -> PodAttribution {
        let kubelet = self.clone();
        PodAttribution::asking(move || {
            let kubelet = kubelet.clone();
            Box::pin(async move { kubelet.answer().await })
        })
    }

    async fn answer(&self) -> Result<Attribution, PodResourcesError> {
        let number = self.asked.fetch_add(1, Ordering::SeqCst);
        let failure = *self.fails.lock().unwrap();
        match failure {
            None => {
                let pod = format!("pod-{number}");
                let [namespace, container] = ["default", "main"].map(str::to_owned);
                let holder = Arc::new(Holder { namespace, pod, container });
                let mut attribution = Attribution::default();
                attribution.insert("example.com/gpu", "1".to_owned(), holder);
                Ok(attribution)
            }
            Some(FailureReason::Missing) => {
                let missing = std::io::ErrorKind::NotFound.into();
                Err(PodResourcesError::of_connect(Path::new("/kubelet.sock"), &missing))
            }
            Some(FailureReason::Timeout) => {
                tokio::time::sleep(WAIT).await;
                Err(PodResourcesError::timeout(WAIT))
            }
            Some(_) => Err(PodResourcesError::of_call(&Status::resource_exhausted("limit"))),
        }
    }

    fn set(&self, failure: Option<FailureReason>) {
        *self.fails.lock().unwrap() = failure;
    }

    fn asked(&self) -> u32 {
        self.asked.load(Ordering::SeqCst)
    }
}

async fn holder(pods: &PodAttribution) -> Option<String> {
    let attribution = pods.current().await.ok()?;
    attribution.holder("example.com/gpu", "1").map(|holder| holder.pod.clone())
}

async fn failures(pods: &PodAttribution, reason: FailureReason) -> u64 {
    pods.failures().await.into_iter().find(|(r, _)| *r == reason).unwrap().1
}

#[tokio::test(start_paused = true)]
async fn nobody_is_asked_while_nobody_reads() {
    let kubelet = Kubelet::default();
    let pods = kubelet.attribution();
    advance(Duration::from_hours(1)).await;
    assert_eq!(kubelet.asked(), 0);
    for _ in 0..100 {
        assert_eq!(holder(&pods).await.as_deref(), Some("pod-0"));
    }
    advance(Duration::from_secs(9)).await;
    assert_eq!(holder(&pods).await.as_deref(), Some("pod-0"));
    advance(Duration::from_secs(1)).await;
    assert_eq!(holder(&pods).await.as_deref(), Some("pod-1"));
    assert_eq!(kubelet.asked(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_counted_and_the_last_answer_stays_for_five_minutes() {
    let kubelet = Kubelet::default();
    let pods = kubelet.attribution();
    holder(&pods).await;
    for (reason, count) in [(FailureReason::Exhausted, 20), (FailureReason::Missing, 10)] {
        kubelet.set(Some(reason));
        for _ in 0..count {
            advance(Duration::from_secs(10)).await;
            assert_eq!(holder(&pods).await.as_deref(), Some("pod-0"));
        }
        assert_eq!(failures(&pods, reason).await, count);
    }
    assert_eq!(failures(&pods, FailureReason::Timeout).await, 0);
    advance(Duration::from_secs(10)).await;
    assert_eq!(holder(&pods).await, None);
    kubelet.set(None);
    advance(Duration::from_secs(10)).await;
    assert!(holder(&pods).await.is_some());
}

/// A kubelet that hangs costs one reader half a second, and the others no more.
#[tokio::test(start_paused = true)]
async fn readers_wait_once_for_a_kubelet_that_hangs() {
    let kubelet = Kubelet::default();
    kubelet.set(Some(FailureReason::Timeout));
    let pods = kubelet.attribution();
    let started = Instant::now();
    let reads = tokio::join!(pods.current(), pods.current(), pods.current());
    assert_eq!(reads.2, Err(FailureReason::Timeout));
    assert_eq!((kubelet.asked(), started.elapsed()), (1, WAIT));
    assert_eq!(failures(&pods, FailureReason::Timeout).await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_goes_away_leaves_nothing_behind() {
    let kubelet = Kubelet::default();
    kubelet.set(Some(FailureReason::Timeout));
    let pods = kubelet.attribution();
    assert!(timeout(WAIT / 2, pods.current()).await.is_err());
    let started = Instant::now();
    assert_eq!(pods.current().await, Err(FailureReason::Timeout));
    assert_eq!((kubelet.asked(), started.elapsed()), (1, Duration::ZERO));
    kubelet.set(None);
    advance(Duration::from_secs(10)).await;
    assert_eq!(holder(&pods).await.as_deref(), Some("pod-1"));
}

#[test]
fn only_changes_are_logged() {
    use FailureReason::{Exhausted, Missing, Timeout};
    for (before, now) in [(None, Missing), (None, Timeout), (Some(Missing), Timeout)] {
        assert!(is_news(before, now), "{before:?} {now:?}");
    }
    for (before, now) in [(Missing, Missing), (Timeout, Timeout), (Timeout, Exhausted)] {
        assert!(!is_news(Some(before), now), "{before:?} {now:?}");
    }
}
