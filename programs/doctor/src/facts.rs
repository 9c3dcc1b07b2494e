//! What is known of a node, as plain values. Nothing here is judged, and every value can
//! be made up on any operating system.

use devices::{HcsSchema, HostFacts, HostSnapshot, Policy};

use super::image::ImageVersion;
use super::version::Version;

/// Everything that the checks are made from.
pub(crate) struct NodeFacts {
    /// The machine, live or from an inventory.
    pub(crate) machine: MachineFacts,
    /// The image that the request names.
    pub(crate) image: Option<ImageVersion>,
    /// The kubelet's device plugin directory and the socket in it.
    pub(crate) directory: LiveFact<Directory>,
    /// The configuration that `serve` would run with.
    pub(crate) configuration: Result<Configuration, CollectError>,
}

/// What is known of the machine itself.
pub(crate) struct MachineFacts {
    /// Facts of the host.
    pub(crate) host: HostFacts,
    /// The Host Compute Service.
    pub(crate) hcs: Hcs,
    /// The container runtime.
    pub(crate) containerd: LiveFact<Containerd>,
    /// The kubelet's program.
    pub(crate) kubelet: LiveFact<Program>,
    /// The adapters, with the files of every driver store folder listed.
    pub(crate) adapters: Result<HostSnapshot, CollectError>,
    /// NVIDIA's management library.
    pub(crate) nvml: LiveFact<Nvml>,
}

/// Something that only the live machine can answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum LiveFact<T> {
    /// The answer of the live machine.
    Known(T),
    /// The machine is an inventory, which does not hold this.
    NotInInventory,
}

/// Why something could not be collected, and how to fix it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct CollectError {
    /// The error and its causes, in one line.
    pub(crate) message: String,
    /// The fix, where one is known.
    pub(crate) hint: Option<String>,
}

impl CollectError {
    /// The error and its causes in one line, and a hint.
    pub(crate) fn new(error: &dyn std::error::Error, hint: Option<&str>) -> CollectError {
        CollectError { message: cli::error_chain(error), hint: hint.map(str::to_owned) }
    }
}

/// The Host Compute Service.
#[cfg_attr(
    not(any(windows, test)),
    expect(dead_code, reason = "some variants occur only on a live Windows host")
)]
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Hcs {
    /// Its schemas; empty where an inventory does not list them.
    Schemas(Vec<HcsSchema>),
    /// It is not installed on this host.
    Missing(String),
    /// It does not answer, or its answer holds no schemas.
    Unresponsive(String),
}

/// A program of the node.
#[cfg_attr(
    not(any(windows, test)),
    expect(dead_code, reason = "programs are searched for only on a live Windows host")
)]
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Program {
    /// It is in none of these places.
    NotFound(Vec<String>),
    /// It was found and asked for its version.
    Found {
        /// Its path.
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
    /// The plugins that its configuration disables; `None` where that is not known.
    pub(crate) disabled_plugins: Option<Vec<String>>,
}

/// The kubelet's device plugin directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Directory {
    /// Its path.
    pub(crate) path: String,
    /// Its state.
    pub(crate) state: DirectoryState,
    /// The kubelet's socket in it.
    pub(crate) socket: SocketState,
}

/// The state of a directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum DirectoryState {
    /// It exists and is a directory.
    Present,
    /// It does not exist.
    Missing,
    /// It is something else or not readable, and why.
    Unusable(String),
}

/// The state of the kubelet's socket.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum SocketState {
    /// A program accepts connections on it.
    Accepting,
    /// There is no such file.
    Missing,
    /// The file exists and no program accepts connections on it.
    NotResponding(String),
    /// This account may not connect to it.
    AccessDenied(String),
    /// This host has no `AF_UNIX`.
    Unsupported,
}

/// A valid configuration.
pub(crate) struct Configuration {
    /// The policy that follows from it.
    pub(crate) policy: Policy,
    /// The values that are not defaults, each with its origin.
    pub(crate) explicit_values: Vec<String>,
    /// Values that have no effect.
    pub(crate) notices: Vec<String>,
}

/// NVIDIA's management library.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Nvml {
    /// The path of the library, among the folders that NVIDIA documents.
    pub(crate) library: Option<String>,
    /// The GPUs it reports, asked through `nvidia-smi`, or why there is no answer.
    pub(crate) gpus: Result<Vec<NvidiaGpu>, String>,
}

/// A GPU as NVML lists it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct NvidiaGpu {
    /// NVML's index.
    pub(crate) index: String,
    /// The product name.
    pub(crate) name: String,
    /// NVIDIA's own driver version.
    pub(crate) driver: String,
    /// `WDDM`, `MCDM` or `TCC`.
    pub(crate) driver_model: String,
}
