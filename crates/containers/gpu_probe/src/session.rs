//! What the test of an API provides: its devices, and a test of each.

use crate::outcome::{DeviceInfo, Fault, Library};
use crate::workload;

/// A device that an API lists.
pub(crate) struct Candidate {
    pub(crate) info: DeviceInfo,
    pub(crate) work: Work,
}

/// What a device can do for the test. Nothing is opened before it is tested.
pub(crate) enum Work {
    /// Computes something, and verifies the result.
    Test(Box<dyn FnOnce() -> Result<(), Fault>>),
    /// The API only lists the device, or could not open it.
    Known(Result<(), Fault>),
}

impl Work {
    /// `compute` opens the device and returns the words that the kernel of `workload` wrote.
    pub(crate) fn kernel(compute: impl FnOnce() -> Result<Vec<u32>, Fault> + 'static) -> Work {
        Work::Test(Box::new(|| workload::verify(&compute()?)))
    }
}

/// The version that an API reports, and its devices.
pub(crate) type Devices = (Option<String>, Vec<Candidate>);

/// An API in this process.
pub(crate) struct Session {
    pub(crate) library: Library,
    pub(crate) candidates: Vec<Candidate>,
}

/// Why an API has no session.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The library of the API is not installed.
    Absent(Fault),
    /// The library of the API does not work.
    Broken(Option<Library>, Fault),
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Refusal {
        Refusal::Broken(None, fault)
    }
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Fault {
        let (Refusal::Absent(fault) | Refusal::Broken(_, fault)) = refusal;
        fault
    }
}
