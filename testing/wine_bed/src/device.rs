//! Registers and removes `PnP` devices with `SetupAPI`.
#![allow(unsafe_code, reason = "calls setupapi.dll")]

use anyhow::{Context as _, Result};
use host::{Luid, PnpDevice};
use windows::Win32::Devices::DeviceAndDriverInstallation::{
    HDEVINFO, SETUP_DI_DEVICE_CREATION_FLAGS, SP_DEVINFO_DATA, SetupDiCreateDeviceInfoList,
    SetupDiCreateDeviceInfoW, SetupDiDestroyDeviceInfoList, SetupDiOpenDeviceInfoW,
    SetupDiRegisterDeviceInfo, SetupDiRemoveDevice, SetupDiSetDevicePropertyW,
};
use windows::Win32::Devices::Properties::{
    DEVPKEY_Device_Address, DEVPKEY_Device_BusNumber, DEVPKEY_Device_DevNodeStatus,
    DEVPKEY_Device_DeviceDesc, DEVPKEY_Device_Driver, DEVPKEY_Device_DriverDate,
    DEVPKEY_Device_FriendlyName, DEVPKEY_Device_IsPresent, DEVPKEY_Device_LocationPaths,
    DEVPKEY_Device_Manufacturer, DEVPKEY_Device_Numa_Node, DEVPKEY_Device_ProblemCode,
    DEVPROP_TYPE_BOOLEAN, DEVPROP_TYPE_FILETIME, DEVPROP_TYPE_STRING, DEVPROP_TYPE_STRING_LIST,
    DEVPROP_TYPE_UINT32, DEVPROP_TYPE_UINT64, DEVPROPTYPE,
};
use windows::Win32::Foundation::DEVPROPKEY;
use windows::core::{GUID, HSTRING, PCWSTR};

/// `DEVPKEY_Gpu_Luid` and `DEVPKEY_Gpu_PhysicalAdapterIndex` of `ntddvdeo.h`.
const GPU: GUID = GUID::from_u128(0x60b193cb_5276_4d0f_96fc_f173abad3ec6);
const GPU_LUID: DEVPROPKEY = DEVPROPKEY { fmtid: GPU, pid: 2 };
const GPU_PHYSICAL_ADAPTER_INDEX: DEVPROPKEY = DEVPROPKEY { fmtid: GPU, pid: 3 };

/// The setup class Display, for devices without a driver key that names a class.
const DISPLAY: GUID = GUID::from_u128(0x4d36e968_e325_11ce_bfc1_08002be10318);

/// `DN_HAS_PROBLEM` of `cfg.h`.
const HAS_PROBLEM: u32 = 0x400;

/// Registers the device unless it is registered, and sets its properties. `luid` is the LUID
/// of its adapter.
pub(crate) fn create(luid: Option<Luid>, pnp: &PnpDevice) -> Result<()> {
    let list = List::new()?;
    let id = pnp.id.to_string();
    let device = match list.open(&id) {
        Ok(device) => device,
        Err(_) => list.register(&id, class(pnp))?,
    };
    let text = |key: &DEVPROPKEY, text: &str| device.set(key, DEVPROP_TYPE_STRING, &wide(&[text]));
    let number =
        |key: &DEVPROPKEY, number: u32| device.set(key, DEVPROP_TYPE_UINT32, &number.to_le_bytes());
    match luid {
        Some(luid) => {
            // `dxcore_double` reports the same address for the GPU.
            let [bus, address, ..] = luid.0.to_le_bytes().map(u32::from);
            number(&DEVPKEY_Device_BusNumber, bus)?;
            number(&DEVPKEY_Device_Address, (address & 0x1F) << 16)?;
            device.set(&GPU_LUID, DEVPROP_TYPE_UINT64, &luid.0.to_le_bytes())?;
            number(&GPU_PHYSICAL_ADAPTER_INDEX, 0)?;
        }
        None => device.unset(&GPU_LUID),
    }
    device.unset(&DEVPKEY_Device_FriendlyName);
    text(&DEVPKEY_Device_DeviceDesc, &pnp.description)?;
    text(&DEVPKEY_Device_Manufacturer, &pnp.manufacturer)?;
    match &pnp.driver_key {
        Some(key) => text(&DEVPKEY_Device_Driver, &key.to_string())?,
        None => device.unset(&DEVPKEY_Device_Driver),
    }
    match pnp.driver_date {
        Some(date) => device.set(
            &DEVPKEY_Device_DriverDate,
            DEVPROP_TYPE_FILETIME,
            &date.filetime().to_le_bytes(),
        )?,
        None => device.unset(&DEVPKEY_Device_DriverDate),
    }
    let paths: Vec<String> = pnp.location_paths.iter().map(ToString::to_string).collect();
    if paths.is_empty() {
        device.unset(&DEVPKEY_Device_LocationPaths);
    } else {
        let paths: Vec<&str> = paths.iter().map(String::as_str).chain([""]).collect();
        device.set(&DEVPKEY_Device_LocationPaths, DEVPROP_TYPE_STRING_LIST, &wide(&paths))?;
    }
    match pnp.numa_node {
        Some(node) => number(&DEVPKEY_Device_Numa_Node, node)?,
        None => device.unset(&DEVPKEY_Device_Numa_Node),
    }
    number(&DEVPKEY_Device_ProblemCode, pnp.problem_code)?;
    number(&DEVPKEY_Device_DevNodeStatus, if pnp.problem_code == 0 { 0 } else { HAS_PROBLEM })?;
    // This property is set last: from now on, `DIGCF_PRESENT` lists the device.
    device.set(&DEVPKEY_Device_IsPresent, DEVPROP_TYPE_BOOLEAN, &[0xFF])
}

