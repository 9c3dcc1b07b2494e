//! What NVIDIA's management library (NVML) reports of GPUs: the UUIDs, by which CUDA identifies
//! them, and the licenses of their drivers.
//!
//! The driver may take seconds to answer, and a hint for containers is not worth the wait: what
//! NVML reports arrives later. It is asked in a process that ends with the answer (`win32::nvml`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use host::{Adapter, LicenseState, NvidiaFacts, PnpId, Vendor};
use process::event_loop::reached;
use tokio::time::Instant;
use win32::nvml::NvmlError;

use crate::readers::background_query::BackgroundQuery;

/// Asks NVML about NVIDIA devices. It blocks, perhaps for seconds.
pub type ReadNvidia = Arc<dyn Fn(&[Adapter]) -> NvidiaAnswer + Send + Sync>;

/// What NVML reports, or why it has not answered.
pub type NvidiaAnswer = Result<NvidiaGpus, NvmlError>;

/// What NVML reports, by `PnP` id.
pub type NvidiaGpus = BTreeMap<PnpId, NvidiaFacts>;

/// How long until NVML is asked again about GPUs whose driver needs a license. It gets the license
/// some time after the host has started, and may lose it.
const LICENSE_PERIOD: Duration = Duration::from_mins(10);

/// When a question is reported that has not ended. Its process is killed before, so it hangs in the
/// kernel.
const REPORT_AFTER: Duration = Duration::from_secs(30);

/// What follows for containers while NVML does not answer.
const EFFECT: &str = "containers get no CUDA_VISIBLE_DEVICES for devices that changed, and licenses \
                      are not checked";

/// After this many answers without a license state, the driver counts as one that never reports
/// licenses. NVML fails for a short time while a driver starts.
const INCOMPLETE_ANSWERS: u32 = 3;

/// Asks NVML, where there is one, about the NVIDIA devices of the newest snapshot.
pub(crate) struct NvidiaReader {
    read: Option<ReadNvidia>,
    query: BackgroundQuery<NvidiaAnswer>,
    /// The NVIDIA adapters of a newer snapshot than that of the last question.
    wanted: Option<Vec<Adapter>>,
    /// The adapters of the last question. NVML is not asked about them again if it has answered:
    /// that takes time, and wakes up GPUs that sleep.
    asked: Vec<Adapter>,
    /// What NVML has said about them. While it fails, this counts.
    known: NvidiaGpus,
    /// How often NVML has not answered everything about them.
    incomplete_answers: u32,
    /// Whether the next snapshot is asked about, although its adapters are the same.
    is_incomplete: bool,
    /// When the last question is asked again, because a driver needs a license.
    repeat_at: Option<Instant>,
    is_repeated: bool,
    /// The last failure, until NVML answers again. It was logged.
    failure: Option<String>,
}

impl NvidiaReader {
    /// A reader that asks `read`, or never answers.
    #[must_use]
    pub(crate) fn new(read: Option<ReadNvidia>) -> NvidiaReader {
        NvidiaReader {
            read,
            query: BackgroundQuery::new("NVML", EFFECT).reported_after(REPORT_AFTER),
            wanted: None,
            asked: Vec::new(),
            known: NvidiaGpus::new(),
            incomplete_answers: 0,
            is_incomplete: false,
            repeat_at: None,
            is_repeated: false,
            failure: None,
        }
    }

