//! Why the adapters of a host cannot be read.

use std::io;

use config::inventory::InventoryError;
use host::SourceError;

use crate::failure::Failure;

/// What to do on a host that does not run Windows.
const USE_INVENTORY: &str =
    "use an inventory with `--inventory FILE`, which `record` writes on a Windows host";

const RESTART: &str = "the graphics driver or the system does not answer: restart the host; if it \
     hangs again, update the driver";

/// Why the adapters of a host cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The inventory is missing or malformed.
    #[error(transparent)]
    Inventory(#[from] InventoryError),
    /// This host does not run Windows.
    #[error("this host runs {}, which has no DirectX adapters", std::env::consts::OS)]
    NotWindows,
    /// A demonstration was asked for on Windows.
    #[error("`--demonstration` is for Linux nodes, and this host runs Windows")]
    DemonstrationOnWindows,
    /// This Windows lacks what lists adapters.
    #[error(transparent)]
    Unsupported(SourceError),
    /// This host was opened, and its adapters cannot be read.
    #[error("cannot read the adapters of this host")]
    Unreadable(#[source] SourceError),
    /// This host does not answer.
    #[error("cannot read the adapters of this host")]
    NoAnswer(#[from] NoAnswer),
    /// The operating system refuses a thread.
    #[error("cannot start a thread")]
    Thread(#[source] io::Error),
}

/// A host does not answer.
#[derive(Debug, thiserror::Error)]
#[error("no answer within {seconds} s while {step}")]
pub struct NoAnswer {
    /// How long the host was asked.
    pub seconds: u64,
    /// What was read.
    pub step: String,
}

impl HostError {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        match self {
            HostError::Inventory(error) => error.hint(),
            HostError::NotWindows => Some(USE_INVENTORY),
            HostError::DemonstrationOnWindows => {
                Some("remove it to serve the devices of this host")
            }
            HostError::NoAnswer(_) => Some(RESTART),
            HostError::Unsupported(_) | HostError::Unreadable(_) | HostError::Thread(_) => None,
        }
    }

    /// Whether the command needs other options, rather than another state of the host.
    #[must_use]
    pub fn is_wrong_usage(&self) -> bool {
        use HostError::{DemonstrationOnWindows, Inventory, NotWindows};
        matches!(self, Inventory(_) | NotWindows | DemonstrationOnWindows)
    }
}

impl From<HostError> for Failure {
    fn from(error: HostError) -> Failure {
        let hint = error.hint().map(str::to_owned);
        let is_usage = error.is_wrong_usage();
        Failure::of(error, is_usage, hint)
    }
}