/// Removes the device; one that does not exist is not an error.
pub(crate) fn remove(id: &str) -> Result<()> {
    let list = List::new()?;
    if let Ok(mut device) = list.open(id) {
        // SAFETY: list and device are open.
        let removed = unsafe { SetupDiRemoveDevice(list.0, &raw mut device.data) };
        removed.ok()?;
    }
    Ok(())
}

/// The properties that discovery reads.
const PROPERTIES: [(&str, DEVPROPKEY); 10] = [
    ("Gpu_Luid", GPU_LUID),
    ("Gpu_PhysicalAdapterIndex", GPU_PHYSICAL_ADAPTER_INDEX),
    ("FriendlyName", DEVPKEY_Device_FriendlyName),
    ("DeviceDesc", DEVPKEY_Device_DeviceDesc),
    ("Manufacturer", DEVPKEY_Device_Manufacturer),
    ("Driver", DEVPKEY_Device_Driver),
    ("DriverDate", DEVPKEY_Device_DriverDate),
    ("LocationPaths", DEVPKEY_Device_LocationPaths),
    ("Numa_Node", DEVPKEY_Device_Numa_Node),
    ("ProblemCode", DEVPKEY_Device_ProblemCode),
];

/// Writes a text as the property `name` of a device, with the type `kind`.
pub(crate) fn put_property(id: &str, name: &str, kind: u32, text: &str) -> Result<()> {
    let list = List::new()?;
    let device = list.open(id)?;
    let (_, key) = PROPERTIES
        .iter()
        .find(|(known, _)| *known == name)
        .with_context(|| format!("unknown property {name}"))?;
    device.set(key, DEVPROPTYPE(kind), &wide(&[text]))
}

/// The setup class from the driver key.
fn class(pnp: &PnpDevice) -> GUID {
    let key = pnp.driver_key.as_ref().map(ToString::to_string).unwrap_or_default();
    let guid = key.split('\\').next().unwrap_or_default().trim_matches(['{', '}']);
    GUID::try_from(guid).unwrap_or(DISPLAY)
}

/// UTF-16 bytes with a null character after each text.
fn wide(texts: &[&str]) -> Vec<u8> {
    let units = texts.iter().flat_map(|text| text.encode_utf16().chain([0]));
    units.flat_map(u16::to_le_bytes).collect()
}

struct List(HDEVINFO);

impl Drop for List {
    fn drop(&mut self) {
        // SAFETY: the list is open and owned by this value. There is no useful reaction to an
        // error.
        let _ = unsafe { SetupDiDestroyDeviceInfoList(self.0) };
    }
}

impl List {
    fn new() -> Result<List> {
        // SAFETY: class and window are optional.
        Ok(List(unsafe { SetupDiCreateDeviceInfoList(None, None) }?))
    }

    fn open(&self, id: &str) -> Result<Device<'_>> {
        let mut data = blank();
        let id = HSTRING::from(id);
        // SAFETY: the list is open, `id` is null-terminated and `data` contains its size.
        unsafe { SetupDiOpenDeviceInfoW(self.0, &id, None, 0, Some(&raw mut data)) }?;
        Ok(Device { list: self, data })
    }

    fn register(&self, id: &str, class: GUID) -> Result<Device<'_>> {
        let mut data = blank();
        let id = HSTRING::from(id);
        let flags = SETUP_DI_DEVICE_CREATION_FLAGS(0);
        // SAFETY: the list is open, `id` is null-terminated and `data` contains its size.
        unsafe {
            let out = Some(&raw mut data);
            SetupDiCreateDeviceInfoW(
                self.0,
                &id,
                &raw const class,
                PCWSTR::null(),
                None,
                flags,
                out,
            )
        }?;
        // SAFETY: list and device are open, and no comparison function is passed.
        unsafe { SetupDiRegisterDeviceInfo(self.0, &raw mut data, 0, None, None, None) }?;
        Ok(Device { list: self, data })
    }
}

fn blank() -> SP_DEVINFO_DATA {
    let size = u32::try_from(size_of::<SP_DEVINFO_DATA>()).expect("a small structure");
    SP_DEVINFO_DATA { cbSize: size, ..SP_DEVINFO_DATA::default() }
}

struct Device<'a> {
    list: &'a List,
    data: SP_DEVINFO_DATA,
}

impl Device<'_> {
    fn set(&self, key: &DEVPROPKEY, kind: DEVPROPTYPE, value: &[u8]) -> Result<()> {
        let list = self.list.0;
        let device = &raw const self.data;
        // SAFETY: list and device are open, and the slice carries its length.
        Ok(unsafe { SetupDiSetDevicePropertyW(list, device, key, kind, Some(value), 0) }?)
    }

    /// Removes a property; one that does not exist is not an error.
    fn unset(&self, key: &DEVPROPKEY) {
        let list = self.list.0;
        let device = &raw const self.data;
        let none = DEVPROPTYPE(0);
        // SAFETY: list and device are open; an empty type without a value removes the property.
        let _ = unsafe { SetupDiSetDevicePropertyW(list, device, key, none, None, 0) };
    }
}
