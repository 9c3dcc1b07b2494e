//! Why NVML has given no answer, although there may be one.

use std::io;
use std::process::ExitStatus;

/// Why it is not known what NVML reports.
#[derive(Debug, thiserror::Error)]
pub enum NvmlError {
    /// The child process could not be started or observed.
    #[error("cannot run the process that asks NVML")]
    Process(#[source] io::Error),
    /// The child process did not end in time and was killed.
    #[error("NVML has not answered within {seconds} s, and its process was ended")]
    NoAnswer { seconds: u64 },
    /// The child process ended without an answer.
    #[error("the process that asks NVML ended without an answer: {0}")]
    Ended(ExitStatus),
    /// The `PnP` devices, to which the answer belongs, could not be listed.
    #[error("cannot list the devices that NVML reports")]
    Devices(#[source] io::Error),
}

impl NvmlError {
    /// What to do, if that is known.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            NvmlError::NoAnswer { .. } | NvmlError::Ended(_) => Some(
                "run nvidia-smi on the node, which asks the same library; if it fails, too, restart \
                 the node or reinstall NVIDIA's driver",
            ),
            NvmlError::Process(_) | NvmlError::Devices(_) => None,
        }
    }
}
