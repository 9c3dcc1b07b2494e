//! The running Windows, as the assembly asks it.

use std::io;

use devices::{
    AdapterKind, Attachment, Attribute, CopyToVmKey, CopyToVmKind, DriverKey, DriverVersion,
    HardwareId, LocationPath, Luid, Placement, PnpDevice, PnpId,
};
use windows::Win32::Devices::Properties as property_keys;
use windows::Win32::Foundation::DEVPROPKEY;
use windows::Win32::Graphics::DXCore as dxcore;
use windows::core::GUID;

use crate::assembly::{AdapterFacts, Candidate, CopyToVmKeys, Device, Host};
use crate::failure::Failure;
use crate::property::{Property, PropertyError};
use crate::sys::dxcore::{AdapterList, DxcoreAdapter};
use crate::sys::kmt::GraphicsKernel;
use crate::sys::registry::Key;
use crate::sys::setup::{DeviceEntry, SetupApi};
use crate::text;

/// `DEVPKEY_Gpu_Luid` (ntddvdeo.h): the LUID of a device's adapter.
const GPU_LUID: DEVPROPKEY = gpu_property(2);
/// `DEVPKEY_Gpu_PhysicalAdapterIndex` (ntddvdeo.h).
const GPU_PHYSICAL_INDEX: DEVPROPKEY = gpu_property(3);

/// `NUMA_NO_PREFERRED_NODE` (winbase.h): the device is near no node.
const NO_NUMA_NODE: u32 = u32::MAX;

const fn gpu_property(pid: u32) -> DEVPROPKEY {
    DEVPROPKEY { fmtid: GUID::from_u128(0x60b193cb_5276_4d0f_96fc_f173abad3ec6), pid }
}

/// This host, seen through one set of adapter lists.
pub(crate) struct LiveHost<'a> {
    pub(crate) lists: &'a [AdapterList],
    pub(crate) setup: &'a SetupApi,
    pub(crate) system_root: &'a str,
}

impl Host for LiveHost<'_> {
    fn lists(&self) -> Result<Vec<(Attribute, Vec<Luid>)>, Failure> {
        let luids = |list: &AdapterList| list.adapters.iter().map(|a| a.luid).collect();
        Ok(self.lists.iter().map(|list| (list.attribute, luids(list))).collect())
    }

    fn adapter(&self, luid: Luid) -> Result<AdapterFacts, Failure> {
        let failed = |error| Failure::new("cannot read the adapter", error);
        let mut adapters = self.lists.iter().flat_map(|list| &list.adapters);
        let adapter = adapters.find(|adapter| adapter.luid == luid).ok_or_else(gone);
        let adapter = adapter.map_err(failed)?;
        if !adapter.is_valid() {
            return Err(failed(gone()));
        }
        if adapter.is_driver_update_in_progress() {
            return Err(failed(io::Error::other("its driver is being replaced")));
        }
        facts(adapter).map_err(failed)
    }

    fn devices(&self) -> Result<Vec<Candidate>, Failure> {
        let failed = |error| Failure::new("cannot list the devices that are present", error);
        let list = self.setup.present().map_err(failed)?;
        let entries = list.devices().map_err(failed)?;
        Ok(entries.iter().filter_map(candidate).collect())
    }

    fn store_of_adapter(&self, luid: Luid) -> Result<String, Failure> {
        GraphicsKernel::load()
            .and_then(|kernel| kernel.driver_store(luid))
            .map_err(|error| Failure::new("the graphics kernel does not name the folder", error))
    }

    fn store_of_inf(&self, inf: &str) -> Result<String, Failure> {
        self.setup
            .inf_location(inf)
            .map_err(|error| Failure::new(format!("INF {inf} is not in the driver store"), error))
    }

    fn user_mode_drivers(&self, key: &DriverKey) -> Result<Vec<String>, Failure> {
        let failed = |error| Failure::new(format!("cannot read driver key {key}"), error);
        let value = driver_key(key).and_then(|key| key.value("UserModeDriverName"));
        let Some(value) = value.map_err(failed)? else { return Ok(Vec::new()) };
        text::list(&value.data).map_err(|error| failed(invalid(error)))
    }

    fn copy_to_vm(&self, key: &DriverKey) -> Result<CopyToVmKeys, Failure> {
        let failed = |error| Failure::new(format!("cannot read driver key {key}"), error);
        let driver = driver_key(key).map_err(failed)?;
        let mut keys = CopyToVmKeys::default();
        for kind in CopyToVmKind::ALL {
            let key = CopyToVmKey { kind, subkey: None };
            keys.read.extend(copy_to_vm_key(&driver, key)?);
        }
        for subkey in driver.subkeys().map_err(failed)? {
            for kind in CopyToVmKind::ALL {
                let key = CopyToVmKey { kind, subkey: Some(subkey.clone()) };
                match copy_to_vm_key(&driver, key) {
                    Ok(key) => keys.read.extend(key),
                    Err(failure) => keys.unread.push(failure),
                }
            }
        }
        Ok(keys)
    }

    fn system_root(&self) -> &str {
        self.system_root
    }
}

