//! What is known of a node, as plain values. Nothing here is judged, and every value can
//! be made up on any operating system.

use command_line::Failure;
use config::Config;
use devices::HostSnapshot;

use crate::finding::Finding;
use crate::image::ImageVersion;

/// Everything that the checks are made from.
pub(crate) struct NodeFacts {
    /// The host, live or from an inventory, with the files of every driver store folder listed. What
    /// is `None` in `node` is not in the inventory; a live machine has a value for everything except a
    /// failure.
    pub(crate) snapshot: HostSnapshot,
    /// Why the adapters could not be read; the snapshot then has none.
    pub(crate) unread: Option<Failure>,
    /// The files of `directx-visible` that this node lacks; empty for an inventory.
    pub(crate) missing_launcher_files: Vec<&'static str>,
    /// The image that the request names.
    pub(crate) image: Option<ImageVersion>,
    /// What was found out about the kubelet's device plugin directory and the socket in it.
    pub(crate) directory: [Finding; 2],
    /// The configuration that `serve` would run with.
    pub(crate) configuration: Result<Config, Failure>,
}
