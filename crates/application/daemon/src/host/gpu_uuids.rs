//! The UUIDs of NVIDIA devices, by which CUDA identifies them.
//!
//! The driver may take seconds to answer, and a hint for containers is not worth the wait: the
//! UUIDs arrive later.

use std::collections::BTreeMap;
use std::sync::Arc;

use devices::{Adapter, PnpId, Vendor};

use crate::host::background_query::BackgroundQuery;

/// Reads the UUIDs of NVIDIA devices. It blocks, perhaps for seconds.
pub type ReadGpuUuids = Arc<dyn Fn(&[Adapter]) -> GpuUuids + Send + Sync>;

/// UUIDs (`GPU-…`) by `PnP` id.
pub type GpuUuids = BTreeMap<PnpId, String>;

/// Asks NVML, where there is one, about the NVIDIA devices of the newest snapshot.
pub(crate) struct GpuUuidReader {
    read: Option<ReadGpuUuids>,
    query: BackgroundQuery<GpuUuids>,
    /// The NVIDIA adapters to ask about.
    wanted: Vec<Adapter>,
    /// The adapters of the last question, unless NVML knew none of them. It is not asked about them
    /// again: loading it takes time, and wakes up GPUs that sleep.
    asked: Vec<Adapter>,
}

impl GpuUuidReader {
    /// A reader that asks `read`, or never answers.
    #[must_use]
    pub(crate) fn new(read: Option<ReadGpuUuids>) -> GpuUuidReader {
        let effect = "containers get no CUDA_VISIBLE_DEVICES for devices that changed";
        let query = BackgroundQuery::new("NVML", effect);
        GpuUuidReader { read, query, wanted: Vec::new(), asked: Vec::new() }
    }

    /// Requests the UUIDs of the adapters of the newest snapshot;
    /// [`next`](GpuUuidReader::next) returns them.
    pub(crate) fn request(&mut self, adapters: &[Adapter]) {
        self.wanted = adapters
            .iter()
            .filter(|a| a.pnp.is_some())
            .filter(|a| Vendor::from_id(a.hardware_id.vendor) == Vendor::Nvidia)
            .cloned()
            .collect();
    }

    /// The next answer. Never completes without a request, or if the answer is known.
    pub(crate) async fn next(&mut self) -> GpuUuids {
        if let Some(read) = self.read.as_ref().filter(|_| !self.query.is_running()) {
            let read = Arc::clone(read);
            let adapters = std::mem::take(&mut self.wanted);
            if !adapters.is_empty() && self.asked != adapters {
                self.asked.clone_from(&adapters);
                self.query.start(move || read(&adapters));
            }
        }
        let uuids = self.query.answer().await;
        if uuids.is_empty() {
            self.asked.clear();
        }
        uuids
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    /// An NVML whose answers a test sends, and the adapters that it was asked about.
    fn nvml() -> (GpuUuidReader, Sender<GpuUuids>, Receiver<usize>) {
        let (send, answers) = channel();
        let (asked, questions) = channel();
        let answers = Mutex::new(answers);
        let read = move |adapters: &[Adapter]| {
            asked.send(adapters.len()).unwrap();
            answers.lock().unwrap().recv().unwrap()
        };
        (GpuUuidReader::new(Some(Arc::new(read))), send, questions)
    }

    fn gpus() -> Vec<Adapter> {
        let text = include_str!("../../../../../fixtures/inventories/aws-t4-two.yaml");
        config::inventory::parse("aws-t4-two.yaml", text).unwrap().adapters
    }

    fn uuids() -> GpuUuids {
        [(PnpId::new("PCI"), "GPU-1".to_owned())].into()
    }

    #[tokio::test]
    async fn the_same_adapters_are_asked_about_until_there_is_an_answer() {
        let (mut reader, answer, questions) = nvml();
        let gpus = gpus();
        reader.request(&gpus);
        answer.send(GpuUuids::new()).unwrap();
        assert!(reader.next().await.is_empty());
        reader.request(&gpus);
        answer.send(uuids()).unwrap();
        assert_eq!(reader.next().await, uuids());
        reader.request(&gpus);
        assert!(timeout(Duration::ZERO, reader.next()).await.is_err());
        assert_eq!(questions.try_iter().count(), 2);
        reader.request(&gpus[..1]);
        answer.send(uuids()).unwrap();
        assert_eq!(reader.next().await, uuids());
        assert_eq!(questions.try_iter().collect::<Vec<_>>(), [1]);
    }

    #[tokio::test]
    async fn while_nvml_hangs_there_is_one_query_and_then_one_about_the_newest_adapters() {
        let (mut reader, answer, questions) = nvml();
        let gpus = gpus();
        reader.request(&gpus);
        assert!(timeout(Duration::ZERO, reader.next()).await.is_err());
        (0..50).for_each(|_| reader.request(&gpus[..1]));
        answer.send(uuids()).unwrap();
        reader.next().await;
        answer.send(uuids()).unwrap();
        reader.next().await;
        reader.request(&gpus[..1]);
        assert!(timeout(Duration::ZERO, reader.next()).await.is_err());
        assert_eq!(questions.try_iter().collect::<Vec<_>>(), [2, 1]);
    }

    #[tokio::test]
    async fn adapters_of_other_vendors_are_not_asked_about() {
        let (mut reader, _answer, questions) = nvml();
        let mut adapters = gpus();
        for adapter in &mut adapters {
            adapter.hardware_id.vendor = 0x1002;
        }
        reader.request(&adapters);
        assert!(timeout(Duration::ZERO, reader.next()).await.is_err());
        assert!(!reader.query.is_running());
        assert_eq!(questions.try_iter().count(), 0);
    }
}
