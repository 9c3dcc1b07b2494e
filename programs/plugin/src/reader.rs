//! The thread that reads adapters, since reading blocks.
//!
//! In comes a source; out go its snapshots: one after each burst of changes, and
//! another attempt some time after one that failed.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use devices::{AdapterSource, ChangeCallback, HostSnapshot, SourceError};
use tokio::sync::mpsc;

/// How long a burst of changes is let go on before the host is read: one refresh for
/// all of it. A change must reach the kubelet within 100 ms.
const BURST: Duration = Duration::from_millis(20);
/// After a failed read the host is read again, first after this time, then after
/// twice as long each time.
const RETRY_FIRST: Duration = Duration::from_secs(1);
/// The longest time between two reads of a host that cannot be read.
const RETRY_LONGEST: Duration = Duration::from_secs(60);

/// What the thread sends.
pub(crate) type Reading = Result<HostSnapshot, SourceError>;

/// Watches `source`, reads it once, and then again whenever it changes.
pub(crate) fn start(
    mut source: Box<dyn AdapterSource>,
) -> Result<(HostSnapshot, mpsc::UnboundedReceiver<Reading>), StartError> {
    let (wake, woken) = channel();
    source.watch(waker(wake)).map_err(StartError::Watch)?;
    let first = source.snapshot().map_err(StartError::Source)?;
    let (send, readings) = mpsc::unbounded_channel();
    std::thread::Builder::new()
        .name("adapters".to_owned())
        .spawn(move || read_forever(source.as_mut(), &woken, &send))
        .map_err(StartError::Thread)?;
    Ok((first, readings))
}

/// Why the host cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    /// The source cannot be read.
    #[error("this host's adapters cannot be read")]
    Source(#[source] SourceError),
    /// The source cannot be watched.
    #[error("changes of this host's adapters cannot be followed")]
    Watch(#[source] SourceError),
    /// The thread could not be started.
    #[error("the thread that reads adapters cannot be started")]
    Thread(#[source] std::io::Error),
}

fn waker(wake: Sender<()>) -> ChangeCallback {
    let wake = Mutex::new(wake);
    Box::new(move || {
        let wake = wake.lock().unwrap_or_else(PoisonError::into_inner);
        // The reader is gone only when the process ends.
        let _ = wake.send(());
    })
}
/// Reads the source after each burst of changes, and again after a failed read.
pub(crate) fn read_forever(
    source: &mut dyn AdapterSource,
    woken: &Receiver<()>,
    send: &mpsc::UnboundedSender<Reading>,
) {
    let mut retry: Option<Duration> = None;
    loop {
        let event = match retry {
            Some(after) => woken.recv_timeout(after),
            None => woken.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match event {
            Ok(()) => {
                std::thread::sleep(BURST);
                while woken.try_recv().is_ok() {}
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let snapshot = source.snapshot();
        retry = match (&snapshot, retry) {
            (Ok(_), _) => None,
            (Err(_), None) => Some(RETRY_FIRST),
            (Err(_), Some(before)) => Some((before * 2).min(RETRY_LONGEST)),
        };
        if send.send(snapshot).is_err() {
            return;
        }
    }
}
