//! Reads the data of the assembly from the running Windows.

use std::io;
use std::path::Path;

use host::{
    Adapter, Attributes, CopyToVmKey, CopyToVmKind, DriverKey, LocationPath, Luid, PnpDevice,
    PnpId, ReadStep,
};
use windows::Win32::Devices::Properties as property_keys;
use windows::Win32::Foundation::DEVPROPKEY;
use windows::core::GUID;
use windows_registry::Key;
use windows_report::assembly::{Candidate, CopyToVmKeys, Host};
use windows_report::copy_to_vm::RawValue;
use windows_report::device_class::displays_or_computes;
use windows_report::kernel_report::{DeviceKey, key_of};
use windows_report::property::{Property, PropertyError, optional};
use windows_report::text;

use crate::adapter_sets::AdapterSet;
use crate::error::failed;
use crate::sys::kmt::GraphicsKernel;
use crate::sys::library::os_error;
use crate::sys::registry;
use crate::sys::setup::{DeviceEntry, SetupApi};

/// `DEVPKEY_Gpu_Luid` (ntddvdeo.h): the LUID of the adapter of a device.
const GPU_LUID: DEVPROPKEY = gpu_property(2);
/// `DEVPKEY_Gpu_PhysicalAdapterIndex` (ntddvdeo.h).
const GPU_PHYSICAL_INDEX: DEVPROPKEY = gpu_property(3);

/// `NUMA_NO_PREFERRED_NODE` (winbase.h): the device belongs to no NUMA node.
const NO_NUMA_NODE: u32 = u32::MAX;

const fn gpu_property(pid: u32) -> DEVPROPKEY {
    DEVPROPKEY { fmtid: GUID::from_u128(0x60b193cb_5276_4d0f_96fc_f173abad3ec6), pid }
}

/// This host, read with one set of adapters.
pub(crate) struct LiveHost<'a> {
    pub(crate) adapters: AdapterSet<'a>,
    pub(crate) setup: &'a SetupApi,
    pub(crate) system_root: &'a str,
    pub(crate) on_step: &'a dyn Fn(ReadStep),
}

impl Host for LiveHost<'_> {
    fn adapters(&self) -> Vec<(Luid, Attributes)> {
        self.adapters.listed()
    }

    fn adapter(&self, luid: Luid, notes: &mut Vec<String>) -> io::Result<Adapter> {
        let adapter = self.adapters.adapter(luid, notes);
        adapter.map_err(|error| failed("cannot read the adapter", &error))
    }

    fn devices(&self) -> io::Result<Vec<Candidate>> {
        candidates(self.setup, candidate)
    }

    fn devices_by_key(&self, luids: &[Luid]) -> io::Result<Vec<Candidate>> {
        let mut keys = Vec::new();
        for &luid in luids {
            self.begin(ReadStep::Adapter(luid));
            keys.extend(self.adapters.device_keys(luid));
        }
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        self.begin(ReadStep::Devices);
        candidates(self.setup, |entry| candidate_by_key(entry, &keys))
    }

    fn store_of_adapter(&self, luid: Luid) -> io::Result<String> {
        GraphicsKernel::load()
            .and_then(|kernel| kernel.driver_store(luid))
            .map_err(|error| failed("cannot query the graphics kernel", &error))
    }

    fn user_mode_drivers(&self, key: &DriverKey) -> io::Result<Vec<String>> {
        read_user_mode_drivers(key).map_err(|error| driver_key_failed(key, &error))
    }

    fn copy_to_vm(&self, key: &DriverKey) -> io::Result<CopyToVmKeys> {
        let driver = open_driver_key(key).map_err(|error| driver_key_failed(key, &error))?;
        let mut keys = CopyToVmKeys::default();
        for &kind in CopyToVmKind::ALL {
            let key = CopyToVmKey { kind, subkey: None };
            keys.read.extend(read_copy_to_vm_key(&driver, key)?);
        }
        for subkey in registry::keys(&driver).map_err(|error| driver_key_failed(key, &error))? {
            for &kind in CopyToVmKind::ALL {
                let key = CopyToVmKey { kind, subkey: Some(subkey.clone()) };
                match read_copy_to_vm_key(&driver, key) {
                    Ok(key) => keys.read.extend(key),
                    Err(failure) => keys.unreadable.push(failure),
                }
            }
        }
        Ok(keys)
    }

    fn has_folder(&self, path: &str) -> bool {
        !matches!(Path::new(path).try_exists(), Ok(false))
    }

    fn system_root(&self) -> &str {
        self.system_root
    }

    fn begin(&self, step: ReadStep) {
        (self.on_step)(step);
    }
}

