//! Reads the adapters of a host, on a thread for each read, because reading blocks, perhaps
//! forever.
//!
//! The host is read once at the start and after each burst of changes. After a failed read, and
//! while the state of an adapter is temporary, it is read again after growing delays. A live host
//! is also read every five minutes, because Windows does not guarantee a notification of each
//! change.

use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};
use command_line::{HostError, error_chain};
use host::{AdapterSource, HostSnapshot, ReadStep, SourceError};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep};

use crate::readers::background_query::BackgroundQuery;
use process::logging::Repeated;

pub(crate) use crate::readers::background_query::Activity;

/// How long to wait after a change, so that a burst of changes causes one read. A change
/// must reach the kubelet within 100 ms.
const DEBOUNCE: Duration = Duration::from_millis(20);

/// The delay after the first failed or unsettled read. It doubles with each further one.
const FIRST_RETRY: Duration = Duration::from_secs(1);
/// The longest delay after a failed or unsettled read.
const LAST_RETRY: Duration = Duration::from_mins(1);
/// The interval of the safety reads. They bound the damage of a missed notification.
const SAFETY_READ: Duration = Duration::from_mins(5);

/// The kind of host that is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HostKind {
    /// The host that this program runs on.
    Live,
    /// An inventory file. It changes only with a notification.
    Inventory,
}

/// Why the host is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cause {
    /// The host was not read yet.
    Start,
    /// The host may have changed.
    Change,
    /// The last read failed, or an adapter was unsettled.
    Retry,
    /// The interval of the safety reads has passed.
    Safety,
}

/// Opens the host. It runs on the thread that reads, because even that may block.
pub type OpenSource = Box<dyn FnOnce() -> Result<Box<dyn AdapterSource>, HostError> + Send>;

/// A read of the host.
pub(crate) struct Read {
    /// Why the host was read.
    pub cause: Cause,
    /// What the host has.
    pub result: Result<HostSnapshot, SourceError>,
    /// How long the read took.
    pub duration: Duration,
}

/// The reads of a host; or, once, why the host cannot be opened, for example because this Windows
/// has no `DXCore`. It ends if the thread that reads panics.
pub(crate) type Reads = mpsc::UnboundedReceiver<Result<Read, HostError>>;

/// Opens, watches and reads the host until the result is dropped.
#[must_use]
pub(crate) fn start(open: OpenSource, kind: HostKind) -> (Reads, Activity) {
    let query = BackgroundQuery::new("adapters", "the devices that are advertised do not change");
    let activity = query.activity();
    activity.set(ReadStep::Open.to_string());
    let (send, reads) = mpsc::unbounded_channel();
    tokio::spawn(read(open, kind, query, send));
    (reads, activity)
}

type Opened = Result<(Host, Read), HostError>;

async fn read(
    open: OpenSource,
    kind: HostKind,
    mut query: BackgroundQuery<Opened>,
    send: mpsc::UnboundedSender<Result<Read, HostError>>,
) {
    let (notify, mut changes) = watch::channel(());
    let activity = query.activity();
    let mut cause = Cause::Start;
    let mut retries = retry_delays();
    query.start(move || Ok(Host::open(open, activity, notify)?.read(cause)));
    while let Some(opened) = query.end().await {
        let (host, read) = match opened {
            Ok(opened) => opened,
            Err(failure) => {
                // Without a receiver, the process is ending.
                let _ = send.send(Err(failure));
                return;
            }
        };
        let next = next_read(kind, cause, host.is_settled(&read, kind), &mut retries);
        if send.send(Ok(read)).is_err() {
            return;
        }
        cause = wait(&mut changes, next).await;
        query.start(move || Ok(host.read(cause)));
    }
}

/// How long to wait after a read with this cause, and the cause of the next read if nothing changes
/// by then. `None`: only a change leads to the next read. The host `is_settled` if it will probably
/// not change without a notification.
fn next_read(
    kind: HostKind,
    cause: Cause,
    is_settled: bool,
    retries: &mut ExponentialBackoff,
) -> Option<(Duration, Cause)> {
    if cause == Cause::Change || is_settled {
        *retries = retry_delays();
    }
    if is_settled {
        return (kind == HostKind::Live).then_some((SAFETY_READ, Cause::Safety));
    }
    Some((retries.next().unwrap_or(LAST_RETRY), Cause::Retry))
}

fn retry_delays() -> ExponentialBackoff {
    let delays = ExponentialBuilder::new().with_min_delay(FIRST_RETRY);
    delays.with_max_delay(LAST_RETRY).without_max_times().build()
}

/// Waits for a change or the next read, and returns its cause.
async fn wait(changes: &mut watch::Receiver<()>, next: Option<(Duration, Cause)>) -> Cause {
    let scheduled = async {
        match next {
            Some((delay, cause)) => {
                sleep(delay).await;
                cause
            }
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        // The host has a sender.
        _ = changes.changed() => {
            sleep(DEBOUNCE).await;
            changes.mark_unchanged();
            Cause::Change
        }
        cause = scheduled => cause,
    }
}

/// An open host.
struct Host {
    source: Box<dyn AdapterSource>,
    activity: Activity,
    notify: watch::Sender<()>,
    /// The failures to watch the source; `None` once it reports changes.
    watch_failures: Option<Repeated<String>>,
}

impl Host {
    fn open(
        open: OpenSource,
        activity: Activity,
        notify: watch::Sender<()>,
    ) -> Result<Host, HostError> {
        let mut source = open()?;
        let steps = activity.clone();
        source.report_steps(Box::new(move |step| steps.set(step.to_string())));
        Ok(Host { source, activity, notify, watch_failures: Some(Repeated::default()) })
    }

    fn read(mut self, cause: Cause) -> (Host, Read) {
        self.watch();
        let began = Instant::now();
        let result = self.source.snapshot();
        if let Err(error) = &result {
            self.activity.set(error_chain(error.as_ref()));
        }
        (self, Read { cause, result, duration: began.elapsed() })
    }

    /// Whether the host will probably not change without a notification. An inventory never does.
    fn is_settled(&self, read: &Read, kind: HostKind) -> bool {
        let Ok(snapshot) = &read.result else { return false };
        self.watch_failures.is_none() && (kind == HostKind::Inventory || !snapshot.is_unsettled())
    }

    /// Watches the source, if that did not succeed before.
    fn watch(&mut self) {
        let Some(logged) = &mut self.watch_failures else { return };
        let notify = self.notify.clone();
        match self.source.watch(Box::new(move || notify.send_replace(()))) {
            Ok(()) => self.watch_failures = None,
            Err(error) => {
                let error = error_chain(error.as_ref());
                if logged.is_due(error.clone()) {
                    tracing::warn!(
                        error,
                        "cannot watch the host for changes; reading it every minute"
                    );
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