    /// Asks about the adapters of the newest snapshot; [`next`](NvidiaReader::next) returns the
    /// answer.
    pub(crate) fn request(&mut self, adapters: &[Adapter]) {
        let is_nvidia = |a: &&Adapter| a.vendor() == Vendor::Nvidia;
        let with_device = adapters.iter().filter(|adapter| adapter.pnp.is_some());
        self.wanted = Some(with_device.filter(is_nvidia).cloned().collect());
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
                answer = self.query.answer() => {
                    if let Some(gpus) = self.answered(answer) {
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
        let wanted = self.wanted.take();
        let is_new =
            wanted.as_ref().is_some_and(|wanted| *wanted != self.asked || self.is_incomplete);
        if let Some(wanted) = wanted.filter(|wanted| *wanted != self.asked) {
            // What was said of an adapter that has changed no longer counts.
            let stays = |id: &PnpId| wanted.iter().any(|a| is_of(a, id) && self.asked.contains(a));
            self.known.retain(|id, _| stays(id));
            self.asked = wanted;
            self.incomplete_answers = 0;
            self.repeat_at = None;
        }
        let is_due = is_new || self.repeat_at.is_some_and(|at| at <= Instant::now());
        if self.asked.is_empty() || !is_due {
            return;
        }
        self.is_repeated = !is_new;
        self.repeat_at = None;
        let adapters = self.asked.clone();
        self.query.start(move || read(&adapters));
    }

    /// What NVML has said until now, unless the question is an old one and nothing has changed.
    fn answered(&mut self, answer: NvidiaAnswer) -> Option<NvidiaGpus> {
        let has_failed = answer.is_err();
        let mut gpus = answer.unwrap_or_else(|error| {
            self.log_failure(&error);
            NvidiaGpus::new()
        });
        for (id, known) in &self.known {
            let facts = gpus.entry(id.clone()).or_default();
            facts.uuid = facts.uuid.take().or_else(|| known.uuid.clone());
            facts.compute_capability = facts.compute_capability.or(known.compute_capability);
            facts.license = facts.license.or(known.license);
        }
        let of = |adapter: &Adapter| gpus.iter().find(|(id, _)| is_of(adapter, id));
        let states = || {
            let facts = self.asked.iter().filter_map(of);
            facts.map(|(_, facts)| facts.license.map(|license| license.state))
        };
        let is_licensable =
            |state| matches!(state, Some(LicenseState::Licensed | LicenseState::Unlicensed));
        let is_missing = self.asked.iter().any(|adapter| of(adapter).is_none());
        if states().any(is_licensable) {
            self.repeat_at = Some(Instant::now() + LICENSE_PERIOD);
        }
        // Some drivers never report licenses, and are not asked again and again.
        let is_incomplete = is_missing || states().any(|state| state.is_none());
        if !has_failed {
            self.failure = None;
            self.incomplete_answers += u32::from(is_incomplete);
        }
        self.is_incomplete = has_failed
            || is_missing
            || is_incomplete && self.incomplete_answers < INCOMPLETE_ANSWERS;
        let has_changed = gpus != self.known;
        self.known.clone_from(&gpus);
        (has_changed || !self.is_repeated).then_some(gpus)
    }

    /// Logs a failure, unless it is the last one again.
    fn log_failure(&mut self, error: &NvmlError) {
        let text = command_line::error_chain(error);
        if self.failure.as_ref() != Some(&text) {
            tracing::warn!(error = text, effect = EFFECT, hint = error.hint(), "NVML has failed");
            self.failure = Some(text);
        }
    }
}

/// Whether the adapter has the device with this ID.
fn is_of(adapter: &Adapter, id: &PnpId) -> bool {
    adapter.pnp.as_ref().is_some_and(|pnp| pnp.id == *id)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc::{Receiver, Sender, channel};

    use host::License;
    use tokio::time::timeout;

    use super::*;
    use process::logging::test_log::Log;

    /// An NVML whose answers a test sends, and the adapters that it was asked about.
    fn nvml() -> (NvidiaReader, Sender<NvidiaGpus>, Receiver<usize>) {
        nvml_that_answers(Ok)
    }

    /// The same; `answer_of` makes the answers of what the test sends.
    fn nvml_that_answers<T: Send + 'static>(
        answer_of: fn(T) -> NvidiaAnswer,
    ) -> (NvidiaReader, Sender<T>, Receiver<usize>) {
        let (send, answers) = channel();
        let (asked, questions) = channel();
        let answers = Mutex::new(answers);
        let read = move |adapters: &[Adapter]| {
            asked.send(adapters.len()).unwrap();
            answer_of(answers.lock().unwrap().recv().unwrap())
        };
        (NvidiaReader::new(Some(Arc::new(read))), send, questions)
    }

    fn gpus() -> Vec<Adapter> {
        let text = include_str!("../../../../../fixtures/inventories/aws-t4-two.yaml");
        config::inventory::parse("aws-t4-two.yaml", text).unwrap().adapters
    }

    /// What NVML says about each GPU.
    fn gpu(license: Option<License>) -> NvidiaGpus {
        let facts = || NvidiaFacts { license, ..NvidiaFacts::default() };
        gpus().into_iter().map(|adapter| (adapter.pnp.unwrap().id, facts())).collect()
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
    async fn a_license_is_checked_every_ten_minutes_as_long_as_the_driver_needs_it() {
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

    /// NVML fails for one GPU, or in one of its functions.
    #[tokio::test]
    async fn what_nvml_has_said_counts_while_it_does_not_say_it_again() {
        let (mut reader, answer, _questions) = nvml();
        let mut said = gpu(Some(License::until(None)));
        for facts in said.values_mut() {
            facts.uuid = Some("GPU-1".to_owned());
        }
        reader.request(&gpus());
        answer.send(said.clone()).unwrap();
        assert_eq!(reader.next().await, said);
        let mut without_first = said.clone();
        without_first.pop_first();
        for less in [without_first, gpu(None), NvidiaGpus::new()] {
            pass(2 * LICENSE_PERIOD).await;
            assert!(timeout(Duration::ZERO, reader.next()).await.is_err());
            answer.send(less).unwrap();
            while reader.query.is_running() {
                assert!(timeout(Duration::from_millis(10), reader.next()).await.is_err());
            }
        }
        // It is lost all the same.
        pass(2 * LICENSE_PERIOD).await;
        answer.send(gpu(Some(License::MISSING))).unwrap();
        let lost = reader.next().await;
        assert!(lost.values().all(|facts| facts.is_unlicensed() && facts.uuid.is_some()));
        // One adapter is another one now, and NVML fails.
        let mut changed = gpus();
        changed[0].luid.0 += 1000;
        reader.request(&changed);
        answer.send(NvidiaGpus::new()).unwrap();
        assert_eq!(reader.next().await.len(), 1);
    }

    /// The process that asks NVML crashes or hangs.
    #[tokio::test]
    async fn a_failure_changes_nothing_and_is_logged_once_and_the_question_is_asked_again() {
        let log = Log::start();
        let (mut reader, answer, questions) = nvml_that_answers(|answer| answer);
        let hang = || Err(NvmlError::NoAnswer { seconds: 20 });
        let failures = || log.text().matches("NVML has failed").count();
        for _ in 0..=INCOMPLETE_ANSWERS {
            reader.request(&gpus());
            answer.send(hang()).unwrap();
            assert_eq!(reader.next().await, NvidiaGpus::new());
        }
        assert_eq!(failures(), 1, "{}", log.text());
        assert!(log.text().contains("not answered within 20 s"), "{}", log.text());
        assert!(log.text().contains("run nvidia-smi"), "{}", log.text());
        let licensed = gpu(Some(License::until(None)));
        reader.request(&gpus());
        answer.send(Ok(licensed.clone())).unwrap();
        assert_eq!(reader.next().await, licensed);
        // The next failure is logged. Each of them leaves what is known.
        for _ in 0..3 {
            pass(2 * LICENSE_PERIOD).await;
            assert!(timeout(Duration::ZERO, reader.next()).await.is_err());
            answer.send(hang()).unwrap();
            while reader.query.is_running() {
                assert!(timeout(Duration::from_millis(10), reader.next()).await.is_err());
            }
            assert_eq!((failures(), &reader.known), (2, &licensed));
        }
        answer.send(Err(NvmlError::Devices(std::io::ErrorKind::NotFound.into()))).unwrap();
        reader.request(&gpus());
        assert_eq!(reader.next().await, licensed);
        assert_eq!(failures(), 3, "{}", log.text());
        assert_eq!(questions.try_iter().count(), 9);
    }

    #[tokio::test]
    async fn a_driver_that_never_reports_licenses_is_asked_three_times() {
        let (mut reader, answer, questions) = nvml();
        for _ in 0..INCOMPLETE_ANSWERS {
            reader.request(&gpus());
            answer.send(gpu(None)).unwrap();
            assert_eq!(reader.next().await, gpu(None));
        }
        reader.request(&gpus());
        assert!(is_idle(&mut reader).await);
        assert_eq!(questions.try_iter().count(), 3);
    }

    #[tokio::test]
    async fn nothing_is_asked_about_gpus_that_are_gone() {
        let (mut reader, answer, questions) = nvml();
        reader.request(&gpus());
        answer.send(gpu(Some(License::MISSING))).unwrap();
        reader.next().await;
        reader.request(&[]);
        pass(2 * LICENSE_PERIOD).await;
        assert!(is_idle(&mut reader).await);
        assert_eq!(questions.try_iter().count(), 1);
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
