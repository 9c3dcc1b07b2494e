//! What is known of a node, as plain values. Nothing here is judged, and every value can
//! be made up on any operating system.

use devices::{HostFacts, HostSnapshot, NodeSoftware, Policy};
use win32::directory_access::Writer;

use super::image::ImageVersion;

/// Everything that the checks are made from.
pub(crate) struct NodeFacts {
    /// The machine, live or from an inventory.
    pub(crate) machine: MachineFacts,
    /// The image that the request names.
    pub(crate) image: Option<ImageVersion>,
    /// The kubelet's device plugin directory and the socket in it; `None` for an inventory,
    /// which does not contain them.
    pub(crate) directory: Option<Directory>,
    /// The configuration that `serve` would run with.
    pub(crate) configuration: Result<Configuration, CollectError>,
}

/// What is known of the machine itself.
pub(crate) struct MachineFacts {
    /// Facts of the host.
    pub(crate) host: HostFacts,
    /// The software of the node. What is `None` is not in the inventory; a live machine has
    /// a value for everything except a failure.
    pub(crate) software: NodeSoftware,
    /// The adapters, with the files of every driver store folder listed.
    pub(crate) adapters: Result<HostSnapshot, CollectError>,
    /// The files of `directx-visible` that are missing beside this program; empty for an inventory.
    pub(crate) missing_launcher_files: Vec<&'static str>,
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

/// The kubelet's device plugin directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Directory {
    /// Its path.
    pub(crate) path: String,
    /// Its state.
    pub(crate) state: DirectoryState,
    /// Who may change it, besides Windows and the administrators, or why that cannot be read.
    /// `None` if there is no directory, and on other systems than Windows.
    pub(crate) writers: Option<Result<Vec<Writer>, String>>,
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
