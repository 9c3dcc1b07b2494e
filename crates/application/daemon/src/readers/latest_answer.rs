//! The last answer to a question that may hang, for callers who must not wait for long.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use crate::readers::background_query::BackgroundQuery;

/// Answers a question, if it can, and returns the number of failures. It blocks, perhaps forever.
pub(super) type Ask<Q, A> = Box<dyn FnMut(Q) -> (Option<A>, u64) + Send>;

/// A question and its last answer.
pub(crate) struct LatestAnswer<Q, A> {
    /// `None` if there is no source of answers.
    ask: Option<Arc<std::sync::Mutex<Ask<Q, A>>>>,
    period: Duration,
    wait: Duration,
    state: Mutex<State<Q, A>>,
    timeouts: AtomicU64,
    failures: AtomicU64,
}

struct State<Q, A> {
    query: BackgroundQuery<(Option<A>, u64)>,
    /// When the current or last query started, and its question.
    asked: Option<(Instant, Q)>,
    /// The last answer, and when its query started.
    answer: Option<(Instant, A)>,
}

impl<Q, A> LatestAnswer<Q, A>
where
    Q: Clone + PartialEq + Send + 'static,
    A: Clone + Send + 'static,
{
    /// Questions to `ask`: the same one again after `period`. A caller waits for the answer, but no
    /// longer than `wait`.
    #[must_use]
    pub(crate) fn new(
        query: BackgroundQuery<(Option<A>, u64)>,
        period: Duration,
        wait: Duration,
        ask: Option<Ask<Q, A>>,
    ) -> LatestAnswer<Q, A> {
        let state = Mutex::new(State { query, asked: None, answer: None });
        let ask = ask.map(|ask| Arc::new(std::sync::Mutex::new(ask)));
        let [timeouts, failures] = [const { AtomicU64::new(0) }; 2];
        LatestAnswer { ask, period, wait, state, timeouts, failures }
    }

    /// The answer to `question`, or the last one if there is no new one in time, and its age. Only
    /// the first caller waits for a query that hangs.
    pub(crate) async fn get(&self, question: Q) -> Option<(A, Duration)> {
        let ask = Arc::clone(self.ask.as_ref()?);
        let mut state = self.state.lock().await;
        let is_running = state.query.is_running();
        let is_fresh = state
            .asked
            .as_ref()
            .is_some_and(|(at, asked)| at.elapsed() < self.period && *asked == question);
        if is_running || !is_fresh {
            if !is_running {
                state.asked = Some((Instant::now(), question.clone()));
                // The lock is poisoned if an earlier question panicked.
                state
                    .query
                    .start(move || (ask.lock().unwrap_or_else(PoisonError::into_inner))(question));
            }
            let wait = if is_running { Duration::ZERO } else { self.wait };
            match timeout(wait, state.query.answer()).await {
                Ok((answer, failures)) => {
                    self.failures.fetch_add(failures, Ordering::Relaxed);
                    if let (Some(answer), Some((at, _))) = (answer, &state.asked) {
                        state.answer = Some((*at, answer));
                    }
                }
                Err(_) => _ = self.timeouts.fetch_add(u64::from(!is_running), Ordering::Relaxed),
            }
        }
        state.answer.as_ref().map(|(at, answer)| (answer.clone(), at.elapsed()))
    }

    /// How many queries took longer than a caller waits, and how many other failures there were.
    pub(crate) fn failures(&self) -> [(&'static str, u64); 2] {
        [("timeout", &self.timeouts), ("other", &self.failures)]
            .map(|(reason, count)| (reason, count.load(Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc::{Sender, channel};

    use super::*;

    /// Longer than a slow machine needs for any step.
    const LONG: Duration = Duration::from_mins(2);

    /// A host whose answers a test sends, and how often it was asked.
    fn host(
        period: Duration,
        wait: Duration,
    ) -> (LatestAnswer<u32, u32>, Sender<Option<u32>>, Arc<AtomicU64>) {
        let (send, answers) = channel::<Option<u32>>();
        let answers = Mutex::new(answers);
        let asked = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&asked);
        let ask = move |question| {
            counter.fetch_add(1, Ordering::SeqCst);
            // The test ends without an answer.
            let answer = answers.lock().unwrap().recv().ok().flatten();
            (answer.map(|answer| question * 100 + answer), u64::from(answer.is_none()))
        };
        let query = BackgroundQuery::new("test", "none");
        (LatestAnswer::new(query, period, wait, Some(Box::new(ask))), send, asked)
    }

    async fn value(host: &LatestAnswer<u32, u32>, question: u32) -> Option<u32> {
        host.get(question).await.map(|(answer, _)| answer)
    }

    #[tokio::test]
    async fn an_answer_serves_every_caller_of_the_period_with_the_same_question() {
        let (host, answers, asked) = host(LONG, LONG);
        answers.send(Some(7)).unwrap();
        let both = tokio::join!(value(&host, 1), value(&host, 1));
        assert_eq!((both, asked.load(Ordering::SeqCst)), ((Some(107), Some(107)), 1));
        answers.send(Some(8)).unwrap();
        assert_eq!(value(&host, 2).await, Some(208));
        answers.send(None).unwrap();
        assert_eq!(value(&host, 3).await, Some(208), "the last answer");
        assert_eq!(asked.load(Ordering::SeqCst), 3);
        assert_eq!(host.failures(), [("timeout", 0), ("other", 1)]);
    }

    #[tokio::test]
    async fn a_query_that_hangs_delays_one_caller_and_its_late_answer_counts() {
        let (host, answers, asked) = host(Duration::ZERO, Duration::from_millis(20));
        for _ in 0..5 {
            assert_eq!(value(&host, 1).await, None);
        }
        assert_eq!(asked.load(Ordering::SeqCst), 1);
        assert_eq!(host.failures(), [("timeout", 1), ("other", 0)]);
        answers.send(Some(7)).unwrap();
        let began = std::time::Instant::now();
        while value(&host, 1).await != Some(107) {
            assert!(began.elapsed() < LONG);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // The next query hangs, and the answer grows old.
        let age = async || host.get(1).await.unwrap().1;
        let before = age().await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(age().await >= before + Duration::from_millis(20));
    }
}
