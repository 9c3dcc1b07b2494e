//! What is known of a node, as plain values that are not judged.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use command_line::HostError;
use config::{Config, ConfigError};
use host::HostSnapshot;
use plugin_status::answering_daemons::Answers;
use win32::directory_access::Writer;

use crate::image::ImageVersion;

/// What is known of a node.
pub(crate) struct NodeFacts {
    /// The host, live or from an inventory, with the files of every driver store folder listed.
    /// What is `None` in `node` is not in the inventory; a live machine has a value for everything
    /// except a failure.
    pub(crate) snapshot: HostSnapshot,
    /// Why the adapters could not be read; the snapshot then has none.
    pub(crate) unread: Option<HostError>,
    /// The files of `directx-visible` that this node lacks; empty for an inventory.
    pub(crate) missing_launcher_files: Vec<&'static str>,
    pub(crate) image: Option<ImageVersion>,
    /// The kubelet's device plugin directory; `None` if the node is an inventory.
    pub(crate) directory: Option<DirectoryFacts>,
    /// What the plugin of this node answers; `None` if the node is an inventory.
    pub(crate) plugin: Option<Answers>,
    /// The configuration that `serve` would run with.
    pub(crate) configuration: Result<Config, ConfigError>,
}

/// The kubelet's device plugin directory, and the socket in it.
pub(crate) struct DirectoryFacts {
    pub(crate) path: PathBuf,
    pub(crate) access: DirectoryAccess,
    pub(crate) socket: KubeletSocket,
}

/// Whether the directory can be used, and by whom.
pub(crate) enum DirectoryAccess {
    /// It does not exist, or cannot be opened.
    NotOpened(io::Error),
    /// Its access rights cannot be read.
    RightsUnknown(io::Error),
    /// Who may change it, besides Windows and the administrators.
    Writers(Vec<Writer>),
}

/// What a connection to the kubelet's socket has shown.
pub(crate) enum KubeletSocket {
    /// The host has no `AF_UNIX` sockets.
    NotSupported,
    Missing,
    Accepts,
    Refused(io::Error),
    /// The kubelet did not accept within this time.
    NoAnswer(Duration),
}
