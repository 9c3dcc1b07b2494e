//! What was seen of a node, as plain values: nothing judged, and nothing that only
//! Windows could fill in.

use devices::{HcsSchema, HostFacts, HostSnapshot, PnpId, Policy};
use win32::DriverDate;

use super::image::ImageVersion;
use super::version::Version;

/// What was seen.
pub(crate) struct Observed {
    /// The machine, live or recorded.
    pub(crate) machine: Machine,
    /// The image that was asked about.
    pub(crate) image: Option<ImageVersion>,
    /// The kubelet's device plugin directory and the socket in it.
    pub(crate) directory: Seen<Directory>,
    /// The configuration that `serve` would run with.
    pub(crate) configuration: Result<Configuration, Complaint>,
}

/// What was seen of the machine itself.
pub(crate) struct Machine {
    /// Facts of the host.
    pub(crate) host: HostFacts,
    /// The Host Compute Service.
    pub(crate) hcs: Hcs,
    /// The container runtime.
    pub(crate) containerd: Seen<Containerd>,
    /// The kubelet's program.
    pub(crate) kubelet: Seen<Program>,
    /// The adapters, with the files of every driver store folder listed; or why they
    /// cannot be read.
    pub(crate) adapters: Result<HostSnapshot, Complaint>,
    /// The dates of the devices' drivers; of a recording, none.
    pub(crate) driver_dates: Vec<(PnpId, DriverDate)>,
    /// NVIDIA's management library.
    pub(crate) nvml: Seen<Nvml>,
}

/// Something of a live machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Seen<T> {
    /// It was looked at.
    Looked(T),
    /// It was not: a recording tells nothing of it.
    Recorded,
}

/// What is wrong, with advice.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Complaint {
    /// The error and its causes, in one line.
    pub(crate) what: String,
    /// What to do.
    pub(crate) advice: Option<String>,
}

/// The Host Compute Service.
#[cfg_attr(
    not(any(windows, test)),
    expect(dead_code, reason = "only a live Windows host has one of these")
)]
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Hcs {
    /// Its schemas; none where a recording does not tell.
    Schemas(Vec<HcsSchema>),
    /// Not on this host.
    Missing(String),
    /// It did not answer, or not with schemas.
    Silent(String),
}

/// A program of the node.
#[cfg_attr(
    not(any(windows, test)),
    expect(dead_code, reason = "only a live Windows host has one of these")
)]
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Program {
    /// In none of the places named here.
    NotFound(Vec<String>),
    /// Found, and what it said of its version.
    Found {
        /// Where.
        path: String,
        /// Its version, or why it is not known.
        version: Result<Version, String>,
    },
}

/// containerd.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Containerd {
    /// Its program.
    pub(crate) program: Program,
    /// The plugins that its configuration turns off; `None` where that is not known.
    pub(crate) disabled: Option<Vec<String>>,
}

/// The kubelet's device plugin directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Directory {
    /// Where.
    pub(crate) path: String,
    /// How it is.
    pub(crate) state: DirectoryState,
    /// The kubelet's socket in it.
    pub(crate) socket: SocketState,
}

/// How a directory is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum DirectoryState {
    /// There.
    Present,
    /// Not there.
    Missing,
    /// Something else, or not readable; in words.
    Unusable(String),
}

/// How the kubelet's socket is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum SocketState {
    /// Somebody takes connections.
    Answers,
    /// There is no such file.
    Missing,
    /// The file is there and nobody takes connections.
    Dead(String),
    /// This account may not connect.
    Denied(String),
    /// This host has no `AF_UNIX`.
    Unsupported,
}

/// A configuration that can be run with.
pub(crate) struct Configuration {
    /// What it comes to.
    pub(crate) policy: Policy,
    /// The values that are not defaults, in words, and where each comes from.
    pub(crate) set: Vec<String>,
    /// What has no effect.
    pub(crate) notices: Vec<String>,
}

/// NVIDIA's management library.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Nvml {
    /// Where the library is, of the places that NVIDIA documents.
    pub(crate) library: Option<String>,
    /// What it says of its GPUs, asked through `nvidia-smi`; or why it does not.
    pub(crate) gpus: Result<Vec<NvidiaGpu>, String>,
}

/// A GPU as NVML lists it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct NvidiaGpu {
    /// NVML's number.
    pub(crate) index: String,
    /// The product.
    pub(crate) name: String,
    /// NVIDIA's own number of the driver.
    pub(crate) driver: String,
    /// `WDDM`, `MCDM` or `TCC`.
    pub(crate) model: String,
}
