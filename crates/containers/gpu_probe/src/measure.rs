//! Runs the kernels of an API, verifies their results and measures them.

use std::time::{Duration, Instant};

use crate::api::Api;
use crate::outcome::{DeviceOutcome, Fault, Measurement, Outcome};
use crate::session::{Candidate, Kernel, Refusal, Session, Work};
use crate::{apis, file_version, workload};

/// How long a run should take to be measured.
const RUN: Duration = Duration::from_millis(50);
/// The most repetitions in one run: drivers limit the work of one submission.
const MOST_REPEATS: u32 = 1_000;

/// How much the devices compute.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// The time that the API computes in addition, divided among its devices.
    pub(crate) burn: Option<Duration>,
    /// Whether software devices compute for that time too.
    pub(crate) allow_software: bool,
}

/// Tests `api` in this process.
pub(crate) fn outcome(api: Api, effort: Effort) -> Outcome {
    let mut outcome = test(apis::open(api), effort);
    if let Some(library) = outcome.library_mut() {
        library.file_version = file_version::read(&library.path);
    }
    outcome
}

/// Tests every device of an API.
fn test(opened: Result<Session, Refusal>, effort: Effort) -> Outcome {
    match opened {
        Err(Refusal::Absent(fault)) => Outcome::Absent(fault),
        Err(Refusal::Broken(library, fault)) => Outcome::Broken { library, fault },
        Ok(Session { library, candidates }) => {
            let burning = candidates.iter().filter(|c| burns(c, effort)).count();
            let share = effort.burn.map(|time| time / u32::try_from(burning.max(1)).unwrap_or(1));
            let devices = candidates.into_iter().map(|candidate| {
                let share = share.filter(|_| burns(&candidate, effort));
                device(candidate, share)
            });
            Outcome::Listed { library, devices: devices.collect() }
        }
    }
}

fn burns(candidate: &Candidate, effort: Effort) -> bool {
    candidate.info.kind.counts(effort.allow_software) && matches!(candidate.work, Work::Kernel(_))
}

fn device(candidate: Candidate, burn: Option<Duration>) -> DeviceOutcome {
    let mut measurements = Vec::new();
    let result = match candidate.work {
        Work::Known(values) => values.map(|values| measurements = values),
        Work::Test(test) => test().map(|values| measurements = values),
        Work::Kernel(open) => {
            open().and_then(|mut kernel| compute(&mut *kernel, burn, &mut measurements))
        }
    };
    DeviceOutcome { info: candidate.info, fault: result.err(), measurements }
}

fn compute(
    kernel: &mut dyn Kernel,
    burn: Option<Duration>,
    measurements: &mut Vec<Measurement>,
) -> Result<(), Fault> {
    let first = timed_run(kernel, 1)?;
    measurements.push(Measurement::new("first run", first.as_secs_f64() * 1e3, "ms"));
    // The first run may compile the kernel, so it says little about the next one.
    let second = timed_run(kernel, 1)?;
    let repeats = repeats(second);
    let third = timed_run(kernel, repeats)?;
    let best = (workload::operations() / second.as_secs_f64().max(1e-9))
        .max(workload::operations() * f64::from(repeats) / third.as_secs_f64().max(1e-9));
    measurements.push(Measurement::new("32-bit integers", best / 1e9, "Gop/s"));
    measurements.extend(kernel.further_tests()?);
    if let Some(time) = burn {
        let start = Instant::now();
        let mut runs = 0.0;
        while start.elapsed() < time {
            timed_run(kernel, repeats).map_err(|fault| after(start, fault))?;
            runs += f64::from(repeats);
        }
        measurements.push(Measurement::new("burned", start.elapsed().as_secs_f64(), "s"));
        measurements.push(Measurement::new("verified runs", runs, "kernels"));
    }
    Ok(())
}

fn after(start: Instant, fault: Fault) -> Fault {
    let message = format!("after {} s under load: {}", start.elapsed().as_secs(), fault.message);
    Fault { message, ..fault }
}

fn timed_run(kernel: &mut dyn Kernel, repeats: u32) -> Result<Duration, Fault> {
    let start = Instant::now();
    let result = kernel.run(repeats)?;
    let time = start.elapsed();
    workload::verify(&result)?;
    Ok(time)
}

/// The repetitions with which a run takes about [`RUN`], if one takes `one`.
fn repeats(one: Duration) -> u32 {
    let wanted = RUN.as_micros() / one.as_micros().max(1);
    u32::try_from(wanted).unwrap_or(MOST_REPEATS).clamp(1, MOST_REPEATS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{DeviceInfo, Kind, Library};

    /// Computes on the CPU until run number `failing`.
    struct Double {
        runs: u32,
        failing: u32,
    }

    impl Kernel for Double {
        fn run(&mut self, _: u32) -> Result<Vec<u32>, Fault> {
            self.runs += 1;
            let mut words = workload::expected().to_vec();
            if self.runs == self.failing {
                words[0] = 0;
            }
            Ok(words)
        }
    }

    fn outcome(failing: u32, kind: Kind, burn: Option<Duration>) -> DeviceOutcome {
        let info = DeviceInfo { kind, ..DeviceInfo::default() };
        let work = Work::kernel(move || Ok(Double { runs: 0, failing }));
        let library = Library::new("x");
        let session = Session { library, candidates: vec![Candidate { info, work }] };
        match test(Ok(session), Effort { burn, allow_software: false }) {
            Outcome::Listed { mut devices, .. } => devices.remove(0),
            other => panic!("{other:?}"),
        }
    }

    fn names(outcome: &DeviceOutcome) -> Vec<&str> {
        outcome.measurements.iter().map(|m| &*m.name).collect()
    }

    #[test]
    fn every_run_is_verified() {
        for failing in 1..=3 {
            let fault = outcome(failing, Kind::Hardware, None).fault.unwrap();
            assert!(fault.message.starts_with("wrong result: 1 of "), "{failing}: {fault:?}");
        }
        let right = outcome(0, Kind::Hardware, None);
        assert_eq!(
            (right.fault.as_ref(), names(&right)),
            (None, vec!["first run", "32-bit integers"])
        );
    }

    #[test]
    fn a_device_that_fails_under_load_is_found() {
        let minute = Duration::from_mins(1);
        let fault = outcome(4, Kind::Hardware, Some(minute)).fault.unwrap();
        assert!(fault.message.contains(" s under load: wrong result: "), "{fault:?}");
    }

    #[test]
    fn only_hardware_is_kept_busy() {
        let moment = Duration::from_millis(1);
        let burned = |kind| names(&outcome(0, kind, Some(moment))).contains(&"burned");
        assert!(burned(Kind::Hardware));
        assert!(!burned(Kind::Software));
    }

    #[test]
    fn fast_devices_repeat_the_kernel() {
        for (micros, expected) in [(0, 1_000), (50, 1_000), (100, 500), (25_000, 2), (90_000, 1)] {
            assert_eq!(repeats(Duration::from_micros(micros)), expected, "{micros} µs");
        }
    }
}
