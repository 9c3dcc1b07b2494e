//! The UUIDs of NVIDIA devices, by which CUDA knows them.
//!
//! In come the adapters of each snapshot; out go UUIDs by `PnP` id, later and from a
//! thread of their own: the driver may take seconds to tell them, and a hint is not
//! worth waiting for.

use std::collections::BTreeMap;
use std::sync::mpsc::{Sender, channel};

use devices::{Adapter, PnpId};
use tokio::sync::mpsc;

/// Asks for the UUIDs of NVIDIA devices by `PnP` id; blocking, perhaps for seconds.
pub(crate) type ReadUuids = fn(&[Adapter]) -> GpuUuids;

/// UUIDs (`GPU-…`) by `PnP` id.
pub(crate) type GpuUuids = BTreeMap<PnpId, String>;

/// The conversation with the thread that reads UUIDs, where there is one.
pub(crate) struct Uuids {
    ask: Option<Sender<Vec<Adapter>>>,
    answers: mpsc::UnboundedReceiver<GpuUuids>,
}

impl Uuids {
    /// Nobody to ask.
    pub(crate) fn none() -> Uuids {
        let (_, answers) = mpsc::unbounded_channel();
        Uuids { ask: None, answers }
    }

    /// Starts the thread, where there is something to ask.
    pub(crate) fn start(read: Option<ReadUuids>) -> std::io::Result<Uuids> {
        let Some(read) = read else { return Ok(Uuids::none()) };
        let (ask, asked) = channel::<Vec<Adapter>>();
        let (answer, answers) = mpsc::unbounded_channel();
        let answer_all = move || {
            while let Ok(adapters) = asked.recv() {
                // Only the newest question counts.
                let newest = asked.try_iter().last().unwrap_or(adapters);
                if answer.send(read(&newest)).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("gpu-uuids".to_owned()).spawn(answer_all)?;
        Ok(Uuids { ask: Some(ask), answers })
    }

    pub(crate) fn ask(&self, adapters: &[Adapter]) {
        if let Some(ask) = &self.ask {
            // Where the thread has ended, containers go without the hint.
            let _ = ask.send(adapters.to_vec());
        }
    }

    /// The next answer. Pends for ever where nobody answers.
    pub(crate) async fn next(&mut self) -> GpuUuids {
        match self.answers.recv().await {
            Some(uuids) => uuids,
            None => std::future::pending().await,
        }
    }
}
