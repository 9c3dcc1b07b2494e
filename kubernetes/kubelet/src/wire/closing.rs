//! The order to close, given once and seen by everyone who holds a copy.

use tokio::sync::watch;

/// Makes an order to close that was not given yet.
#[must_use]
pub fn closing() -> (Closer, Closing) {
    let (given, seen) = watch::channel(false);
    (Closer(given), Closing(seen))
}

/// Gives the order. Dropping it gives it too.
#[derive(Debug)]
pub struct Closer(watch::Sender<bool>);

impl Closer {
    /// Gives the order.
    pub fn close(&self) {
        self.0.send_replace(true);
    }
}

/// Sees the order.
#[derive(Clone, Debug)]
pub struct Closing(watch::Receiver<bool>);

impl Closing {
    /// Waits for the order. Cancel safe.
    pub async fn asked(&mut self) {
        // An error means that the other end was dropped, which is an order too.
        let _ = self.0.wait_for(|closing| *closing).await;
    }
}
