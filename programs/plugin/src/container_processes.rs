//! The processes of the containers that hold devices, for metrics.
//!
//! In come the containers, from the kubelet; out come their processes, from the host. The host is
//! read when somebody asks, at most once in ten seconds, on a thread of its own. Who asks waits
//! half a second at most, and only once for a host that hangs.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kubelet::pod_resources::Attribution;
use tokio::time::{Instant, timeout};
use win32::container_processes::{ContainerName, ContainerProcess, ContainerProcessesError};

use daemon::background_query::BackgroundQuery;

/// How old an answer may get.
const PERIOD: Duration = Duration::from_secs(10);

/// How long to wait for an answer, which usually takes some milliseconds.
const WAIT: Duration = Duration::from_millis(500);

/// How long an answer is used while there is no newer one. Windows reuses process IDs.
const MAX_AGE: Duration = Duration::from_secs(60);

type Answer = Result<Vec<ContainerProcess>, ContainerProcessesError>;

/// Reads the processes of containers. It blocks, perhaps for ever.
type Read = Box<dyn FnMut(&BTreeSet<ContainerName>) -> Answer + Send>;

/// The processes of containers, as last read.
pub(crate) struct ContainerProcesses {
    read: Option<Arc<Mutex<Read>>>,
    wait: Duration,
    state: tokio::sync::Mutex<State>,
    failed: AtomicU64,
    timeouts: AtomicU64,
}

struct State {
    query: BackgroundQuery<Answer>,
    /// When the current or last query started, and for which containers.
    asked: Option<(Instant, BTreeSet<ContainerName>)>,
    /// The last answer, and when its query started.
    answer: Option<(Instant, Vec<ContainerProcess>)>,
    is_failing: bool,
}

/// The containers that hold devices of the resources for which `is_ours` is true.
pub(crate) fn holders(
    attribution: &Attribution,
    is_ours: impl Fn(&str) -> bool,
) -> BTreeSet<ContainerName> {
    let ours = attribution.iter().filter(|(resource, ..)| is_ours(resource));
    ours.map(|(_, _, holder)| ContainerName {
        namespace: holder.namespace.clone(),
        pod: holder.pod.clone(),
        container: holder.container.clone(),
    })
    .collect()
}

impl ContainerProcesses {
    /// The processes of this host. Only Windows reports them.
    pub(crate) fn of_host() -> Self {
        #[cfg(windows)]
        {
            let mut host = win32::container_processes::ContainerProcesses::of_host();
            Self::new(Some(Box::new(move |containers| host.read(containers))))
        }
        #[cfg(not(windows))]
        Self::new(None)
    }

    fn new(read: Option<Read>) -> Self {
        let query = BackgroundQuery::new("containers", "metrics have no processes of containers");
        let state = State { query, asked: None, answer: None, is_failing: false };
        ContainerProcesses {
            read: read.map(|read| Arc::new(Mutex::new(read))),
            wait: WAIT,
            state: tokio::sync::Mutex::new(state),
            failed: AtomicU64::new(0),
            timeouts: AtomicU64::new(0),
        }
    }

    /// The processes of `containers`, at most 4096. While the host gives no newer answer, this is
    /// its last one, and after a minute an empty one.
    pub(crate) async fn current(
        &self,
        containers: BTreeSet<ContainerName>,
    ) -> Vec<ContainerProcess> {
        let Some(read) = &self.read else { return Vec::new() };
        let mut state = self.state.lock().await;
        if let Some(is_new) = state.ask(read, &containers) {
            let wait = if is_new { self.wait } else { Duration::ZERO };
            match timeout(wait, state.query.answer()).await {
                Ok(Ok(processes)) => state.accept(processes),
                Ok(Err(error)) => {
                    self.failed.fetch_add(1, Ordering::Relaxed);
                    state.fail(&error);
                }
                Err(_) if is_new => {
                    self.timeouts.fetch_add(1, Ordering::Relaxed);
                }
                // It was counted before.
                Err(_) => {}
            }
        }
        state.processes_of(&containers)
    }

    /// How often the host gave no answer, by reason.
    pub(crate) fn failures(&self) -> [(&'static str, u64); 2] {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        [("timeout", count(&self.timeouts)), ("other", count(&self.failed))]
    }
}

impl State {
    /// Starts a query if one is due. Returns whether the running query is a new one; `None` without a
    /// query.
    fn ask(
        &mut self,
        read: &Arc<Mutex<Read>>,
        containers: &BTreeSet<ContainerName>,
    ) -> Option<bool> {
        if self.query.is_running() {
            return Some(false);
        }
        let is_fresh = |(asked, about): &(Instant, BTreeSet<ContainerName>)| {
            asked.elapsed() < PERIOD && about == containers
        };
        if self.asked.as_ref().is_some_and(is_fresh) {
            return None;
        }
        self.asked = Some((Instant::now(), containers.clone()));
        let (read, containers) = (Arc::clone(read), containers.clone());
        self.query.start(move || {
            // A read that panicked leaves what it knew, which the next one checks again.
            (read.lock().unwrap_or_else(PoisonError::into_inner))(&containers)
        });
        Some(true)
    }

