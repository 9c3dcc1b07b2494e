//! What the test of one API found. The process that tests an API sends it to its parent as JSON,
//! and reports contain it.

use host::License;
use serde::{Deserialize, Serialize};

/// Why something failed, and how to fix it.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Fault {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl Fault {
    pub(crate) fn new(message: impl Into<String>) -> Fault {
        Fault { message: message.into(), hint: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Fault {
        self.hint = Some(hint.into());
        self
    }
}

/// A library that was loaded.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Library {
    /// The path of its file, or its name if the system does not say where the file is.
    pub(crate) path: String,
    pub(crate) file_version: Option<String>,
    /// The version of the API that it reports.
    pub(crate) version: Option<String>,
}

impl Library {
    pub(crate) fn new(path: impl Into<String>) -> Library {
        Library { path: path.into(), file_version: None, version: None }
    }
}

/// What the test of an API found.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Outcome {
    /// The API's library is not installed.
    Absent(Fault),
    /// The library exists, but lists no devices; also the outcome of a crash or a hang.
    Broken { library: Option<Library>, fault: Fault },
    /// The library lists these devices, possibly none.
    Listed { library: Library, devices: Vec<DeviceOutcome> },
}

impl Outcome {
    /// The library, if there is one.
    pub(crate) fn library_mut(&mut self) -> Option<&mut Library> {
        match self {
            Outcome::Absent(_) => None,
            Outcome::Broken { library, .. } => library.as_mut(),
            Outcome::Listed { library, .. } => Some(library),
        }
    }
}

/// A device, and whether it computes.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DeviceOutcome {
    #[serde(flatten)]
    pub(crate) info: DeviceInfo,
    pub(crate) fault: Option<Fault>,
    /// How long the device took to be opened, to compile the kernel and to compute.
    pub(crate) first_run_milliseconds: Option<u64>,
}

/// What an API reports about a device.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug, Default)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DeviceInfo {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// The LUID in the format of `DIRECTX_VISIBLE_DEVICES`.
    pub(crate) luid: Option<i64>,
    pub(crate) driver: Option<String>,
    pub(crate) memory_bytes: Option<u64>,
    /// Whether NVIDIA's driver has the license that it needs, if it needs one.
    pub(crate) license: Option<License>,
}

/// Whether a device is a GPU.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug, Default)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Kind {
    #[default]
    Hardware,
    /// No GPU is behind it: the CPU computes, or it only displays.
    Software,
}

impl Kind {
    /// Whether a device of this kind has to work.
    pub(crate) fn counts(self, allow_software: bool) -> bool {
        self == Kind::Hardware || allow_software
    }
}
