//! What NVIDIA's management library (NVML) reports of GPUs: the UUIDs, by which CUDA identifies
//! them, and the licenses of their drivers.
//!
//! The driver may take seconds to answer, and a hint for containers is not worth the wait: what
//! NVML reports arrives later.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use devices::{Adapter, LicenseState, NvidiaFacts, PnpId, Vendor};
use tokio::time::{Instant, sleep_until};

use crate::host::background_query::BackgroundQuery;

/// Asks NVML about NVIDIA devices. It blocks, perhaps for seconds.
pub type ReadNvidia = Arc<dyn Fn(&[Adapter]) -> NvidiaGpus + Send + Sync>;

/// What NVML reports, by `PnP` id.
pub type NvidiaGpus = BTreeMap<PnpId, NvidiaFacts>;

/// How long until NVML is asked again about GPUs whose driver needs a license. It gets the license
/// some time after the host has started, and may lose it.
const LICENSE_PERIOD: Duration = Duration::from_mins(1);

/// Asks NVML, where there is one, about the NVIDIA devices of the newest snapshot.
pub(crate) struct NvidiaReader {
    read: Option<ReadNvidia>,
    query: BackgroundQuery<NvidiaGpus>,
    /// The NVIDIA adapters to ask about.
    wanted: Vec<Adapter>,
    /// The adapters of the last question, unless the answer lacked something. It is not asked about
    /// them again: loading it takes time, and wakes up GPUs that sleep.
    asked: Vec<Adapter>,
    /// When the last question is asked again all the same, because a driver needs a license.
    repeat_at: Option<Instant>,
    is_repeated: bool,
}

impl NvidiaReader {
    /// A reader that asks `read`, or never answers.
    #[must_use]
    pub(crate) fn new(read: Option<ReadNvidia>) -> NvidiaReader {
        let effect = "containers get no CUDA_VISIBLE_DEVICES for devices that changed, and licenses \
                      are not checked";
        NvidiaReader {
            read,
            query: BackgroundQuery::new("NVML", effect),
            wanted: Vec::new(),
            asked: Vec::new(),
            repeat_at: None,
            is_repeated: false,
        }
    }

    /// Asks about the adapters of the newest snapshot; [`next`](NvidiaReader::next) returns the
    /// answer.
    pub(crate) fn request(&mut self, adapters: &[Adapter]) {
        self.wanted = adapters
            .iter()
            .filter(|a| a.pnp.is_some())
            .filter(|a| Vendor::from_id(a.hardware_id.vendor) == Vendor::Nvidia)
            .cloned()
            .collect();
    }

    /// The next answer. Never completes without a request, or if the answer is known and no driver
    /// needs a license.
    pub(crate) async fn next(&mut self) -> NvidiaGpus {
        loop {
            if !self.query.is_running() {
                self.start_next();
            }
            let repeat_at = self.repeat_at.filter(|_| !self.query.is_running());
            tokio::select! {
                gpus = self.query.answer() => {
                    if let Some(gpus) = self.answered(gpus) {
                        return gpus;
                    }
                }
                () = reached(repeat_at) => {}
            }
        }
    }

    /// Starts the question that is due, if there is one.
    fn start_next(&mut self) {
        let Some(read) = self.read.clone() else { return };
        let wanted = std::mem::take(&mut self.wanted);
        let is_new = !wanted.is_empty() && wanted != self.asked;
        if !is_new && self.repeat_at.is_none_or(|at| Instant::now() < at) {
            return;
        }
        if is_new {
            self.asked = wanted;
        }
        self.is_repeated = !is_new;
        self.repeat_at = None;
        let adapters = self.asked.clone();
        self.query.start(move || read(&adapters));
    }

    /// The answer, unless it is none to a question that NVML has answered before: what it said then
    /// counts while it fails.
    fn answered(&mut self, gpus: NvidiaGpus) -> Option<NvidiaGpus> {
        let states = || gpus.values().map(|gpu| gpu.license.map(|license| license.state));
        let is_licensable =
            |state| matches!(state, Some(LicenseState::Licensed | LicenseState::Unlicensed));
        let is_failed_repeat = gpus.is_empty() && self.is_repeated;
        if is_failed_repeat || states().any(is_licensable) {
            self.repeat_at = Some(Instant::now() + LICENSE_PERIOD);
        } else if gpus.is_empty() || states().any(|state| state.is_none()) {
            self.asked.clear();
        }
        (!is_failed_repeat).then_some(gpus)
    }
}

