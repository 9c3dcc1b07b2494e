//! A close signal: sent once, and seen by every clone of the receiving side.

use tokio::sync::watch;

/// Creates a close signal that is not sent yet.
#[must_use]
pub fn close_signal() -> (Closer, CloseSignal) {
    let (sender, receiver) = watch::channel(false);
    (Closer(sender), CloseSignal(receiver))
}

/// Sends the close signal. Dropping it sends the signal too.
#[derive(Debug)]
pub struct Closer(watch::Sender<bool>);

impl Closer {
    /// Sends the close signal.
    pub fn close(&self) {
        self.0.send_replace(true);
    }
}

/// Receives the close signal.
#[derive(Clone, Debug)]
pub struct CloseSignal(watch::Receiver<bool>);

impl CloseSignal {
    /// Waits for the close signal. Cancel safe.
    pub async fn requested(&mut self) {
        // An error means that the `Closer` was dropped, which is a close signal too.
        let _ = self.0.wait_for(|closed| *closed).await;
    }
}