    fn accept(&mut self, processes: Vec<ContainerProcess>) {
        if std::mem::take(&mut self.is_failing) {
            tracing::info!("processes of containers are available");
        }
        self.answer = self.asked.as_ref().map(|(asked, _)| (*asked, processes));
    }

    fn fail(&mut self, error: &ContainerProcessesError) {
        if !std::mem::replace(&mut self.is_failing, true) {
            let error = cli::error_chain(error);
            let hint = "run the plugin as SYSTEM in a HostProcess container";
            tracing::warn!(error, hint, "cannot read processes of containers");
        }
    }

    fn processes_of(&self, containers: &BTreeSet<ContainerName>) -> Vec<ContainerProcess> {
        let current = self.answer.as_ref().filter(|(asked, _)| asked.elapsed() <= MAX_AGE);
        let processes = current.into_iter().flat_map(|(_, processes)| processes);
        processes.filter(|process| containers.contains(&process.name)).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use daemon::test_log::Log;
    use std::sync::atomic::AtomicU32;
    use std::sync::mpsc::{Sender, channel};

    /// Much longer than an answer takes.
    const LONG: Duration = Duration::from_secs(120);

    fn name(pod: &str) -> ContainerName {
        let [namespace, pod, container] = ["default", pod, "main"].map(str::to_owned);
        ContainerName { namespace, pod, container }
    }

    fn process(process_id: u32, pod: &str) -> ContainerProcess {
        ContainerProcess { process_id, name: name(pod), container_id: "a1".to_owned() }
    }

    fn containers(pods: &[&str]) -> BTreeSet<ContainerName> {
        pods.iter().map(|pod| name(pod)).collect()
    }

    fn denied() -> ContainerProcessesError {
        ContainerProcessesError::Containers(std::io::ErrorKind::PermissionDenied.into())
    }

    /// A host whose answers a test sends, and how often it was asked.
    fn host() -> (ContainerProcesses, Sender<Answer>, Arc<AtomicU32>) {
        let (send, answers) = channel::<Answer>();
        let asked = Arc::new(AtomicU32::new(0));
        let counter = Arc::clone(&asked);
        let read = move |_: &BTreeSet<ContainerName>| {
            counter.fetch_add(1, Ordering::SeqCst);
            answers.recv().unwrap()
        };
        let processes = ContainerProcesses::new(Some(Box::new(read)));
        (ContainerProcesses { wait: LONG, ..processes }, send, asked)
    }

    #[tokio::test]
    async fn an_answer_is_used_again_for_the_same_containers() {
        let (processes, answers, asked) = host();
        answers.send(Ok(vec![process(7, "render"), process(8, "gone")])).unwrap();
        for _ in 0..3 {
            assert_eq!(processes.current(containers(&["render"])).await, [process(7, "render")]);
        }
        assert_eq!(asked.load(Ordering::SeqCst), 1);
        answers.send(Ok(vec![process(7, "render"), process(9, "train")])).unwrap();
        assert_eq!(processes.current(containers(&["render", "train"])).await.len(), 2);
        assert_eq!(asked.load(Ordering::SeqCst), 2);
        assert!(processes.failures().iter().all(|(_, count)| *count == 0));
    }

    /// Who asks waits once for a host that hangs, and its late answer counts.
    #[tokio::test]
    async fn a_host_that_hangs_is_asked_once() {
        let (mut processes, answers, asked) = host();
        processes.wait = Duration::from_millis(20);
        for _ in 0..5 {
            assert!(processes.current(containers(&["render"])).await.is_empty());
        }
        assert_eq!(processes.failures(), [("timeout", 1), ("other", 0)]);
        answers.send(Ok(vec![process(7, "render")])).unwrap();
        let began = std::time::Instant::now();
        while processes.current(containers(&["render"])).await.is_empty() {
            assert!(began.elapsed() < LONG);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(asked.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn a_failure_is_counted_each_time_and_logged_once() {
        let log = Log::start();
        let (processes, answers, _) = host();
        for pods in [&["a"], &["b"], &["c"]] {
            answers.send(Err(denied())).unwrap();
            assert!(processes.current(containers(pods)).await.is_empty());
        }
        answers.send(Ok(Vec::new())).unwrap();
        processes.current(containers(&["d"])).await;
        assert_eq!(processes.failures(), [("timeout", 0), ("other", 3)]);
        let text = log.text();
        assert_eq!(text.matches("cannot read processes of containers").count(), 1, "{text}");
        assert!(text.contains("permission denied") && text.contains("hint="), "{text}");
        assert_eq!(text.matches("processes of containers are available").count(), 1, "{text}");
    }

    #[tokio::test]
    async fn a_host_without_containers_has_no_processes() {
        assert!(ContainerProcesses::of_host().current(containers(&["a"])).await.is_empty());
    }
}
