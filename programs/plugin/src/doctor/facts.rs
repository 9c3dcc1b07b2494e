//! What is known of a node, as plain values. Nothing here is judged, and every value can
//! be made up on any operating system.

use config::Config;
use devices::{HostFacts, HostSnapshot, NodeSoftware};
use node::cli::Failure;

use super::image::ImageVersion;
use crate::doctor::finding::Finding;

/// Everything that the checks are made from.
pub(crate) struct NodeFacts {
    /// The machine, live or from an inventory.
    pub(crate) machine: MachineFacts,
    /// The image that the request names.
    pub(crate) image: Option<ImageVersion>,
    /// What was found about the kubelet's device plugin directory and the socket in it; `None` for
    /// an inventory, which does not contain them.
    pub(crate) directory: Option<[Finding; 2]>,
    /// The configuration that `serve` would run with.
    pub(crate) configuration: Result<Config, Failure>,
}

/// What is known of the machine itself.
pub(crate) struct MachineFacts {
    /// Facts of the host.
    pub(crate) host: HostFacts,
    /// The software of the node. What is `None` is not in the inventory; a live machine has
    /// a value for everything except a failure.
    pub(crate) software: NodeSoftware,
    /// The adapters, with the files of every driver store folder listed.
    pub(crate) adapters: Result<HostSnapshot, Failure>,
    /// The files of `directx-visible` that this node lacks; empty for an inventory.
    pub(crate) missing_launcher_files: Vec<&'static str>,
}
