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

/// What a device can do for the test.
pub(crate) enum Work {
    /// It computes.
    Kernel(Box<dyn Kernel>),
    /// It has a test of its own, which verifies what the device does.
    Test(Box<dyn FnOnce() -> Result<Vec<Measurement>, Fault>>),
    /// The API only lists devices, with these values.
    Listed(Vec<Measurement>),
    /// It could not be opened.
    Failed(Fault),
}

impl From<Result<Box<dyn Kernel>, Fault>> for Work {
    fn from(opened: Result<Box<dyn Kernel>, Fault>) -> Work {
        opened.map_or_else(Work::Failed, Work::Kernel)
    }
}

/// An API in this process.
pub(crate) struct Session {
    pub(crate) library: Library,
    pub(crate) candidates: Vec<Candidate>,
}

/// Why an API has no session.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// Its library is not installed.
    Absent(Fault),
    /// Its library does not work.
    Broken(Library, Fault),
}
