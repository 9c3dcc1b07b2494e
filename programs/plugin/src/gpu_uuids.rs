//! The UUIDs of NVIDIA devices, by which CUDA identifies them.
//!
//! In come the adapters of each snapshot; out go UUIDs by `PnP` id, later and from a
//! separate thread: the driver may take seconds to answer, and a hint for containers is not
//! worth the wait.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};

use devices::{Adapter, PnpId};
use tokio::sync::mpsc;

/// Reads the UUIDs of NVIDIA devices. It blocks, perhaps for seconds.
pub(crate) type ReadGpuUuids = fn(&[Adapter]) -> GpuUuids;

/// UUIDs (`GPU-…`) by `PnP` id.
pub(crate) type GpuUuids = BTreeMap<PnpId, String>;

/// What reads the UUIDs of a host: NVML on a live Windows host, nothing for an inventory.
pub(crate) fn reader_for(inventory: Option<&Path>) -> Option<ReadGpuUuids> {
    #[cfg(windows)]
    if inventory.is_none() {
        return Some(win32::nvml::gpu_uuids);
    }
    let _ = inventory;
    None
}

/// The connection to the thread that reads UUIDs, where there is one.
pub(crate) struct GpuUuidReader {
    requests: Option<Sender<Vec<Adapter>>>,
    answers: mpsc::UnboundedReceiver<GpuUuids>,
}

impl GpuUuidReader {
    /// A reader that never answers.
    pub(crate) fn disabled() -> GpuUuidReader {
        let (_, answers) = mpsc::unbounded_channel();
        GpuUuidReader { requests: None, answers }
    }

    /// Starts the thread that calls `read`, if there is one.
    pub(crate) fn start(read: Option<ReadGpuUuids>) -> std::io::Result<GpuUuidReader> {
        let Some(read) = read else { return Ok(GpuUuidReader::disabled()) };
        let (requests, received) = channel::<Vec<Adapter>>();
        let (answer, answers) = mpsc::unbounded_channel();
        let answer_all = move || {
            while let Ok(adapters) = received.recv() {
                // Only the newest request counts.
                let newest = received.try_iter().last().unwrap_or(adapters);
                if answer.send(read(&newest)).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("gpu-uuids".to_owned()).spawn(answer_all)?;
        Ok(GpuUuidReader { requests: Some(requests), answers })
    }

    /// Requests the UUIDs of `adapters`; [`next`](GpuUuidReader::next) returns them.
    pub(crate) fn request(&self, adapters: &[Adapter]) {
        if let Some(requests) = &self.requests {
            // If the thread has ended, containers do not get the hint.
            let _ = requests.send(adapters.to_vec());
        }
    }

    /// The next answer. Never completes where there is no thread.
    pub(crate) async fn next(&mut self) -> GpuUuids {
        match self.answers.recv().await {
            Some(uuids) => uuids,
            None => std::future::pending().await,
        }
    }
}
