//! A device: an adapter that can be named, with everything that is derived from it.

use std::fmt;

use crate::{
    Adapter, Attachment, Attribute, DriverKey, DriverStore, DriverVersion, HardwareId,
    LocationPath, Luid, Placement, PnpDevice, PnpId, RuntimeFiles, StoreFiles, Vendor,
};

/// Whether a device can do something.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Support {
    /// It can.
    Yes,
    /// It cannot.
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

/// Whether a device can be given to a container.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Health {
    /// It works as far as Windows knows.
    Healthy,
    /// It does not.
    Unhealthy(Ailment),
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
pub enum Ailment {
    /// The `PnP` manager reports a problem code (Microsoft's "Device Manager error
    /// messages"; 43 is a device that stopped itself).
    Problem(u32),
    /// The host no longer lists it.
    Gone,
}

impl fmt::Display for Ailment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ailment::Problem(code) => write!(f, "Windows reports problem code {code}"),
            Ailment::Gone => f.write_str("the host no longer lists it"),
        }
    }
}

/// One DirectX device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Device {
    /// `PnP` device instance id: what a device is called for as long as it stays in its place.
    pub id: PnpId,
    /// The adapter's LUID of the moment.
    pub luid: Luid,
    /// What Device Manager calls it.
    pub description: String,
    /// The vendor, by hardware id.
    pub vendor: Vendor,
    /// What the driver package calls the manufacturer.
    pub manufacturer: String,
    /// Hardware id.
    pub hardware_id: HardwareId,
    /// The first location path, where Windows knows one.
    pub location_path: Option<LocationPath>,
    /// The driver key, where a driver is installed.
    pub driver_key: Option<DriverKey>,
    /// The driver's version, where it reports one.
    pub driver_version: Option<DriverVersion>,
    /// The driver store folder, where it could be found.
    pub driver_store: Option<StoreFolder>,
    /// Dedicated memory in MiB, where the driver reports it.
    pub dedicated_memory_mib: Option<u64>,
    /// The NUMA node, where firmware reports it.
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
    /// The UUID that CUDA names the device by, where NVML knows it.
    pub cuda_uuid: Option<String>,
    /// Health as the snapshot shows it.
    pub health: Health,
    /// The registry's runtime files.
    pub runtime_files: RuntimeFiles,
}

/// A driver store folder as a device keeps it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoreFolder {
    /// Absolute Windows path.
    pub path: String,
    /// Its files.
    pub files: StoreFiles,
}

impl Device {
    /// The device of `adapter`, whose `PnP` side is `pnp`.
    pub(crate) fn new(adapter: &Adapter, pnp: &PnpDevice) -> Device {
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
            driver_store: adapter.driver_store.as_ref().map(StoreFolder::of),
            dedicated_memory_mib: adapter.dedicated_memory_mib,
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
                0 => Health::Healthy,
                code => Health::Unhealthy(Ailment::Problem(code)),
            },
            runtime_files: adapter.driver_store.as_ref().map(RuntimeFiles::of).unwrap_or_default(),
        }
    }
}

impl StoreFolder {
    fn of(store: &DriverStore) -> StoreFolder {
        StoreFolder { path: store.path.clone(), files: store.files.clone() }
    }
}
