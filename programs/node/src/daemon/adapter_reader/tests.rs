//! The reader with a source that a test controls.

use super::*;

use devices::StepCallback;

use crate::daemon::test_log::Log;

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

fn start(watch_failures: u32) -> (AdapterReader, Sender<()>) {
    let (permit, permissions) = channel();
    let source = SteppedSource { on_step: Box::new(|_| {}), permissions, watch_failures };
    let open: OpenSource = Box::new(|| Ok(Box::new(source)));
    (AdapterReader::start(open, HostKind::Live).unwrap(), permit)
}

#[tokio::test(start_paused = true)]
async fn a_read_that_does_not_end_is_reported_with_its_step_and_its_late_result_counts() {
    let log = Log::start();
    let (mut reader, permit) = start(0);
    let activity = reader.activity();
    while activity.text() != "listing PnP devices" {
        std::thread::sleep(Duration::from_millis(1));
    }
    let read = tokio::time::timeout(Duration::from_secs(25), reader.next()).await;
    assert!(read.is_err());
    let text = log.text();
    assert_eq!(text.matches("the first discovery has not completed").count(), 2, "{text}");
    assert!(text.contains("step=\"listing PnP devices\" waited_s=10"), "{text}");
    tokio::time::resume();
    permit.send(()).unwrap();
    assert!(reader.next().await.unwrap().result.is_ok());
    assert!(reader.has_devices());
}

#[tokio::test]
async fn a_host_that_cannot_be_watched_is_read_all_the_same_and_watched_later() {
    let (mut reader, permit) = start(1);
    (0..2).for_each(|_| permit.send(()).unwrap());
    assert_eq!(reader.next().await.unwrap().cause, Cause::Start);
    let second = tokio::time::timeout(Duration::from_secs(60), reader.next()).await;
    assert_eq!(second.unwrap().unwrap().cause, Cause::Retry);
}

#[tokio::test(start_paused = true)]
async fn a_later_read_that_hangs_keeps_the_devices() {
    let log = Log::start();
    let (send, messages) = mpsc::unbounded_channel();
    let mut reader = AdapterReader::new(messages);
    let ended = |cause| {
        Message::Ended(Box::new(Read {
            cause,
            result: Ok(HostSnapshot::default()),
            duration: Duration::ZERO,
        }))
    };
    assert!(send.send(ended(Cause::Start)).is_ok());
    assert!(reader.next().await.is_ok());
    let waited = tokio::time::timeout(Duration::from_hours(1), reader.next()).await;
    assert!(waited.is_err() && log.text().is_empty(), "between reads nothing is reported");
    assert!(send.send(Message::Began).is_ok());
    let waited = tokio::time::timeout(Duration::from_secs(15), reader.next()).await;
    assert!(waited.is_err());
    assert!(log.text().contains("keeping the current devices"), "{}", log.text());
}
