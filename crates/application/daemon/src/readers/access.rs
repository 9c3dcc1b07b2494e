//! How the daemon reads its host: this host, or an inventory file.

#[cfg(any(windows, test))]
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use command_line::HostError;
#[cfg(any(windows, test))]
use host::StoreFiles;
use host::{AdapterSource, ChangeCallback, HostSnapshot, SourceError};

use crate::readers::adapter_reader::{HostKind, OpenSource};
use crate::readers::kernel_comparison::CompareWithKernel;
use crate::readers::nvidia::ReadNvidia;

/// The access to a host. Nothing was read yet, and each part can block.
pub struct HostAccess {
    /// A live host or an inventory.
    pub kind: HostKind,
    /// The adapters.
    pub open: OpenSource,
    /// What NVML reports of NVIDIA devices; an inventory contains what it reported.
    pub read_nvidia: Option<ReadNvidia>,
    /// The adapters that only the graphics kernel of a live host lists.
    pub compare_with_kernel: Option<CompareWithKernel>,
    /// The file with the devices that the node's annotation takes out of service, if it is
    /// followed.
    pub cordons: Option<PathBuf>,
}

impl HostAccess {
    /// The host that the inventory at this path describes, in a demonstration if
    /// `is_demonstration`, or this host.
    ///
    /// # Errors
    /// The inventory is missing or malformed, or this host cannot run a demonstration.
    pub fn of(inventory: Option<&Path>, is_demonstration: bool) -> Result<HostAccess, HostError> {
        if is_demonstration && cfg!(windows) {
            return Err(HostError::DemonstrationOnWindows);
        }
        let mut host = HostAccess {
            kind: HostKind::Live,
            open: Box::new(|| command_line::open_host(None)),
            read_nvidia: None,
            compare_with_kernel: None,
            cordons: None,
        };
        if inventory.is_some() {
            let source = command_line::open_host(inventory)?;
            #[cfg(windows)]
            let source: Box<dyn AdapterSource> = Box::new(FilesOnDisk(source));
            let source = if is_demonstration { Box::new(Demonstration(source)) } else { source };
            (host.kind, host.open) = (HostKind::Inventory, Box::new(|| Ok(source)));
            return Ok(host);
        }
        #[cfg(windows)]
        {
            host.read_nvidia = Some(std::sync::Arc::new(win32::nvml::gpus));
            host.compare_with_kernel = Some(std::sync::Arc::new(compare_with_kernel));
        }
        Ok(host)
    }
}

#[cfg(windows)]
fn compare_with_kernel(listed: &[host::Luid]) -> Vec<host::AdapterWarning> {
    win32::adapters_only_in_kernel(listed).unwrap_or_else(|error| {
        tracing::debug!(%error, "cannot compare with the adapters of the graphics kernel");
        Vec::new()
    })
}

/// An inventory for a demonstration.
struct Demonstration(Box<dyn AdapterSource>);

impl AdapterSource for Demonstration {
    fn snapshot(&mut self) -> Result<HostSnapshot, SourceError> {
        let mut snapshot = self.0.snapshot()?;
        snapshot.host.is_demonstration = true;
        Ok(snapshot)
    }

    fn watch(&mut self, on_change: ChangeCallback) -> Result<(), SourceError> {
        self.0.watch(on_change)
    }
}

/// An inventory whose driver files must be on the disk of this machine: in the place of a file that
/// does not exist, containerd creates a folder on the machine.
#[cfg(any(windows, test))]
struct FilesOnDisk(Box<dyn AdapterSource>);

#[cfg(any(windows, test))]
impl AdapterSource for FilesOnDisk {
    fn snapshot(&mut self) -> Result<HostSnapshot, SourceError> {
        let mut snapshot = self.0.snapshot()?;
        let stores =
            snapshot.adapters.iter_mut().filter_map(|adapter| adapter.driver_store.as_mut());
        for store in stores {
            // A folder without files makes its device unhealthy, which the disk must not change.
            if store.files != StoreFiles::Listed(BTreeSet::new()) {
                store.files = StoreFiles::OnDisk;
            }
        }
        Ok(snapshot)
    }

    fn watch(&mut self, on_change: ChangeCallback) -> Result<(), SourceError> {
        self.0.watch(on_change)
    }
}

#[cfg(test)]
mod tests {
    use devices::{Catalog, DeviceSet, Moment, plan};

    use super::*;
    use command_line::configuration;

    #[test]
    fn containers_of_a_made_up_host_get_only_driver_files_of_this_machine() {
        let inventory = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../../fixtures/inventories/aws-t4-two.yaml");
        let source = command_line::open_host(Some(&inventory)).unwrap();
        let snapshot = FilesOnDisk(source).snapshot().unwrap();
        let policy = configuration::load(&config::Flags::default()).unwrap().policy;
        let set = DeviceSet::next(None, Catalog::new(policy).offer(&snapshot), Moment::default());
        let display = &set.resources[0];
        let id = display.replicas().next().unwrap().id.to_string();
        let mounted = |exists: &dyn Fn(&str) -> bool| {
            let plan = plan(display, [id.as_str()], &set.host, exists).unwrap();
            plan.mounts.into_mounted().map(|file| file.host_path).collect::<Vec<_>>()
        };
        assert!(mounted(&|_| false).is_empty());
        let only = |path: &str| path.ends_with("\\nvcuda_loader64.dll");
        assert_eq!(mounted(&only).len(), 1, "{:?}", mounted(&|_| true));
    }
}
