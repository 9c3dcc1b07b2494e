//! The memory that requests and responses may occupy, for all sockets of the process together.
//!
//! A [`Buffer`] reserves every byte beyond its first [`FREE`] before it allocates it, and releases
//! it when it is dropped. There are two shares, so that a client that exhausts one cannot prevent
//! the kubelet from allocating devices.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::Status;

use crate::MESSAGE_LIMIT;

/// What a buffer may hold without a reservation, in bytes: every call but those with hundreds of
/// device IDs, and every answer but long ones. The limits on connections and calls bound the sum.
pub(crate) const FREE: usize = 4 * 1024;

/// The share of the kubelet, in bytes. A kubelet makes one call at a time, so this is enough for a
/// request and a response of maximum size while the previous response is being written.
const KUBELET_SHARE: usize = 3 * MESSAGE_LIMIT;

/// The share of all other clients together, in bytes: one request and one response of maximum size.
const OTHERS_SHARE: usize = 2 * MESSAGE_LIMIT;

/// The budget of the process.
pub(crate) struct MemoryBudget {
    kubelet: Share,
    others: Share,
}

impl Default for MemoryBudget {
    fn default() -> Self {
        MemoryBudget { kubelet: Share::new(KUBELET_SHARE), others: Share::new(OTHERS_SHARE) }
    }
}

impl MemoryBudget {
    /// The share of the connections of kubelets.
    pub(crate) fn kubelet(&self) -> &Share {
        &self.kubelet
    }

    /// The share of all other connections.
    pub(crate) fn others(&self) -> &Share {
        &self.others
    }
}

/// A part of the budget, and its turn to compute.
#[derive(Clone)]
pub(crate) struct Share {
    available: Arc<Semaphore>,
    computing: Arc<Semaphore>,
}

impl Share {
    fn new(bytes: usize) -> Self {
        Share { available: Arc::new(Semaphore::new(bytes)), computing: Arc::new(Semaphore::new(1)) }
    }

    /// Waits for the turn to compute. A decoded request is not part of the budget, so each share
    /// decodes one long request at a time.
    pub(crate) async fn turn_to_compute(&self) -> OwnedSemaphorePermit {
        let turn = Arc::clone(&self.computing).acquire_owned().await;
        turn.expect("the semaphore is never closed")
    }

    /// An empty buffer.
    pub(crate) fn buffer(&self) -> Buffer {
        Buffer { bytes: Vec::new(), reserved: None, available: Arc::clone(&self.available) }
    }
}

/// A byte buffer whose memory is part of the budget.
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    reserved: Option<OwnedSemaphorePermit>,
    available: Arc<Semaphore>,
}

impl Buffer {
    /// Makes room for `additional` bytes.
    ///
    /// # Errors
    /// `ResourceExhausted` if the share has no room.
    pub(crate) fn reserve(&mut self, additional: usize) -> Result<(), Status> {
        let (length, capacity) = (self.bytes.len(), self.bytes.capacity());
        let needed = length + additional;
        if needed <= capacity {
            return Ok(());
        }
        let doubled = needed.max(2 * capacity);
        self.charge(doubled.saturating_sub(FREE))?;
        self.bytes.reserve_exact(doubled - length);
        Ok(())
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// `ResourceExhausted` if the share has no room.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<(), Status> {
        self.reserve(bytes.len())?;
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// The bytes, to be written within what was reserved.
    pub(crate) fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Reserves `total` bytes altogether.
    fn charge(&mut self, total: usize) -> Result<(), Status> {
        let reserved = self.reserved.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let more = total.saturating_sub(reserved);
        if more == 0 {
            return Ok(());
        }
        let permit = u32::try_from(more)
            .ok()
            .and_then(|more| Arc::clone(&self.available).try_acquire_many_owned(more).ok())
            .ok_or_else(|| {
                Status::resource_exhausted("too many large requests at the same time; try again")
            })?;
        match &mut self.reserved {
            Some(reserved) => reserved.merge(permit),
            None => self.reserved = Some(permit),
        }
        Ok(())
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_share_one_budget_and_return_it() {
        let share = Share::new(10 * FREE);
        let mut first = share.buffer();
        first.append(&vec![1; 8 * FREE]).unwrap();
        let mut second = share.buffer();
        second.append(&[2; FREE]).unwrap();
        let refused = second.append(&vec![2; 4 * FREE]).unwrap_err();
        assert_eq!(refused.code(), tonic::Code::ResourceExhausted);
        assert_eq!(second.as_ref(), [2; FREE]);
        drop(first);
        second.append(&vec![2; 4 * FREE]).unwrap();
        drop(second);
        assert_eq!(share.available.available_permits(), 10 * FREE);
    }

    #[test]
    fn a_buffer_never_allocates_more_than_it_reserved() {
        let share = Share::new(100 * FREE);
        let mut buffer = share.buffer();
        for n in 0..3000 {
            buffer.append(&[0; 100][..n % 100]).unwrap();
            let reserved = 100 * FREE - share.available.available_permits();
            assert!(buffer.bytes.capacity() <= FREE + reserved);
        }
    }
}
