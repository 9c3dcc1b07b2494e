//! Compares the adapters that Windows lists with those of its graphics kernel, for the log.
//!
//! The comparison opens adapters that are not advertised, and one that hangs must not delay a
//! change of the others. So it runs separately, after the adapters have changed and nothing else
//! has changed for some time.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use host::{AdapterWarning, HostSnapshot, Luid};
use tokio::time::{Instant, sleep_until};

use crate::readers::background_query::BackgroundQuery;

/// Returns the warnings about adapters that only the graphics kernel lists; the argument are those
/// that Windows lists. It blocks, perhaps forever.
pub type CompareWithKernel = Arc<dyn Fn(&[Luid]) -> Vec<AdapterWarning> + Send + Sync>;

/// How long the adapters must stay the same. Adapters of a host that starts appear one after the
/// other, in the kernel first.
const SETTLED: Duration = Duration::from_secs(10);

/// The comparison with the graphics kernel, where there is one.
pub(crate) struct KernelComparison {
    compare: Option<CompareWithKernel>,
    query: BackgroundQuery<Vec<AdapterWarning>>,
    /// The adapters of the newest snapshot; `None` before the first.
    listed: Option<BTreeSet<Luid>>,
    /// When they are compared.
    due: Option<Instant>,
    /// Those of the last comparison.
    compared: Option<BTreeSet<Luid>>,
}

impl KernelComparison {
    pub(crate) fn new(compare: Option<CompareWithKernel>) -> KernelComparison {
        let effect = "the log does not name adapters that only the graphics kernel lists";
        KernelComparison {
            compare,
            query: BackgroundQuery::new("graphics kernel", effect),
            listed: None,
            due: None,
            compared: None,
        }
    }

    /// Compares the adapters of a snapshot later, if they are not those of the snapshot before.
    pub(crate) fn request(&mut self, snapshot: &HostSnapshot) {
        let listed = Some(snapshot.listed());
        if self.listed != listed {
            self.due = Some(Instant::now() + SETTLED);
            self.listed = listed;
        }
    }

    /// The next warnings. Never completes while the adapters stay the same.
    pub(crate) async fn next(&mut self) -> Vec<AdapterWarning> {
        loop {
            if self.query.is_running() {
                let warnings = self.query.answer().await;
                // An answer about earlier adapters may name one that was added later.
                if self.compared == self.listed {
                    return warnings;
                }
                continue;
            }
            let (Some(due), Some(compare)) = (self.due, &self.compare) else {
                return std::future::pending().await;
            };
            sleep_until(due).await;
            self.due = None;
            self.compared.clone_from(&self.listed);
            let compare = Arc::clone(compare);
            let listed: Vec<Luid> = self.listed.iter().flatten().copied().collect();
            self.query.start(move || compare(&listed));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc::{Receiver, channel};

    use host::{Adapter, WarningEffect};

    use super::*;
    use crate::node_devices::tests::two_gpus;

    fn warning(luid: i64) -> AdapterWarning {
        let text = "DXCore does not list H100".to_owned();
        AdapterWarning { luid: Luid(luid), text, effect: WarningEffect::NotListed }
    }

    /// A kernel that lists one more adapter, whose LUID a test sends.
    fn kernel(luids: Receiver<i64>) -> KernelComparison {
        let luids = Mutex::new(luids);
        KernelComparison::new(Some(Arc::new(move |_: &[Luid]| {
            vec![warning(luids.lock().unwrap().recv().unwrap())]
        })))
    }

    fn of(adapters: Vec<Adapter>) -> HostSnapshot {
        HostSnapshot { adapters, ..two_gpus() }
    }

    #[tokio::test(start_paused = true)]
    async fn only_changed_adapters_are_compared_and_only_after_a_while() {
        let (send, luids) = channel();
        let mut comparison = kernel(luids);
        let both = two_gpus();
        comparison.request(&both);
        let early = tokio::time::timeout(SETTLED / 2, comparison.next()).await;
        assert!(early.is_err() && !comparison.query.is_running());
        send.send(7).unwrap();
        assert_eq!(comparison.next().await, [warning(7)]);
        comparison.request(&both);
        assert!(tokio::time::timeout(10 * SETTLED, comparison.next()).await.is_err());
        assert!(!comparison.query.is_running());

        // A burst of changes is compared once.
        let [one, _] = <[Adapter; 2]>::try_from(both.adapters.clone()).unwrap();
        comparison.request(&of(vec![one]));
        comparison.request(&both);
        send.send(8).unwrap();
        assert_eq!(comparison.next().await, [warning(8)]);
    }

    #[tokio::test]
    async fn an_answer_about_earlier_adapters_is_dropped() {
        let (send, luids) = channel();
        let mut comparison = kernel(luids);
        comparison.request(&two_gpus());
        comparison.due = Some(Instant::now());
        let hangs = tokio::time::timeout(Duration::from_millis(20), comparison.next()).await;
        assert!(hangs.is_err() && comparison.query.is_running());
        comparison.request(&of(Vec::new()));
        comparison.due = Some(Instant::now());
        send.send(7).unwrap();
        send.send(8).unwrap();
        assert_eq!(comparison.next().await, [warning(8)]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_host_without_a_kernel_is_not_compared() {
        let mut comparison = KernelComparison::new(None);
        comparison.request(&two_gpus());
        assert!(tokio::time::timeout(10 * SETTLED, comparison.next()).await.is_err());
    }
}