/// Waits until this time, or forever.
async fn reached(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc::{Receiver, Sender, channel};

    use devices::License;
    use tokio::time::timeout;

    use super::*;

    /// An NVML whose answers a test sends, and the adapters that it was asked about.
    fn nvml() -> (NvidiaReader, Sender<NvidiaGpus>, Receiver<usize>) {
        let (send, answers) = channel();
        let (asked, questions) = channel();
        let answers = Mutex::new(answers);
        let read = move |adapters: &[Adapter]| {
            asked.send(adapters.len()).unwrap();
            answers.lock().unwrap().recv().unwrap()
        };
        (NvidiaReader::new(Some(Arc::new(read))), send, questions)
    }

    fn gpus() -> Vec<Adapter> {
        let text = include_str!("../../../../../fixtures/inventories/aws-t4-two.yaml");
        config::inventory::parse("aws-t4-two.yaml", text).unwrap().adapters
    }

    fn gpu(license: Option<License>) -> NvidiaGpus {
        let facts = NvidiaFacts { license, ..NvidiaFacts::default() };
        [(PnpId::new("PCI"), facts)].into()
    }

    fn known() -> NvidiaGpus {
        gpu(Some(License::NOT_REQUIRED))
    }

    /// Lets time pass. The clock cannot be paused longer: it would run ahead of the threads.
    async fn pass(time: Duration) {
        tokio::time::pause();
        tokio::time::advance(time).await;
        tokio::time::resume();
    }

    /// Whether nothing is answered, nor asked, without waiting.
    async fn is_idle(reader: &mut NvidiaReader) -> bool {
        timeout(Duration::ZERO, reader.next()).await.is_err() && !reader.query.is_running()
    }

    #[tokio::test]
    async fn the_same_adapters_are_asked_about_until_there_is_an_answer() {
        let (mut reader, answer, questions) = nvml();
        let gpus = gpus();
        for incomplete in [NvidiaGpus::new(), gpu(None)] {
            reader.request(&gpus);
            answer.send(incomplete.clone()).unwrap();
            assert_eq!(reader.next().await, incomplete);
            // NVML is not asked again before the next snapshot.
            pass(2 * LICENSE_PERIOD).await;
            assert!(is_idle(&mut reader).await);
        }
        reader.request(&gpus);
        answer.send(known()).unwrap();
        assert_eq!(reader.next().await, known());
        reader.request(&gpus);
        pass(2 * LICENSE_PERIOD).await;
        assert!(is_idle(&mut reader).await);
        assert_eq!(questions.try_iter().count(), 3);
        reader.request(&gpus[..1]);
        answer.send(known()).unwrap();
        assert_eq!(reader.next().await, known());
        assert_eq!(questions.try_iter().collect::<Vec<_>>(), [1]);
    }

    #[tokio::test]
    async fn a_license_is_checked_each_minute_as_long_as_the_driver_needs_it() {
        let (mut reader, answer, questions) = nvml();
        let unlicensed = gpu(Some(License::MISSING));
        let licensed = gpu(Some(License::until(None)));
        reader.request(&gpus());
        for expected in [&unlicensed, &licensed, &unlicensed] {
            answer.send(expected.clone()).unwrap();
            assert_eq!(reader.next().await, *expected);
            pass(LICENSE_PERIOD / 2).await;
            assert!(is_idle(&mut reader).await);
            pass(LICENSE_PERIOD).await;
        }
        // While NVML fails, its last answer counts, and it is asked again.
        assert!(timeout(Duration::ZERO, reader.next()).await.is_err());
        answer.send(NvidiaGpus::new()).unwrap();
        while reader.query.is_running() {
            assert!(timeout(Duration::from_millis(10), reader.next()).await.is_err());
        }
        pass(2 * LICENSE_PERIOD).await;
        answer.send(known()).unwrap();
        assert_eq!(reader.next().await, known());
        pass(2 * LICENSE_PERIOD).await;
        assert!(is_idle(&mut reader).await);
        assert_eq!(questions.try_iter().count(), 5);
    }

    #[tokio::test]
    async fn a_check_that_hangs_is_not_repeated() {
        let (mut reader, answer, questions) = nvml();
        reader.request(&gpus());
        answer.send(gpu(Some(License::MISSING))).unwrap();
        reader.next().await;
        for _ in 0..3 {
            pass(2 * LICENSE_PERIOD).await;
            assert!(timeout(Duration::ZERO, reader.next()).await.is_err());
            assert!(reader.query.is_running());
        }
        answer.send(gpu(Some(License::until(None)))).unwrap();
        assert_eq!(reader.next().await, gpu(Some(License::until(None))));
        assert_eq!(questions.try_iter().count(), 2);
    }

    #[tokio::test]
    async fn while_nvml_hangs_there_is_one_query_and_then_one_about_the_newest_adapters() {
        let (mut reader, answer, questions) = nvml();
        let gpus = gpus();
        reader.request(&gpus);
        assert!(timeout(Duration::ZERO, reader.next()).await.is_err());
        (0..50).for_each(|_| reader.request(&gpus[..1]));
        answer.send(known()).unwrap();
        reader.next().await;
        answer.send(known()).unwrap();
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
