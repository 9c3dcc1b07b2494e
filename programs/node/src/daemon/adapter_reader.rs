//! The thread that reads adapters, because reading blocks, perhaps forever.
//!
//! It reads a host once at the start, after each burst of changes, and as the
//! [schedule](crate::daemon::read_schedule) says. A read that takes too long is reported in the log.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::cli::{Failure, error_chain};
use devices::{AdapterSource, ChangeCallback, HostSnapshot, ReadStep, SourceError};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use crate::daemon::change_log::{self, RepeatedText};
use crate::daemon::overdue::Overdue;
use crate::daemon::read_schedule::{Cause, HostKind, ReadSchedule};

/// How long to wait after a change, so that a burst of changes causes one read. A change
/// must reach the kubelet within 100 ms.
const DEBOUNCE: Duration = Duration::from_millis(20);

/// Opens the host. It runs on the thread that reads, because even that may block.
pub type OpenSource = Box<dyn FnOnce() -> Result<Box<dyn AdapterSource>, Failure> + Send>;

/// A read of the host.
pub struct Read {
    /// Why the host was read.
    pub cause: Cause,
    /// What the host has.
    pub result: Result<HostSnapshot, SourceError>,
    /// How long the read took.
    pub duration: Duration,
}

/// Why there are no more reads.
#[derive(Debug, thiserror::Error)]
pub enum ReaderEnded {
    /// The host cannot be opened, for example because this Windows has no `DXCore`.
    #[error("cannot open the host")]
    NotOpened(Failure),
    /// Only a panic can cause this.
    #[error("the thread that reads adapters ended unexpectedly")]
    Panicked,
}

/// What the thread is doing, as text, for log and status.
#[derive(Clone, Default)]
pub struct Activity(Arc<Mutex<String>>);

impl Activity {
    /// The text; empty before the thread has begun.
    pub fn text(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, text: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }
}

/// What the thread sends.
pub enum Message {
    /// A read has begun.
    Began,
    /// A read has ended.
    Ended(Box<Read>),
    /// There are no reads.
    NotOpened(Failure),
}

/// The connection to the thread.
pub struct AdapterReader {
    messages: mpsc::UnboundedReceiver<Message>,
    activity: Activity,
    /// The read that has not ended.
    read: Option<Overdue>,
    has_devices: bool,
}

impl AdapterReader {
    /// Starts the thread, which opens the host, watches it and reads it.
    pub fn start(open: OpenSource, host: HostKind) -> std::io::Result<AdapterReader> {
        let (send, messages) = mpsc::unbounded_channel();
        let reader = AdapterReader::new(messages);
        let activity = reader.activity.clone();
        activity.set(ReadStep::Open.to_string());
        let run = move || match open() {
            Ok(source) => Thread::new(source, host, activity, send).run(),
            // Without a receiver, the process is ending.
            Err(failure) => _ = send.send(Message::NotOpened(failure)),
        };
        std::thread::Builder::new().name("adapters".to_owned()).spawn(run)?;
        Ok(reader)
    }

    /// A reader that receives `messages`.
    #[must_use]
    pub fn new(messages: mpsc::UnboundedReceiver<Message>) -> AdapterReader {
        AdapterReader {
            messages,
            activity: Activity::default(),
            read: Some(Overdue::new(Instant::now())),
            has_devices: false,
        }
    }

    /// What the thread is doing.
    #[must_use]
    pub fn activity(&self) -> Activity {
        self.activity.clone()
    }

    /// Whether a read has succeeded.
    #[must_use]
    pub fn has_devices(&self) -> bool {
        self.has_devices
    }

    /// The next read. Logs a read that takes too long.
    pub async fn next(&mut self) -> Result<Box<Read>, ReaderEnded> {
        loop {
            let message = match &mut self.read {
                None => self.messages.recv().await,
                Some(read) => tokio::select! {
                    biased;
                    message = self.messages.recv() => message,
                    () = sleep_until(read.due()) => {
                        let waited = read.report(Instant::now());
                        let step = self.activity.text();
                        change_log::log_slow_read(self.has_devices, &step, waited);
                        continue;
                    }
                },
            };
            match message {
                Some(Message::Began) => self.read = Some(Overdue::new(Instant::now())),
                Some(Message::Ended(read)) => {
                    self.read = None;
                    if read.result.is_ok() {
                        self.has_devices = true;
                    }
                    return Ok(read);
                }
                Some(Message::NotOpened(failure)) => return Err(ReaderEnded::NotOpened(failure)),
                None => return Err(ReaderEnded::Panicked),
            }
        }
    }
}

/// The thread's own state.
struct Thread {
    source: Box<dyn AdapterSource>,
    schedule: ReadSchedule,
    activity: Activity,
    send: mpsc::UnboundedSender<Message>,
    changes: Receiver<()>,
    notify: Sender<()>,
    /// The failures to watch the source; `None` once it reports changes.
    watch_failures: Option<RepeatedText>,
}

impl Thread {
    fn new(
        mut source: Box<dyn AdapterSource>,
        host: HostKind,
        activity: Activity,
        send: mpsc::UnboundedSender<Message>,
    ) -> Thread {
        let (notify, changes) = channel();
        let steps = activity.clone();
        source.report_steps(Box::new(move |step| steps.set(step.to_string())));
        let (schedule, watch_failures) = (ReadSchedule::new(host), Some(RepeatedText::default()));
        Thread { source, schedule, activity, send, changes, notify, watch_failures }
    }

    /// Reads the host until nothing receives the snapshots.
    fn run(mut self) {
        let mut cause = Cause::Start;
        loop {
            if self.send.send(Message::Began).is_err() {
                return;
            }
            self.watch();
            let began = Instant::now();
            let result = self.source.snapshot();
            let duration = began.elapsed();
            if let Err(error) = &result {
                self.activity.set(error_chain(error.as_ref()));
            }
            let outcome = match &result {
                Ok(snapshot) if self.watch_failures.is_none() => Some(snapshot.unsettled()),
                _ => None,
            };
            if self.send.send(Message::Ended(Box::new(Read { cause, result, duration }))).is_err() {
                return;
            }
            let next = self.schedule.after(cause, outcome);
            cause = self.wait(next);
        }
    }

    /// Watches the source, if that did not succeed before.
    fn watch(&mut self) {
        let Some(logged) = &mut self.watch_failures else { return };
        match self.source.watch(notifier(self.notify.clone())) {
            Ok(()) => self.watch_failures = None,
            Err(error) => {
                let error = error_chain(error.as_ref());
                if logged.is_due(&error) {
                    tracing::warn!(
                        error,
                        "cannot watch the host for changes; reading it every minute"
                    );
                }
            }
        }
    }

    /// Waits for a change or the next read of the schedule, and returns its cause.
    fn wait(&self, next: Option<(Duration, Cause)>) -> Cause {
        let change = match next {
            Some((delay, cause)) => match self.changes.recv_timeout(delay) {
                Err(RecvTimeoutError::Timeout) => return cause,
                change => change,
            },
            None => self.changes.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        change.expect("this thread holds a sender");
        std::thread::sleep(DEBOUNCE);
        while self.changes.try_recv().is_ok() {}
        Cause::Change
    }
}

fn notifier(notify: Sender<()>) -> ChangeCallback {
    let notify = Mutex::new(notify);
    Box::new(move || {
        let notify = notify.lock().unwrap_or_else(PoisonError::into_inner);
        // The thread ends only with the process.
        let _ = notify.send(());
    })
}

#[cfg(test)]
mod tests;
