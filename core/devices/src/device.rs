//! A device: an adapter with a `PnP` device, and the properties derived from both.

use std::fmt;
use std::sync::Arc;

use crate::{
    Adapter, Attachment, Attribute, DiscoveredFrom, DriverKey, DriverStore, DriverVersion,
    HardwareId, HostFacts, LocationPath, Luid, Placement, PnpDevice, PnpId, RuntimeFiles,
    StoreFiles, StoreFolderError, Vendor, check_store_folder,
};

/// Whether a device supports something.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Support {
    /// It does.
    Yes,
    /// It does not.
    No,
}

impl Support {
    /// Whether this is [`Support::Yes`].
    #[must_use]
    pub const fn is_yes(self) -> bool {
        matches!(self, Support::Yes)
    }

    const fn when(condition: bool) -> Support {
        if condition { Support::Yes } else { Support::No }
    }
}

/// Whether a device can be allocated.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Health {
    /// Windows reports no problem.
    Healthy,
    /// The device must not be allocated.
    Unhealthy(UnhealthyReason),
}

impl Health {
    /// Whether this is [`Health::Healthy`].
    #[must_use]
    pub const fn is_healthy(self) -> bool {
        matches!(self, Health::Healthy)
    }
}

/// Why a device is unhealthy.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum UnhealthyReason {
    /// The `PnP` manager reports a problem code (Microsoft's "Device Manager error
    /// messages"; 43 is a device that stopped itself).
    ProblemCode(u32),
    /// The driver names files and its folder is empty or missing, as while it is being replaced.
    NoDriverFiles,
    /// Windows lists the adapter of the device, but it cannot be read.
    Unreadable,
    /// The host no longer reports the device.
    Removed,
}

impl fmt::Display for UnhealthyReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnhealthyReason::ProblemCode(code) => write!(f, "Windows reports problem code {code}"),
            UnhealthyReason::NoDriverFiles => {
                f.write_str("the driver store folder is missing or empty")
            }
            UnhealthyReason::Unreadable => {
                f.write_str("the adapter cannot be read, as while its driver is being updated")
            }
            UnhealthyReason::Removed => f.write_str("the host no longer reports the device"),
        }
    }
}

/// One DirectX device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Device {
    /// `PnP` device instance ID; stable as long as the device stays in its slot.
    pub id: PnpId,
    /// The adapter's current LUID.
    pub luid: Luid,
    /// The name that Device Manager shows.
    pub description: String,
    /// The vendor, by hardware ID.
    pub vendor: Vendor,
    /// The manufacturer's name in the driver package.
    pub manufacturer: String,
    /// Hardware ID.
    pub hardware_id: HardwareId,
    /// The first location path, if Windows reports one.
    pub location_path: Option<LocationPath>,
    /// The driver key, if a driver is installed.
    pub driver_key: Option<DriverKey>,
    /// The driver's version, if it reports one.
    pub driver_version: Option<DriverVersion>,
    /// The driver store folder, or why its files are not used.
    pub driver_store: Result<Arc<StoreFolder>, NoStoreFolder>,
    /// Dedicated memory in MiB, if the driver reports it.
    pub dedicated_memory_mib: Option<u64>,
    /// The date of the driver package, if it is known.
    pub driver_date: Option<crate::DriverDate>,
    /// The NUMA node, if firmware reports it.
    pub numa_node: Option<u32>,
    /// Integrated or discrete.
    pub placement: Placement,
    /// Detachable or fixed.
    pub attachment: Attachment,
    /// Display: D3D11 or D3D12 graphics.
    pub display: Support,
    /// Compute: D3D12 graphics, core compute, generic machine learning, or a
    /// neural processor or compute accelerator by hardware type.
    pub compute: Support,
    /// The UUID by which CUDA identifies the device, if NVML reports it.
    pub cuda_uuid: Option<String>,
    /// Health according to the snapshot.
    pub health: Health,
    /// The runtime files that the driver names in the registry; none inside a container.
    pub runtime_files: Arc<RuntimeFiles>,
}

/// What a device has of its driver's folder. Devices with the same driver share it.
#[derive(Clone)]
pub(crate) struct DriverFiles {
    store: Result<Arc<StoreFolder>, NoStoreFolder>,
    runtime_files: Arc<RuntimeFiles>,
    health: Health,
}