fn facts(adapter: &DxcoreAdapter) -> io::Result<AdapterFacts> {
    let flag = |property| Ok::<_, io::Error>(adapter.property(property)?.map(|[byte]| byte != 0));
    let number = |property| Ok::<_, io::Error>(adapter.property(property)?.map(u64::from_le_bytes));
    let description = adapter.property_bytes(dxcore::DriverDescription)?.unwrap_or_default();
    Ok(AdapterFacts {
        // Every host that has `DXCore` knows this one; hardware is what has a driver.
        kind: match flag(dxcore::IsHardware)? {
            Some(false) => AdapterKind::Software,
            Some(true) | None => AdapterKind::Hardware,
        },
        placement: match flag(dxcore::IsIntegrated)? {
            Some(true) => Placement::Integrated,
            Some(false) | None => Placement::Discrete,
        },
        attachment: match flag(dxcore::IsDetachable)? {
            Some(true) => Attachment::Detachable,
            Some(false) | None => Attachment::Fixed,
        },
        hardware_id: hardware_id(adapter)?,
        driver_description: text::utf8_for_display(&description),
        driver_version: number(dxcore::DriverVersion)?.map(DriverVersion),
        dedicated_memory: number(dxcore::DedicatedAdapterMemory)?,
    })
}

fn hardware_id(adapter: &DxcoreAdapter) -> io::Result<HardwareId> {
    let Some(bytes) = adapter.property::<16>(dxcore::HardwareID)? else {
        return Ok(HardwareId::default());
    };
    let part = |n: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| bytes[n * 4 + byte]));
    Ok(HardwareId { vendor: part(0), device: part(1), subsystem: part(2), revision: part(3) })
}

/// The device as a candidate, if it carries a LUID.
fn candidate(entry: &DeviceEntry<'_>) -> Option<Candidate> {
    let luid = match entry.property(&GPU_LUID) {
        Ok(property) => property?.luid().map_err(invalid),
        Err(error) => Err(error),
    };
    let luid = luid.map_err(|error| tracing::debug!(%error, "a device's LUID is not readable"));
    let physical_index = number(entry, &GPU_PHYSICAL_INDEX).ok().flatten().unwrap_or_default();
    Some(Candidate { luid: luid.ok()?, physical_index, device: device(entry) })
}

fn device(entry: &DeviceEntry<'_>) -> Result<Device, Failure> {
    let id = entry
        .instance_id()
        .map_err(|error| Failure::new("cannot read the instance id of its device", error))?;
    properties(entry, &id)
        .map_err(|error| Failure::new(format!("cannot read the properties of device {id}"), error))
}

fn properties(entry: &DeviceEntry<'_>, id: &str) -> io::Result<Device> {
    use property_keys as keys;
    let description = match words(entry, &keys::DEVPKEY_Device_FriendlyName)? {
        Some(name) => Some(name),
        None => words(entry, &keys::DEVPKEY_Device_DeviceDesc)?,
    };
    let locations = value(entry, &keys::DEVPKEY_Device_LocationPaths, Property::texts)?;
    let locations = locations.unwrap_or_default().into_iter();
    let pnp = PnpDevice {
        id: PnpId::new(id),
        description: description.unwrap_or_default(),
        manufacturer: words(entry, &keys::DEVPKEY_Device_Manufacturer)?.unwrap_or_default(),
        driver_key: words(entry, &keys::DEVPKEY_Device_Driver)?.map(DriverKey::new),
        location_paths: locations.map(LocationPath::new).collect(),
        numa_node: number(entry, &keys::DEVPKEY_Device_Numa_Node)?.filter(|n| *n != NO_NUMA_NODE),
        problem_code: number(entry, &keys::DEVPKEY_Device_ProblemCode)?.unwrap_or_default(),
    };
    Ok(Device { pnp, inf: words(entry, &keys::DEVPKEY_Device_DriverInfPath)? })
}

fn words(entry: &DeviceEntry<'_>, key: &DEVPROPKEY) -> io::Result<Option<String>> {
    Ok(value(entry, key, Property::text)?.filter(|text| !text.is_empty()))
}

fn number(entry: &DeviceEntry<'_>, key: &DEVPROPKEY) -> io::Result<Option<u32>> {
    value(entry, key, Property::number)
}

fn value<T>(
    entry: &DeviceEntry<'_>,
    key: &DEVPROPKEY,
    read: fn(&Property) -> Result<T, PropertyError>,
) -> io::Result<Option<T>> {
    match entry.property(key)? {
        Some(property) => read(&property).map(Some).map_err(invalid),
        None => Ok(None),
    }
}

fn driver_key(key: &DriverKey) -> io::Result<Key> {
    Key::local_machine(&format!(r"SYSTEM\CurrentControlSet\Control\Class\{key}"))
}

/// A `CopyToVm*` key with its values, if the driver has it.
fn copy_to_vm_key(
    driver: &Key,
    key: CopyToVmKey,
) -> Result<Option<(CopyToVmKey, Vec<crate::copy_to_vm::RawValue>)>, Failure> {
    let name = key.to_string();
    match driver.open(&name).and_then(|opened| opened.values()) {
        Ok(values) => Ok(Some((key, values))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::new(format!("cannot read registry key {name}"), error)),
    }
}

fn gone() -> io::Error {
    io::Error::other("it is no longer there")
}

fn invalid(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
