//! Reads the data of the assembly from the running Windows.

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
use crate::error::WindowsError;
use crate::property::{Property, PropertyError};
use crate::sys::dxcore::{AdapterList, DxcoreAdapter};
use crate::sys::kmt::GraphicsKernel;
use crate::sys::registry::Key;
use crate::sys::setup::{DeviceEntry, SetupApi};
use crate::text;

/// `DEVPKEY_Gpu_Luid` (ntddvdeo.h): the LUID of the adapter of a device.
const GPU_LUID: DEVPROPKEY = gpu_property(2);
/// `DEVPKEY_Gpu_PhysicalAdapterIndex` (ntddvdeo.h).
const GPU_PHYSICAL_INDEX: DEVPROPKEY = gpu_property(3);

/// `NUMA_NO_PREFERRED_NODE` (winbase.h): the device belongs to no NUMA node.
const NO_NUMA_NODE: u32 = u32::MAX;

const fn gpu_property(pid: u32) -> DEVPROPKEY {
    DEVPROPKEY { fmtid: GUID::from_u128(0x60b193cb_5276_4d0f_96fc_f173abad3ec6), pid }
}

/// This host, read with one set of adapter lists.
pub(crate) struct LiveHost<'a> {
    pub(crate) lists: &'a [AdapterList],
    pub(crate) setup: &'a SetupApi,
    pub(crate) system_root: &'a str,
}

