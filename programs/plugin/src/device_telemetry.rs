//! What the devices do, for metrics: read at most once a second, on a thread of its own.
//!
//! In come the LUIDs of the devices; out go the values of the last reading, and their age. A
//! driver that hangs cannot be stopped, so there is at most one reading, and a caller waits for
//! it only for a short time. Until it ends, callers get the values of the reading before.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use devices::{Luid, Telemetry};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use daemon::overdue::Overdue;
use daemon::read_schedule::HostKind;

/// Reads adapters. It blocks, perhaps for ever.
pub(crate) type ReadTelemetry =
    Arc<dyn Fn(&[Luid]) -> Vec<(Luid, io::Result<Telemetry>)> + Send + Sync>;

/// The shortest time between the beginnings of two readings.
const INTERVAL: Duration = Duration::from_secs(1);

/// How long a caller waits for a reading. A scrape of Prometheus may take ten seconds.
const LIMIT: Duration = Duration::from_millis(500);

/// The values of one reading.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    /// The adapters that could be read.
    pub(crate) values: Arc<BTreeMap<Luid, Telemetry>>,
    /// How long ago the reading began; `None` before the first one has ended. It grows while a
    /// driver hangs.
    pub(crate) age: Option<Duration>,
}

/// How often reading did not work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TelemetryCounters {
    /// Adapters that could not be read, and readings that panicked.
    pub(crate) failures: u64,
    /// Readings that took longer than a caller waits.
    pub(crate) timeouts: u64,
}

/// Reads the devices of a host.
#[derive(Clone)]
pub(crate) struct DeviceTelemetry(Arc<Shared>);

struct Shared {
    /// `None`: the host has no telemetry.
    read: Option<ReadTelemetry>,
    interval: Duration,
    limit: Duration,
    state: Mutex<State>,
    /// Changes when a reading has ended.
    ended: watch::Sender<()>,
    failures: AtomicU64,
    timeouts: AtomicU64,
}

#[derive(Default)]
struct State {
    values: Arc<BTreeMap<Luid, Telemetry>>,
    /// When the reading of `values` began.
    read_at: Option<Instant>,
    /// When the newest reading began.
    began: Option<Instant>,
    /// The reading that has not ended.
    running: Option<Running>,
}

struct Running {
    overdue: Overdue,
    is_timed_out: bool,
}

impl DeviceTelemetry {
    /// The devices of this host; an inventory has no telemetry.
    pub(crate) fn of(host: HostKind) -> DeviceTelemetry {
        let read = match host {
            #[cfg(windows)]
            HostKind::Live => Some(live()),
            // Opening such a host fails, so nothing asks for its telemetry.
            #[cfg(not(windows))]
            HostKind::Live => None,
            HostKind::Inventory => None,
        };
        DeviceTelemetry::new(read, INTERVAL, LIMIT)
    }

    fn new(read: Option<ReadTelemetry>, interval: Duration, limit: Duration) -> DeviceTelemetry {
        DeviceTelemetry(Arc::new(Shared {
            read,
            interval,
            limit,
            state: Mutex::default(),
            ended: watch::channel(()).0,
            failures: AtomicU64::new(0),
            timeouts: AtomicU64::new(0),
        }))
    }

    /// Reads these adapters, if the last reading is old enough and has ended.
    pub(crate) async fn read(&self, luids: &[Luid]) -> Reading {
        let mut ended = self.0.ended.subscribe();
        if let Some(until) = begin(&self.0, luids)
            && timeout_at(until, ended.changed()).await.is_err()
        {
            self.0.note_timeout();
        }
        let state = self.0.state();
        let now = Instant::now();
        Reading { values: Arc::clone(&state.values), age: state.read_at.map(|at| now - at) }
    }

    /// How often reading did not work.
    pub(crate) fn counters(&self) -> TelemetryCounters {
        TelemetryCounters {
            failures: self.0.failures.load(Ordering::Relaxed),
            timeouts: self.0.timeouts.load(Ordering::Relaxed),
        }
    }
}

/// Starts a reading if one is due. Returns until when to wait for the end of the current one.
fn begin(shared: &Arc<Shared>, luids: &[Luid]) -> Option<Instant> {
    let read = shared.read.as_ref()?;
    let now = Instant::now();
    let mut state = shared.state();
    if let Some(running) = &mut state.running {
        running.log_if_overdue(now);
    } else {
        if state.began.is_some_and(|began| now < began + shared.interval) {
            return None;
        }
        state.began = Some(now);
        let running = Running { overdue: Overdue::new(now), is_timed_out: false };
        state.running = Some(running);
        let (read, luids) = (Arc::clone(read), luids.to_vec());
        let end = End { shared: Arc::clone(shared), began: now, results: None };
        let run = move || end.with(read(&luids));
        drop(state);
        // A thread that does not start drops the `End`, as one that panics does.
        if let Err(error) = std::thread::Builder::new().name("telemetry".to_owned()).spawn(run) {
            tracing::warn!(%error, "cannot start the thread that reads device telemetry");
        }
        return Some(now + shared.limit);
    }
    let until = state.began? + shared.limit;
    (now < until).then_some(until)
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts each reading at most once.
    fn note_timeout(&self) {
        if let Some(running) = &mut self.state().running
            && !std::mem::replace(&mut running.is_timed_out, true)
        {
            self.timeouts.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Running {
    fn log_if_overdue(&mut self, now: Instant) {
        if self.overdue.due() <= now {
            let waited_s = self.overdue.report(now).as_secs();
            tracing::warn!(
                waited_s,
                "reading device telemetry has not ended; metrics have the last known values"
            );
        }
    }
}

/// The end of a reading, also when it panics.
struct End {
    shared: Arc<Shared>,
    began: Instant,
    results: Option<Vec<(Luid, io::Result<Telemetry>)>>,
}

impl End {
    fn with(mut self, results: Vec<(Luid, io::Result<Telemetry>)>) {
        self.results = Some(results);
    }
}

impl Drop for End {
    fn drop(&mut self) {
        let (shared, results) = (&self.shared, self.results.take());
        let mut state = shared.state();
        state.running = None;
        match results {
            None => _ = shared.failures.fetch_add(1, Ordering::Relaxed),
            Some(results) => {
                let read = |(luid, result): (Luid, io::Result<Telemetry>)| match result {
                    Ok(telemetry) => Some((luid, telemetry)),
                    Err(error) => {
                        tracing::debug!(luid = luid.0, %error, "cannot read device telemetry");
                        shared.failures.fetch_add(1, Ordering::Relaxed);
                        None
                    }
                };
                state.values = Arc::new(results.into_iter().filter_map(read).collect());
                state.read_at = Some(self.began);
            }
        }
        drop(state);
        shared.ended.send_replace(());
    }
}

#[cfg(windows)]
fn live() -> ReadTelemetry {
    let reader = Mutex::new(win32::TelemetryReader::default());
    Arc::new(move |luids| reader.lock().unwrap_or_else(PoisonError::into_inner).read(luids))
}

#[cfg(test)]
mod tests;
