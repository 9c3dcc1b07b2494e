//! `events`: how long a change of a device takes to arrive.

use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::discovery::{differences, open, snapshot};
use crate::finding::{Finding, Status, millis};
use crate::step::Step;
use crate::stop::Stop;

/// How long an event may take to lead to a changed snapshot: Windows reports an event when a
/// change begins.
const SETTLE_LIMIT: Duration = Duration::from_secs(30);
/// The pause between two readings after an event.
const PAUSE: Duration = Duration::from_millis(20);

pub(super) async fn run(
    inventory: Option<PathBuf>,
    wait: Duration,
    stop: &Stop,
) -> anyhow::Result<Finding> {
    let observed = stop.or_on_thread(move || observe(inventory.as_deref(), wait)).await?;
    observed.context("the adapters cannot be watched")
}

fn observe(inventory: Option<&Path>, wait: Duration) -> anyhow::Result<Finding> {
    let mut source = open(inventory)?;
    let (notify, events) = channel();
    let watched = source.watch(Box::new(move || {
        // The receiver is dropped when the step has ended.
        let _ = notify.send(());
    }));
    watched.map_err(anyhow::Error::from_boxed)?;
    let before = snapshot(&mut *source)?;
    tracing::warn!(seconds = wait.as_secs(), "waiting: disable or enable a GPU now");
    let began = Instant::now();
    if events.recv_timeout(wait).is_err() {
        let what = format!("no device event arrived within {} s", wait.as_secs());
        return Ok(Step::Events.finding(Status::Failed, what));
    }
    let event = Instant::now();
    let first = ("firstEventMs", millis(event - began));
    let mut count = 1;
    while event.elapsed() < SETTLE_LIMIT {
        // While a driver is being replaced, reading may fail.
        let changes = snapshot(&mut *source).map(|after| differences(&before, &after));
        if let Ok(changes @ [_, ..]) = changes.as_deref() {
            let settled = ("snapshotChangedAfterMs", millis(event.elapsed()));
            return Ok(Step::Events
                .ok("an event arrived, and the adapters changed")
                .measured([first, settled, ("events", count.into())])
                .detail(changes.to_vec()));
        }
        std::thread::sleep(PAUSE);
        count += events.try_iter().count();
    }
    Ok(Step::Events
        .finding(Status::Warning, "events arrived, and the adapters stayed the same")
        .measured([first, ("events", count.into())]))
}