/// The present devices that `accept` accepts.
pub(crate) fn candidates(
    setup: &SetupApi,
    accept: impl Fn(&DeviceEntry<'_>) -> Option<Candidate>,
) -> io::Result<Vec<Candidate>> {
    let list = setup.present();
    let accepted = list.and_then(|list| Ok(list.devices()?.iter().filter_map(accept).collect()));
    accepted.map_err(|error| failed("cannot list the present devices", &error))
}

fn driver_key_failed(key: &DriverKey, error: &io::Error) -> io::Error {
    failed(format_args!("cannot read driver key {key}"), error)
}

fn read_user_mode_drivers(key: &DriverKey) -> io::Result<Vec<String>> {
    match registry::value(&open_driver_key(key)?, "UserModeDriverName")? {
        Some(value) => text::list(&value).map_err(invalid),
        None => Ok(Vec::new()),
    }
}

/// The device as a candidate, if it has a LUID, or it displays or computes and has a problem.
pub(crate) fn candidate(entry: &DeviceEntry<'_>) -> Option<Candidate> {
    let luid = luid(entry);
    let is_broken = || {
        displays_or_computes(entry.class(), || compatible_ids(entry))
            && problem_code(entry).is_ok_and(|code| code != 0)
    };
    if luid.is_none() && !is_broken() {
        return None;
    }
    let mut notes = Vec::new();
    let index = number_property(entry, &GPU_PHYSICAL_INDEX);
    let physical_index = optional("Gpu_PhysicalAdapterIndex", index, &mut notes);
    let device = device(entry, &mut notes);
    Some(Candidate { luid, physical_index: physical_index.unwrap_or_default(), device, notes })
}

/// The device as a candidate, if one of `keys` leads to it.
fn candidate_by_key(entry: &DeviceEntry<'_>, keys: &[DeviceKey]) -> Option<Candidate> {
    let DeviceKey { luid, physical_index, .. } =
        *key_of(keys, &PnpId::new(entry.instance_id().ok()?))?;
    let mut notes = Vec::new();
    let device = device(entry, &mut notes);
    Some(Candidate { luid: Some(luid), physical_index, device, notes })
}

fn compatible_ids(entry: &DeviceEntry<'_>) -> Vec<String> {
    let ids = &property_keys::DEVPKEY_Device_CompatibleIds;
    property_value(entry, ids, Property::texts).ok().flatten().unwrap_or_default()
}

fn problem_code(entry: &DeviceEntry<'_>) -> io::Result<u32> {
    let code = number_property(entry, &property_keys::DEVPKEY_Device_ProblemCode)?;
    Ok(code.unwrap_or_default())
}

fn luid(entry: &DeviceEntry<'_>) -> Option<Luid> {
    let luid = match entry.property(&GPU_LUID) {
        Ok(property) => property?.luid().map_err(invalid),
        Err(error) => Err(error),
    };
    luid.map_err(|error| tracing::debug!(%error, "cannot read LUID of device")).ok()
}

fn device(entry: &DeviceEntry<'_>, notes: &mut Vec<String>) -> io::Result<PnpDevice> {
    let id = entry
        .instance_id()
        .map_err(|error| failed("cannot read the instance id of the device", &error))?;
    properties(entry, &id, notes)
        .map_err(|error| failed(format_args!("cannot read the properties of device {id}"), &error))
}

fn properties(entry: &DeviceEntry<'_>, id: &str, notes: &mut Vec<String>) -> io::Result<PnpDevice> {
    use property_keys as keys;
    let mut text = |what, key| optional(what, text_property(entry, key), notes);
    let description = text("FriendlyName", &keys::DEVPKEY_Device_FriendlyName)
        .or_else(|| text("DeviceDesc", &keys::DEVPKEY_Device_DeviceDesc));
    let manufacturer = text("Manufacturer", &keys::DEVPKEY_Device_Manufacturer);
    let date = property_value(entry, &keys::DEVPKEY_Device_DriverDate, Property::date);
    let numa_node = number_property(entry, &keys::DEVPKEY_Device_Numa_Node);
    let locations = property_value(entry, &keys::DEVPKEY_Device_LocationPaths, Property::texts)?;
    Ok(PnpDevice {
        id: PnpId::new(id),
        description: description.unwrap_or_default(),
        manufacturer: manufacturer.unwrap_or_default(),
        driver_key: text_property(entry, &keys::DEVPKEY_Device_Driver)?.map(DriverKey::new),
        driver_date: optional("DriverDate", date, notes),
        location_paths: locations.into_iter().flatten().map(LocationPath::new).collect(),
        numa_node: optional("Numa_Node", numa_node, notes).filter(|node| *node != NO_NUMA_NODE),
        problem_code: problem_code(entry)?,
    })
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
    registry::local_machine(&format!(r"SYSTEM\CurrentControlSet\Control\Class\{key}"))
}

/// A `CopyToVm*` key with its values; `None` if the driver does not have it.
fn read_copy_to_vm_key(
    driver: &Key,
    key: CopyToVmKey,
) -> io::Result<Option<(CopyToVmKey, Vec<RawValue>)>> {
    let name = key.to_string();
    let opened = driver.open(&name).map_err(|error| os_error(&error));
    match opened.and_then(|opened| registry::values(&opened)) {
        Ok(values) => Ok(Some((key, values.into_iter().map(raw_value).collect()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(format_args!("cannot read registry key {name}"), &error)),
    }
}

fn raw_value((name, value): (String, windows_registry::Value)) -> RawValue {
    RawValue { name, kind: value.ty().into(), data: value.to_vec() }
}

fn invalid(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_values_of_a_driver_key_are_read_unchanged() {
        use windows_registry::{LOCAL_MACHINE, Type};

        let path = format!(r"SOFTWARE\directx-device-plugin-tests-{}", std::process::id());
        let driver = LOCAL_MACHINE.create(&path).unwrap();
        let key = |kind| CopyToVmKey { kind, subkey: Some("softgpukmd".to_owned()) };
        let written = driver.create(key(CopyToVmKind::Overwrite).to_string()).unwrap();
        let name = "n".repeat(255);
        let long = vec![7_u8; 100_001];
        for (name, kind, data) in [
            ("a", Type::Bytes, &long[..]),
            (&*name, Type::Other(11), &[1, 2]),
            ("", Type::U32, &[1]),
        ] {
            written.set_bytes(name, kind, data).unwrap();
        }
        let read = read_copy_to_vm_key(&driver, key(CopyToVmKind::Overwrite));
        let missing = read_copy_to_vm_key(&driver, key(CopyToVmKind::WhenNewer));
        let value = registry::value(&written, "A").unwrap().map(|value| value.to_vec());
        let absent = registry::value(&written, "b").unwrap();
        LOCAL_MACHINE.remove_tree(&path).unwrap();
        let (_, mut values) = read.unwrap().unwrap();
        values.sort_by(|a, b| a.name.cmp(&b.name));
        let values: Vec<_> = values.iter().map(|v| (&*v.name, v.kind, &*v.data)).collect();
        assert_eq!(values, [("", 4, &[1][..]), ("a", 3, &long), (&name, 11, &[1, 2])]);
        assert!(missing.unwrap().is_none());
        assert_eq!((value, absent), (Some(long), None));
    }

    /// Where no device has the LUID, the registry key of the graphics kernel leads
    /// to the device. This host has devices that are not adapters, so they have no LUID.
    #[test]
    fn a_device_without_a_luid_is_found_by_its_instance_id() {
        let setup = SetupApi::load().unwrap();
        let list = setup.present().unwrap();
        let devices = list.devices().unwrap();
        let entry = devices.iter().find(|entry| luid(entry).is_none()).unwrap();
        let instance_id = PnpId::new(entry.instance_id().unwrap().to_lowercase());
        let key = DeviceKey { instance_id, luid: Luid(7), physical_index: 1 };
        let found = candidate_by_key(entry, std::slice::from_ref(&key)).unwrap();
        assert_eq!((found.luid, found.physical_index), (Some(Luid(7)), 1));
        let pnp = found.device.unwrap();
        assert_eq!(pnp.id, key.instance_id);

        let other = DeviceKey { instance_id: PnpId::new(r"PCI\X\1"), ..key };
        assert!(candidate_by_key(entry, &[other]).is_none() && candidate(entry).is_none());
    }
}
