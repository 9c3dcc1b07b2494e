//! The reader with a source that a test controls.

use std::sync::mpsc::{Receiver, Sender, channel};

use host::{ChangeCallback, StepCallback};

use super::*;
use process::logging::test_log::Log;

/// A source that reports a step and then waits for permission to return.
struct SteppedSource {
    on_step: StepCallback,
    permissions: Receiver<()>,
    watch_failures: u32,
}

impl AdapterSource for SteppedSource {
    fn snapshot(&mut self) -> Result<HostSnapshot, SourceError> {
        (self.on_step)(ReadStep::Devices);
        // An error means that the test has ended.
        let _ = self.permissions.recv();
        Ok(HostSnapshot::default())
    }

    fn report_steps(&mut self, on_step: StepCallback) {
        self.on_step = on_step;
    }

    fn watch(&mut self, _: ChangeCallback) -> Result<(), SourceError> {
        if self.watch_failures == 0 {
            return Ok(());
        }
        self.watch_failures -= 1;
        Err("notifications are unavailable".into())
    }
}

fn start_host(watch_failures: u32) -> (Reads, Activity, Sender<()>) {
    let (permit, permissions) = channel();
    let source = SteppedSource { on_step: Box::new(|_| {}), permissions, watch_failures };
    let (reads, activity) = start(Box::new(|| Ok(Box::new(source))), HostKind::Live);
    (reads, activity, permit)
}

#[tokio::test(start_paused = true)]
async fn a_read_that_does_not_end_is_reported_with_its_step_and_its_late_result_counts() {
    let log = Log::start();
    let (mut reads, activity, permit) = start_host(0);
    assert_eq!(activity.text(), "opening the host");
    let read = async {
        tokio::task::yield_now().await;
        while activity.text() != "listing PnP devices" {
            std::thread::sleep(Duration::from_millis(1));
        }
        reads.recv().await
    };
    assert!(tokio::time::timeout(Duration::from_secs(25), read).await.is_err());
    let text = log.text();
    assert_eq!(text.matches("query has not been answered").count(), 2, "{text}");
    let fields = "query=\"adapters\" step=\"listing PnP devices\" waited_s=10";
    assert!(text.contains(fields), "{text}");
    tokio::time::resume();
    permit.send(()).unwrap();
    assert!(reads.recv().await.unwrap().unwrap().result.is_ok());
}

#[tokio::test]
async fn a_host_that_cannot_be_watched_is_read_all_the_same_and_watched_later() {
    let (mut reads, _activity, permit) = start_host(1);
    (0..2).for_each(|_| permit.send(()).unwrap());
    for expected in [Cause::Start, Cause::Retry] {
        let read = tokio::time::timeout(Duration::from_mins(1), reads.recv()).await;
        assert_eq!(read.unwrap().unwrap().unwrap().cause, expected);
    }
}

#[tokio::test]
async fn a_read_that_panics_ends_the_reads() {
    let (mut reads, _) = start(Box::new(|| panic!("on purpose")), HostKind::Live);
    assert!(reads.recv().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_burst_of_changes_leads_to_one_read() {
    let (notify, mut changes) = watch::channel(());
    let burst = async {
        for _ in 0..10 {
            notify.send(()).unwrap();
            sleep(Duration::from_millis(1)).await;
        }
    };
    let (cause, ()) = tokio::join!(wait(&mut changes, None), burst);
    assert_eq!(cause, Cause::Change);
    let next = tokio::time::timeout(Duration::from_hours(1), wait(&mut changes, None)).await;
    assert!(next.is_err(), "another read");
}

/// The delays in seconds if each read finds this and nothing changes.
fn delays(host: HostKind, is_settled: bool, count: usize) -> Vec<u64> {
    let mut retries = retry_delays();
    let mut cause = Cause::Start;
    let mut delays = Vec::new();
    while let Some((delay, next)) = next_read(host, cause, is_settled, &mut retries)
        && delays.len() < count
    {
        delays.push(delay.as_secs());
        cause = next;
    }
    delays
}

#[test]
fn a_settled_live_host_is_read_every_five_minutes_and_an_inventory_never() {
    assert_eq!(delays(HostKind::Live, true, 3), [300, 300, 300]);
    assert_eq!(delays(HostKind::Inventory, true, 3), [0; 0]);
}

#[test]
fn an_unsettled_host_is_read_more_and_more_rarely_but_at_least_every_minute() {
    for host in [HostKind::Live, HostKind::Inventory] {
        assert_eq!(delays(host, false, 9), [1, 2, 4, 8, 16, 32, 60, 60, 60]);
    }
}

#[test]
fn a_change_begins_the_retries_again() {
    let mut retries = retry_delays();
    let mut next = |cause, is_settled| {
        next_read(HostKind::Live, cause, is_settled, &mut retries).unwrap().0.as_secs()
    };
    assert_eq!(next(Cause::Start, false), 1);
    assert_eq!(next(Cause::Retry, false), 2);
    assert_eq!(next(Cause::Change, false), 1, "a notification");
    assert_eq!(next(Cause::Retry, false), 2);
    assert_eq!(next(Cause::Retry, true), 300);
    assert_eq!(next(Cause::Safety, false), 1, "found by a safety read");
}
