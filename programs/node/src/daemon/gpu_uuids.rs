//! The UUIDs of NVIDIA devices, by which CUDA identifies them.
//!
//! The driver may take seconds to answer, and a hint for containers is not worth the wait: the UUIDs
//! arrive later.

use std::collections::BTreeMap;
use std::sync::Arc;

use devices::{Adapter, PnpId, Vendor};

use crate::daemon::background_query::BackgroundQuery;

/// Reads the UUIDs of NVIDIA devices. It blocks, perhaps for seconds.
pub type ReadGpuUuids = Arc<dyn Fn(&[Adapter]) -> GpuUuids + Send + Sync>;

/// UUIDs (`GPU-…`) by `PnP` id.
pub type GpuUuids = BTreeMap<PnpId, String>;

/// Asks NVML, where there is one, about the NVIDIA devices of the newest snapshot.
pub struct GpuUuidReader {
    read: Option<ReadGpuUuids>,
    query: BackgroundQuery<GpuUuids>,
    /// The NVIDIA adapters of the newest snapshot.
    adapters: Vec<Adapter>,
    /// The adapters of the last question, unless NVML knew none of them. It is not asked about them
    /// again: loading it takes time, and wakes up GPUs that sleep.
    asked: Vec<Adapter>,
}

impl GpuUuidReader {
    /// A reader that asks `read`, or never answers.
    #[must_use]
    pub fn new(read: Option<ReadGpuUuids>) -> GpuUuidReader {
        let effect = "containers get no CUDA_VISIBLE_DEVICES for devices that changed";
        GpuUuidReader {
            read,
            query: BackgroundQuery::new("NVML", effect),
            adapters: Vec::new(),
            asked: Vec::new(),
        }
    }

    /// Requests the UUIDs of `adapters`, unless the answer is known;
    /// [`next`](GpuUuidReader::next) returns them.
    pub fn request(&mut self, adapters: &[Adapter]) {
        let has_uuid = |a: &&Adapter| {
            a.pnp.is_some() && Vendor::from_id(a.hardware_id.vendor) == Vendor::Nvidia
        };
        self.adapters = adapters.iter().filter(has_uuid).cloned().collect();
        self.ask();
    }

    fn ask(&mut self) {
        let Some(read) = &self.read else { return };
        if self.adapters.is_empty() || self.asked == self.adapters || self.query.is_running() {
            return;
        }
        let (read, adapters) = (Arc::clone(read), self.adapters.clone());
        self.asked.clone_from(&adapters);
        self.query.start(move || read(&adapters));
    }

    /// The next answer. Never completes without a request.
    pub async fn next(&mut self) -> GpuUuids {
        let uuids = self.query.answer().await;
        // They may have changed while the query was running.
        self.ask();
        if uuids.is_empty() && !self.query.is_running() {
            self.asked.clear();
        }
        uuids
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use std::sync::mpsc::{Receiver, Sender, channel};

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
        let text = include_str!("../../../../fixtures/inventories/aws-t4-two.yaml");
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
        (0..50).for_each(|_| reader.request(&gpus[..1]));
        answer.send(uuids()).unwrap();
        reader.next().await;
        answer.send(uuids()).unwrap();
        reader.next().await;
        reader.request(&gpus[..1]);
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
        assert!(!reader.query.is_running());
        assert_eq!(questions.try_iter().count(), 0);
    }
}
