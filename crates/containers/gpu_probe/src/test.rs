//! Tests the devices of an API in this process.

use std::time::Instant;

use crate::api::Api;
use crate::outcome::{DeviceOutcome, Outcome};
use crate::session::{Candidate, Refusal, Session, Work};
use crate::{apis, file_version};

/// Tests `api` in this process.
pub(crate) fn outcome(api: Api) -> Outcome {
    let mut outcome = match apis::open(api) {
        Err(Refusal::Absent(fault)) => Outcome::Absent(fault),
        Err(Refusal::Broken(library, fault)) => Outcome::Broken { library, fault },
        Ok(Session { library, candidates }) => {
            Outcome::Listed { library, devices: candidates.into_iter().map(device).collect() }
        }
    };
    if let Some(library) = outcome.library_mut() {
        library.file_version = file_version::read(&library.path);
    }
    outcome
}

fn device(Candidate { info, work }: Candidate) -> DeviceOutcome {
    let test = match work {
        Work::Known(known) => {
            return DeviceOutcome { info, fault: known.err(), first_run_milliseconds: None };
        }
        Work::Test(test) => test,
    };
    let start = Instant::now();
    let fault = test().err();
    let time = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
    // A test that failed may have ended early.
    let first_run_milliseconds = fault.is_none().then_some(time);
    DeviceOutcome { info, fault, first_run_milliseconds }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::DeviceInfo;
    use crate::workload;

    fn tested(work: Work) -> DeviceOutcome {
        device(Candidate { info: DeviceInfo::default(), work })
    }

    #[test]
    fn the_words_of_a_kernel_are_verified() {
        let right = tested(Work::kernel(|| Ok(workload::expected().to_vec())));
        assert!(right.fault.is_none() && right.first_run_milliseconds.is_some(), "{right:?}");
        let wrong = tested(Work::kernel(|| {
            let mut words = workload::expected().to_vec();
            words[0] = 0;
            Ok(words)
        }));
        assert!(wrong.fault.unwrap().message.starts_with("wrong result: 1 of "));
        assert_eq!(wrong.first_run_milliseconds, None);
    }

    #[test]
    fn a_device_that_is_only_listed_has_no_time() {
        let listed = tested(Work::Known(Ok(())));
        assert_eq!((listed.fault, listed.first_run_milliseconds), (None, None));
    }
}
