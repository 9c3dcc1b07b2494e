//! What the test of an API provides: its devices, and a kernel on each.

use crate::outcome::{DeviceInfo, Fault, Library, Measurement};

/// A compiled kernel on an opened device.
pub(crate) trait Kernel {
    /// Runs the computation of [`crate::workload`] `repeats` times, and returns the result of the
    /// last one. Every repetition writes the same words.
    fn run(&mut self, repeats: u32) -> Result<Vec<u32>, Fault>;

    /// Further tests that only this API has, each verified.
    fn further_tests(&mut self) -> Result<Vec<Measurement>, Fault> {
        Ok(Vec::new())
    }
}

/// A device that an API lists.
pub(crate) struct Candidate {
    pub(crate) info: DeviceInfo,
    pub(crate) work: Work,
}

/// What a device can do for the test. Nothing is opened before it is tested.
pub(crate) enum Work {
    /// The device computes with a kernel.
    Kernel(Box<dyn FnOnce() -> Result<Box<dyn Kernel>, Fault>>),
    /// The device has a different test, which verifies what it does.
    Test(Box<dyn FnOnce() -> Result<Vec<Measurement>, Fault>>),
    /// The API only lists the device, with these values, or could not open it.
    Known(Result<Vec<Measurement>, Fault>),
}

impl Work {
    /// A kernel that `open` opens.
    pub(crate) fn kernel<K: Kernel + 'static>(
        open: impl FnOnce() -> Result<K, Fault> + 'static,
    ) -> Work {
        Work::Kernel(Box::new(|| Ok(Box::new(open()?))))
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
