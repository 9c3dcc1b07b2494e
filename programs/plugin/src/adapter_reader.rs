//! The thread that reads adapters, because reading blocks.
//!
//! In comes a source; out go its snapshots: one after each burst of changes. A failed read
//! is repeated after a delay.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use devices::{AdapterSource, ChangeCallback, HostSnapshot, SourceError};
use tokio::sync::mpsc;

/// How long to wait after a change, so that a burst of changes causes one read. A change
/// must reach the kubelet within 100 ms.
const DEBOUNCE: Duration = Duration::from_millis(20);
/// The delay after the first failed read. It doubles with each further failure.
const INITIAL_RETRY_DELAY: Duration = Duration::from_secs(1);
/// The longest delay between two failed reads.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(60);

/// What the thread sends after each read.
pub(crate) type ReadResult = Result<HostSnapshot, SourceError>;

/// Watches `source`, reads it once, and then again whenever it changes.
pub(crate) fn start(
    mut source: Box<dyn AdapterSource>,
) -> Result<(HostSnapshot, mpsc::UnboundedReceiver<ReadResult>), StartError> {
    let (notify, changes) = channel();
    source.watch(notifier(notify)).map_err(StartError::Watch)?;
    let first = source.snapshot().map_err(StartError::Source)?;
    let (send, results) = mpsc::unbounded_channel();
    std::thread::Builder::new()
        .name("adapters".to_owned())
        .spawn(move || read_on_changes(source.as_mut(), &changes, &send))
        .map_err(StartError::Thread)?;
    Ok((first, results))
}

/// Why the first read failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    /// The source cannot be read.
    #[error("cannot read the adapters of this host")]
    Source(#[source] SourceError),
    /// The source cannot be watched.
    #[error("cannot watch the adapters of this host")]
    Watch(#[source] SourceError),
    /// The thread could not be started.
    #[error("cannot start the thread that reads adapters")]
    Thread(#[source] std::io::Error),
}

fn notifier(notify: Sender<()>) -> ChangeCallback {
    let notify = Mutex::new(notify);
    Box::new(move || {
        let notify = notify.lock().unwrap_or_else(PoisonError::into_inner);
        // The thread ends only with the process.
        let _ = notify.send(());
    })
}

/// Reads the source after each burst of changes, and again after a failed read.
pub(crate) fn read_on_changes(
    source: &mut dyn AdapterSource,
    changes: &Receiver<()>,
    send: &mpsc::UnboundedSender<ReadResult>,
) {
    let mut retry: Option<Duration> = None;
    loop {
        let event = match retry {
            Some(after) => changes.recv_timeout(after),
            None => changes.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match event {
            Ok(()) => {
                std::thread::sleep(DEBOUNCE);
                while changes.try_recv().is_ok() {}
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let snapshot = source.snapshot();
        retry = match (&snapshot, retry) {
            (Ok(_), _) => None,
            (Err(_), None) => Some(INITIAL_RETRY_DELAY),
            (Err(_), Some(before)) => Some((before * 2).min(MAX_RETRY_DELAY)),
        };
        if send.send(snapshot).is_err() {
            return;
        }
    }
}