impl Host for LiveHost<'_> {
    fn lists(&self) -> Result<Vec<(Attribute, Vec<Luid>)>, WindowsError> {
        let luids = |list: &AdapterList| list.adapters.iter().map(|a| a.luid).collect();
        Ok(self.lists.iter().map(|list| (list.attribute, luids(list))).collect())
    }

    fn adapter(&self, luid: Luid) -> Result<AdapterFacts, WindowsError> {
        let failed = |error| WindowsError::new("cannot read the adapter", error);
        let mut adapters = self.lists.iter().flat_map(|list| &list.adapters);
        let adapter = adapters.find(|adapter| adapter.luid == luid).ok_or_else(removed);
        let adapter = adapter.map_err(failed)?;
        if !adapter.is_valid() {
            return Err(failed(removed()));
        }
        if adapter.is_driver_update_in_progress() {
            return Err(failed(io::Error::other("the driver is being updated")));
        }
        facts(adapter).map_err(failed)
    }

    fn devices(&self) -> Result<Vec<Candidate>, WindowsError> {
        let failed = |error| WindowsError::new("cannot list the present devices", error);
        let list = self.setup.present().map_err(failed)?;
        let entries = list.devices().map_err(failed)?;
        Ok(entries.iter().filter_map(candidate).collect())
    }

    fn store_of_adapter(&self, luid: Luid) -> Result<String, WindowsError> {
        GraphicsKernel::load()
            .and_then(|kernel| kernel.driver_store(luid))
            .map_err(|error| WindowsError::new("cannot query the graphics kernel", error))
    }

    fn store_of_inf(&self, inf: &str) -> Result<String, WindowsError> {
        self.setup.inf_location(inf).map_err(|error| {
            WindowsError::new(format!("cannot find INF {inf} in the driver store"), error)
        })
    }

    fn user_mode_drivers(&self, key: &DriverKey) -> Result<Vec<String>, WindowsError> {
        let failed = |error| WindowsError::new(format!("cannot read driver key {key}"), error);
        let value = open_driver_key(key).and_then(|key| key.value("UserModeDriverName"));
        let Some(value) = value.map_err(failed)? else { return Ok(Vec::new()) };
        text::list(&value.data).map_err(|error| failed(invalid(error)))
    }

    fn copy_to_vm(&self, key: &DriverKey) -> Result<CopyToVmKeys, WindowsError> {
        let failed = |error| WindowsError::new(format!("cannot read driver key {key}"), error);
        let driver = open_driver_key(key).map_err(failed)?;
        let mut keys = CopyToVmKeys::default();
        for kind in CopyToVmKind::ALL {
            let key = CopyToVmKey { kind, subkey: None };
            keys.read.extend(read_copy_to_vm_key(&driver, key)?);
        }
        for subkey in driver.subkeys().map_err(failed)? {
            for kind in CopyToVmKind::ALL {
                let key = CopyToVmKey { kind, subkey: Some(subkey.clone()) };
                match read_copy_to_vm_key(&driver, key) {
                    Ok(key) => keys.read.extend(key),
                    Err(failure) => keys.unreadable.push(failure),
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
        // Every host with `DXCore` supports this property; an adapter with a driver is hardware.
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

/// The device as a candidate, if it has a LUID.
fn candidate(entry: &DeviceEntry<'_>) -> Option<Candidate> {
    let luid = match entry.property(&GPU_LUID) {
        Ok(property) => property?.luid().map_err(invalid),
        Err(error) => Err(error),
    };
    let luid = luid.map_err(|error| tracing::debug!(%error, "cannot read LUID of device"));
    let physical_index =
        number_property(entry, &GPU_PHYSICAL_INDEX).ok().flatten().unwrap_or_default();
    Some(Candidate { luid: luid.ok()?, physical_index, device: device(entry) })
}

fn device(entry: &DeviceEntry<'_>) -> Result<Device, WindowsError> {
    let id = entry
        .instance_id()
        .map_err(|error| WindowsError::new("cannot read the instance id of the device", error))?;
    properties(entry, &id).map_err(|error| {
        WindowsError::new(format!("cannot read the properties of device {id}"), error)
    })
}

fn properties(entry: &DeviceEntry<'_>, id: &str) -> io::Result<Device> {
    use property_keys as keys;
    let description = match text_property(entry, &keys::DEVPKEY_Device_FriendlyName)? {
        Some(name) => Some(name),
        None => text_property(entry, &keys::DEVPKEY_Device_DeviceDesc)?,
    };
    let locations = property_value(entry, &keys::DEVPKEY_Device_LocationPaths, Property::texts)?;
    let locations = locations.unwrap_or_default().into_iter();
    let pnp = PnpDevice {
        id: PnpId::new(id),
        description: description.unwrap_or_default(),
        manufacturer: text_property(entry, &keys::DEVPKEY_Device_Manufacturer)?.unwrap_or_default(),
        driver_key: text_property(entry, &keys::DEVPKEY_Device_Driver)?.map(DriverKey::new),
        // Only displayed: a driver without a date is not a reason to skip the device.
        driver_date: property_value(entry, &keys::DEVPKEY_Device_DriverDate, Property::date)
            .ok()
            .flatten(),
        location_paths: locations.map(LocationPath::new).collect(),
        numa_node: number_property(entry, &keys::DEVPKEY_Device_Numa_Node)?
            .filter(|n| *n != NO_NUMA_NODE),
        problem_code: number_property(entry, &keys::DEVPKEY_Device_ProblemCode)?
            .unwrap_or_default(),
    };
    Ok(Device { pnp, inf: text_property(entry, &keys::DEVPKEY_Device_DriverInfPath)? })
}

fn text_property(entry: &DeviceEntry<'_>, key: &DEVPROPKEY) -> io::Result<Option<String>> {
    Ok(property_value(entry, key, Property::text)?.filter(|text| !text.is_empty()))
}

fn number_property(entry: &DeviceEntry<'_>, key: &DEVPROPKEY) -> io::Result<Option<u32>> {
    property_value(entry, key, Property::number)
}

fn property_value<T>(
    entry: &DeviceEntry<'_>,
    key: &DEVPROPKEY,
    read: fn(&Property) -> Result<T, PropertyError>,
) -> io::Result<Option<T>> {
    match entry.property(key)? {
        Some(property) => read(&property).map(Some).map_err(invalid),
        None => Ok(None),
    }
}

fn open_driver_key(key: &DriverKey) -> io::Result<Key> {
    Key::local_machine(&format!(r"SYSTEM\CurrentControlSet\Control\Class\{key}"))
}

/// A `CopyToVm*` key with its values; `None` if the driver does not have it.
fn read_copy_to_vm_key(
    driver: &Key,
    key: CopyToVmKey,
) -> Result<Option<(CopyToVmKey, Vec<crate::copy_to_vm::RawValue>)>, WindowsError> {
    let name = key.to_string();
    match driver.open(&name).and_then(|opened| opened.values()) {
        Ok(values) => Ok(Some((key, values))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(WindowsError::new(format!("cannot read registry key {name}"), error)),
    }
}

fn removed() -> io::Error {
    io::Error::other("the adapter was removed")
}

fn invalid(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
