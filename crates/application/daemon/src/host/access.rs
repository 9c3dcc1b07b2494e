//! How the daemon reads its host: this host, or an inventory file.

use std::path::{Path, PathBuf};

use command_line::HostError;

use crate::host::adapter_reader::{HostKind, OpenSource};
use crate::host::driver_resets::ReadResets;
use crate::host::gpu_uuids::ReadGpuUuids;

/// The access to a host. Nothing was read yet, and each part can block.
pub struct HostAccess {
    /// A live host or an inventory.
    pub kind: HostKind,
    /// The adapters.
    pub open: OpenSource,
    /// The UUIDs of NVIDIA devices; an inventory has none.
    pub read_uuids: Option<ReadGpuUuids>,
    /// The reset counters of drivers; an inventory has none.
    pub read_resets: Option<ReadResets>,
    /// The file with the devices that the node's annotation takes out of service, if it is
    /// followed.
    pub cordons: Option<PathBuf>,
}

impl HostAccess {
    /// The host that the inventory at this path describes, or this host.
    ///
    /// # Errors
    /// The inventory is missing or malformed.
    pub fn of(inventory: Option<&Path>) -> Result<HostAccess, HostError> {
        let mut host = HostAccess {
            kind: HostKind::Live,
            open: Box::new(|| command_line::open_host(None)),
            read_uuids: None,
            read_resets: None,
            cordons: None,
        };
        if inventory.is_some() {
            let source = command_line::open_host(inventory)?;
            (host.kind, host.open) = (HostKind::Inventory, Box::new(|| Ok(source)));
            return Ok(host);
        }
        #[cfg(windows)]
        {
            host.read_uuids = Some(std::sync::Arc::new(win32::nvml::gpu_uuids));
            host.read_resets = Some(std::sync::Arc::new(win32::read_resets));
        }
        Ok(host)
    }
}
