//! How many connections the process serves at once.
//!
//! Each socket has slots of its own, so that connections to one socket cannot keep the kubelet
//! away from another one. All sockets share the others.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The slots of one socket: a kubelet opens one connection, `status` another one.
const OWN: usize = 4;

/// The slots that all sockets share. At the limit, further connections wait until another one is
/// closed, as idle ones are.
const SHARED: usize = 60;

/// The slots of the process.
pub(crate) struct ConnectionSlots(Arc<Semaphore>);

impl Default for ConnectionSlots {
    fn default() -> Self {
        ConnectionSlots(Arc::new(Semaphore::new(SHARED)))
    }
}

impl ConnectionSlots {
    /// The slots of a new socket.
    pub(crate) fn of_socket(&self) -> SocketSlots {
        SocketSlots { own: Arc::new(Semaphore::new(OWN)), shared: Arc::clone(&self.0) }
    }
}

/// The slots of one socket.
pub(crate) struct SocketSlots {
    own: Arc<Semaphore>,
    shared: Arc<Semaphore>,
}

/// The slot of one connection. Dropping it makes it free.
pub(crate) struct Slot(#[allow(dead_code, reason = "held, not read")] OwnedSemaphorePermit);

impl SocketSlots {
    /// Takes a slot, and waits for a shared one if there is none. Cancel safe. Call this again
    /// after a connection of the same socket has ended: its slot may be one of the socket's own.
    pub(crate) async fn take(&self) -> Slot {
        if let Ok(own) = Arc::clone(&self.own).try_acquire_owned() {
            return Slot(own);
        }
        let shared = Arc::clone(&self.shared).acquire_owned().await;
        Slot(shared.expect("the semaphore is never closed"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a slot is free now.
    async fn try_take(slots: &SocketSlots) -> Option<Slot> {
        tokio::select! {
            biased;
            slot = slots.take() => Some(slot),
            () = std::future::ready(()) => None,
        }
    }

    #[tokio::test]
    async fn a_full_socket_leaves_every_other_socket_its_own_slots() {
        let process = ConnectionSlots::default();
        let (full, other) = (process.of_socket(), process.of_socket());
        let mut taken = Vec::new();
        for _ in 0..OWN + SHARED {
            taken.push(try_take(&full).await.unwrap());
        }
        assert!(try_take(&full).await.is_none());
        let mut others = Vec::new();
        for _ in 0..OWN {
            others.push(try_take(&other).await.unwrap());
        }
        assert!(try_take(&other).await.is_none());
        drop(taken.pop());
        assert!(try_take(&other).await.is_some());
        drop(others.pop());
        assert!(try_take(&other).await.is_some());
    }
}