/// Those of an adapter whose folder was not found.
impl Default for DriverFiles {
    fn default() -> DriverFiles {
        DriverFiles::none(NoStoreFolder::Unknown)
    }
}

impl DriverFiles {
    /// Those of a folder on `host`. The files that the driver names are not known inside a
    /// container.
    pub(crate) fn of(store: &DriverStore, host: &HostFacts) -> DriverFiles {
        if let Err(error) = check_store_folder(&store.path, &host.system_root) {
            return DriverFiles::none(NoStoreFolder::Rejected(Arc::new(error)));
        }
        let runtime_files = match host.discovered_from {
            DiscoveredFrom::Host => RuntimeFiles::of(store),
            DiscoveredFrom::Container => RuntimeFiles::default(),
        };
        let lacks_files = store.lacks_files() && host.discovered_from == DiscoveredFrom::Host;
        DriverFiles {
            store: Ok(Arc::new(StoreFolder::of(store))),
            runtime_files: Arc::new(runtime_files),
            health: if lacks_files {
                Health::Unhealthy(UnhealthyReason::NoDriverFiles)
            } else {
                Health::Healthy
            },
        }
    }

    fn none(reason: NoStoreFolder) -> DriverFiles {
        DriverFiles { store: Err(reason), runtime_files: Arc::default(), health: Health::Healthy }
    }
}

/// Why a device has no driver store folder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NoStoreFolder {
    /// It was not found.
    Unknown,
    /// It is not where Windows keeps driver packages.
    Rejected(Arc<StoreFolderError>),
}

impl NoStoreFolder {
    /// The error of a folder that was found and is not used.
    #[must_use]
    pub fn rejected(&self) -> Option<&StoreFolderError> {
        match self {
            NoStoreFolder::Unknown => None,
            NoStoreFolder::Rejected(error) => Some(error),
        }
    }
}

/// The driver store folder of a device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoreFolder {
    /// Absolute Windows path.
    pub path: String,
    /// Its files.
    pub files: StoreFiles,
}

impl Device {
    /// Why the folder that the driver names is not used.
    #[must_use]
    pub fn rejected_store(&self) -> Option<&StoreFolderError> {
        self.driver_store.as_ref().err()?.rejected()
    }

    /// The device of `adapter`, whose `PnP` device is `pnp`.
    pub(crate) fn new(adapter: &Adapter, pnp: &PnpDevice, files: DriverFiles) -> Device {
        let has = |attribute| adapter.attributes.has(attribute);
        let description = Some(&pnp.description).filter(|text| !text.is_empty());
        Device {
            id: pnp.id.clone(),
            luid: adapter.luid,
            description: description.unwrap_or(&adapter.driver_description).clone(),
            vendor: Vendor::from_id(adapter.hardware_id.vendor),
            manufacturer: pnp.manufacturer.clone(),
            hardware_id: adapter.hardware_id,
            location_path: pnp.location_paths.first().cloned(),
            driver_key: pnp.driver_key.clone(),
            driver_version: adapter.driver_version,
            driver_store: files.store,
            dedicated_memory_mib: adapter.dedicated_memory_mib,
            driver_date: pnp.driver_date,
            numa_node: pnp.numa_node,
            placement: adapter.placement,
            attachment: adapter.attachment,
            display: Support::when(has(Attribute::D3d11Graphics) || has(Attribute::D3d12Graphics)),
            compute: Support::when(
                has(Attribute::D3d12Graphics)
                    || has(Attribute::D3d12CoreCompute)
                    || has(Attribute::D3d12GenericMl)
                    || has(Attribute::Npu)
                    || has(Attribute::ComputeAccelerator),
            ),
            cuda_uuid: None,
            health: match pnp.problem_code {
                0 => files.health,
                code => Health::Unhealthy(UnhealthyReason::ProblemCode(code)),
            },
            runtime_files: files.runtime_files,
        }
    }
}

impl StoreFolder {
    fn of(store: &DriverStore) -> StoreFolder {
        StoreFolder { path: store.path.clone(), files: store.files.clone() }
    }
}
