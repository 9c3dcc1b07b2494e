//! A device: an adapter with a `PnP` device, and the properties derived from both.

use std::sync::Arc;

use host::{
    Adapter, Cordon, CordonSource, DeviceKind, DriverKey, DriverStore, DriverVersion, HardwareId,
    HostFacts, LocationPath, Luid, NvidiaFacts, PnpDevice, PnpId, StoreFiles, StoreFolderError,
    Vendor, check_store_folder,
};
use strum::{EnumIter, IntoEnumIterator};

use crate::RuntimeFiles;

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

/// Why a device is unhealthy. It contains no measurement, such as a temperature: a change of
/// the reason is an Event and another time series.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, EnumIter, thiserror::Error)]
pub enum UnhealthyReason {
    /// The `PnP` manager reports a problem code (Microsoft's "Device Manager error
    /// messages"; 43 is a device that stopped itself).
    #[error("Windows reports problem code {0}")]
    ProblemCode(u32),
    /// The driver names files and its folder is empty or missing, as while it is being replaced.
    #[error("the driver store folder is missing or empty")]
    NoDriverFiles,
    /// Windows lists the adapter of the device, but it cannot be read.
    #[error("the adapter cannot be read, as while its driver is being updated")]
    Unreadable,
    /// Windows lists the adapter of the device, but it is not advertised now.
    #[error("the adapter is reported, but no longer advertised; doctor shows the reason")]
    NotAdvertised,
    /// The host no longer reports the device.
    #[error("the host no longer reports the device")]
    Removed,
    /// An administrator took the device out of service.
    #[error("cordoned: taken out of service by {0}")]
    Cordoned(CordonSource),
    /// It is not known whether the node's annotation takes the device out of service.
    #[error(
        "the file with the cordoned devices cannot be read or trusted; doctor shows the reason"
    )]
    CordonsUnknown,
    /// Its containers must get `directx-visible`, and the node does not provide it.
    #[error("waits for directx-visible, which this node does not provide; status shows the reason")]
    NoLauncher,
}

impl UnhealthyReason {
    /// Every reason, with any number and source.
    pub fn every() -> impl Iterator<Item = UnhealthyReason> {
        UnhealthyReason::iter()
    }
}

/// One DirectX device.
#[allow(clippy::struct_excessive_bools, reason = "flags of Windows, each with its own meaning")]
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
    pub kind: DeviceKind,
    /// The manufacturer's name in the driver package.
    pub manufacturer: String,
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
    pub driver_date: Option<host::DriverDate>,
    /// The NUMA node, if firmware reports it.
    pub numa_node: Option<u32>,
    /// Built into the processor.
    pub integrated: bool,
    /// Can be removed while the host runs.
    pub detachable: bool,
    /// Display: D3D11 or D3D12 graphics.
    pub display: bool,
    /// Compute: D3D12 graphics, core compute, generic machine learning, or by hardware type a
    /// neural processor, a compute accelerator, or a GPU without a display of a vendor whose GPUs
    /// compute.
    pub compute: bool,
    /// What NVML reports of an NVIDIA device.
    pub nvidia: NvidiaFacts,
    /// Health according to the snapshot.
    pub health: Health,
    /// The runtime files that the driver names in the registry; none inside a container.
    pub runtime_files: Arc<RuntimeFiles>,
}

/// Why a device has no driver store folder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NoStoreFolder {
    /// The folder was not found.
    Unknown,
    /// The folder is not where Windows keeps driver packages.
    Rejected(Arc<StoreFolderError>),
}

/// The driver store folder of a device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoreFolder {
    /// Absolute Windows path.
    pub path: String,
    pub files: StoreFiles,
}

impl Device {
    /// Whether `cordon` takes the device out of service.
    pub(crate) fn is_cordoned_by(&self, cordon: &Cordon) -> bool {
        cordon.device.names(&self.id, self.location_path.as_ref())
    }

    /// Whether the driver has changed since `before`, which is the same device: it has another
    /// version, or another folder in the driver store. What is unknown before or now is not compared.
    #[must_use]
    pub fn has_other_driver(&self, before: &Device) -> bool {
        let versions = before.driver_version.zip(self.driver_version);
        let folders = before.driver_store.as_ref().ok().zip(self.driver_store.as_ref().ok());
        versions.is_some_and(|(before, now)| before != now)
            || folders.is_some_and(|(before, now)| !before.path.eq_ignore_ascii_case(&now.path))
    }

    /// Whether it only displays, and its vendor makes no GPUs: the graphics of a server's management
    /// controller, or of a virtual machine.
    #[must_use]
    pub const fn is_display_controller(&self) -> bool {
        self.vendor.makes_display_controller(self.display, self.compute)
    }

    /// The kind for labels and metrics. One of Microsoft's basic adapters, which a rule can
    /// advertise, has none: no GPU is behind it.
    #[must_use]
    pub fn reported_kind(&self) -> Option<DeviceKind> {
        (!self.hardware_id.is_basic_adapter()).then_some(self.kind)
    }

    /// Why the folder that the driver names is not used.
    #[must_use]
    pub fn rejected_store(&self) -> Option<&StoreFolderError> {
        match &self.driver_store {
            Err(NoStoreFolder::Rejected(error)) => Some(error),
            _ => None,
        }
    }

    /// The device of `adapter` on `host`, whose `PnP` device is `pnp`. The files that its driver
    /// names are not known inside a container.
    pub(crate) fn new(adapter: &Adapter, pnp: &PnpDevice, host: &HostFacts) -> Device {
        let driver_store = store_folder(adapter.driver_store.as_ref(), host);
        let store = adapter
            .driver_store
            .as_ref()
            .filter(|_| driver_store.is_ok() && !host.inside_container);
        Device {
            id: pnp.id.clone(),
            luid: adapter.luid,
            description: adapter.name().to_owned(),
            vendor: adapter.vendor(),
            kind: DeviceKind::of(adapter),
            manufacturer: pnp.manufacturer.clone(),
            hardware_id: adapter.hardware_id,
            location_path: pnp.location_paths.first().cloned(),
            driver_key: pnp.driver_key.clone(),
            driver_version: adapter.driver_version,
            driver_store,
            dedicated_memory_mib: adapter.dedicated_memory_mib,
            driver_date: pnp.driver_date,
            numa_node: pnp.numa_node,
            integrated: adapter.integrated,
            detachable: adapter.detachable,
            display: adapter.attributes.display(),
            compute: adapter.computes(),
            nvidia: adapter.nvidia.clone(),
            health: match pnp.problem_code {
                0 if store.is_some_and(DriverStore::lacks_files) => {
                    Health::Unhealthy(UnhealthyReason::NoDriverFiles)
                }
                0 => Health::Healthy,
                code => Health::Unhealthy(UnhealthyReason::ProblemCode(code)),
            },
            runtime_files: Arc::new(store.map(RuntimeFiles::of).unwrap_or_default()),
        }
    }
}

/// The folder of a driver, if it is where Windows keeps driver packages.
fn store_folder(
    store: Option<&DriverStore>,
    host: &HostFacts,
) -> Result<Arc<StoreFolder>, NoStoreFolder> {
    let store = store.ok_or(NoStoreFolder::Unknown)?;
    match check_store_folder(&store.path, &host.system_root) {
        Ok(()) => {
            let path = store.path.clone();
            let files = store.files.clone();
            Ok(Arc::new(StoreFolder { path, files }))
        }
        Err(error) => Err(NoStoreFolder::Rejected(Arc::new(error))),
    }
}
