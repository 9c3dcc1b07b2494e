//! `events`: how long a change of a device takes to arrive.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::differences::differences;
use crate::step::{Finding, Measurement, Outcome, Step};
use crate::steps::discovery;
use crate::stop::Stop;

/// How long an event may take to lead to a changed snapshot: Windows reports an event when a
/// change begins.
const SETTLE_LIMIT: Duration = Duration::from_secs(30);
/// The pause between two readings after an event.
const PAUSE: Duration = Duration::from_millis(20);

/// What was observed.
enum Observed {
    Nothing,
    /// Events arrived, and the snapshot stayed the same.
    EventsOnly {
        event: Duration,
        events: usize,
    },
    Change {
        event: Duration,
        snapshot: Duration,
        events: usize,
        changes: Vec<String>,
    },
}

/// Waits for an event of the host for as long as `wait`.
pub(crate) async fn run(inventory: Option<PathBuf>, wait: Duration, stop: &Stop) -> Finding {
    match stop.or_on_thread(move || observe(inventory.as_deref(), wait)).await {
        Ok(Ok(observed)) => finding(observed, wait),
        Ok(Err(error)) => {
            Finding::failed(Step::Events, "the adapters cannot be watched").detail([error])
        }
        Err(reason) => Finding::unfinished(Step::Events, reason),
    }
}

/// The longest that the step may take.
pub(crate) fn limit(wait: Duration) -> Duration {
    wait + SETTLE_LIMIT * 2
}

fn observe(inventory: Option<&Path>, wait: Duration) -> Result<Observed, String> {
    let mut source = discovery::open(inventory)?;
    let (notify, events) = channel();
    let notify = Mutex::new(notify);
    let watched = source.watch(Box::new(move || {
        // The receiver is dropped when the step has ended.
        let _ = notify.lock().unwrap_or_else(PoisonError::into_inner).send(());
    }));
    watched.map_err(|error| cli::error_chain(&*error))?;
    let before = source.snapshot().map_err(|error| cli::error_chain(&*error))?;
    tracing::warn!(seconds = wait.as_secs(), "waiting: disable or enable a GPU now");
    let began = Instant::now();
    let Some(first) = next(&events, began + wait) else { return Ok(Observed::Nothing) };
    let mut count = 1;
    while first.elapsed() < SETTLE_LIMIT {
        // While a driver is being replaced, reading may fail.
        if let Ok(after) = source.snapshot() {
            let changes = differences(&before, &after);
            if !changes.is_empty() {
                let (event, snapshot) = (first - began, first.elapsed());
                return Ok(Observed::Change { event, snapshot, events: count, changes });
            }
        }
        std::thread::sleep(PAUSE);
        count += events.try_iter().count();
    }
    Ok(Observed::EventsOnly { event: first - began, events: count })
}

/// When the next event arrives, if one does before `deadline`.
fn next(events: &Receiver<()>, deadline: Instant) -> Option<Instant> {
    match events.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
        Ok(()) => Some(Instant::now()),
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => None,
    }
}

fn finding(observed: Observed, wait: Duration) -> Finding {
    match observed {
        Observed::Nothing => {
            let what = format!("no device event arrived within {} s", wait.as_secs());
            Finding::failed(Step::Events, what)
        }
        Observed::EventsOnly { event, events } => Finding::new(
            Step::Events,
            Outcome::Warning,
            "events arrived, and the adapters stayed the same",
        )
        .measured([Measurement::time("firstEventMs", event), Measurement::count("events", events)]),
        Observed::Change { event, snapshot, events, changes } => {
            Finding::ok(Step::Events, "an event arrived, and the adapters changed")
                .measured([
                    Measurement::time("firstEventMs", event),
                    Measurement::time("snapshotChangedAfterMs", snapshot),
                    Measurement::count("events", events),
                ])
                .detail(changes)
        }
    }
}
