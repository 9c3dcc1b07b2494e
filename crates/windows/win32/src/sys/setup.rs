//! Reads the present devices and their properties with `SetupAPI`.
#![allow(unsafe_code, reason = "calls setupapi.dll")]

use std::io;
use std::ptr;

use windows::Win32::Devices::DeviceAndDriverInstallation::{
    DIGCF_ALLCLASSES, DIGCF_PRESENT, HDEVINFO, SP_DEVINFO_DATA,
};
use windows::Win32::Devices::Properties::DEVPROPTYPE;
use windows::Win32::Foundation::{
    DEVPROPKEY, ERROR_INSUFFICIENT_BUFFER, ERROR_NO_MORE_ITEMS, ERROR_NOT_FOUND, HWND, WIN32_ERROR,
};
use windows::core::{BOOL, GUID, PCWSTR, PWSTR};
use windows_report::property::Property;
use windows_report::text;

use super::library::Library;

type GetClassDevs = unsafe extern "system" fn(*const GUID, PCWSTR, HWND, u32) -> HDEVINFO;
type EnumDeviceInfo = unsafe extern "system" fn(HDEVINFO, u32, *mut SP_DEVINFO_DATA) -> BOOL;
type DestroyDeviceInfoList = unsafe extern "system" fn(HDEVINFO) -> BOOL;
type GetDeviceInstanceId =
    unsafe extern "system" fn(HDEVINFO, *const SP_DEVINFO_DATA, PWSTR, u32, *mut u32) -> BOOL;
type GetDeviceProperty = unsafe extern "system" fn(
    HDEVINFO,
    *const SP_DEVINFO_DATA,
    *const DEVPROPKEY,
    *mut DEVPROPTYPE,
    *mut u8,
    u32,
    *mut u32,
    u32,
) -> BOOL;

/// The maximum length of a device instance id, with its null character (`MAX_DEVICE_ID_LEN`,
/// cfgmgr32.h).
const INSTANCE_ID_UNITS: usize = 200;

/// How often a read is repeated because another program made the value longer.
const GROWTH_ATTEMPTS: u32 = 4;

/// The functions of setupapi.dll that discovery needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SetupApi {
    get_class_devs: GetClassDevs,
    enum_device_info: EnumDeviceInfo,
    destroy: DestroyDeviceInfoList,
    get_instance_id: GetDeviceInstanceId,
    get_property: GetDeviceProperty,
}

impl SetupApi {
    /// Loads the functions.
    pub(crate) fn load() -> io::Result<Self> {
        let library = Library::system("setupapi.dll")?;
        Ok(Self {
            // SAFETY: the type is the one setupapi.h declares.
            get_class_devs: unsafe { library.function(c"SetupDiGetClassDevsW") }?,
            // SAFETY: as above.
            enum_device_info: unsafe { library.function(c"SetupDiEnumDeviceInfo") }?,
            // SAFETY: as above.
            destroy: unsafe { library.function(c"SetupDiDestroyDeviceInfoList") }?,
            // SAFETY: as above.
            get_instance_id: unsafe { library.function(c"SetupDiGetDeviceInstanceIdW") }?,
            // SAFETY: as above.
            get_property: unsafe { library.function(c"SetupDiGetDevicePropertyW") }?,
        })
    }

    /// The same functions, but a device with this instance ID has vanished since it was listed.
    #[cfg(test)]
    pub(crate) fn without(self, id: &str) -> Self {
        VANISHED.set(id.to_owned());
        Self { get_instance_id: instance_id_unless_vanished, ..self }
    }

    /// The present devices of every class.
    pub(crate) fn present(&self) -> io::Result<DeviceList<'_>> {
        let flags = DIGCF_PRESENT.0 | DIGCF_ALLCLASSES.0;
        // SAFETY: class, enumerator and window are optional.
        let list =
            unsafe { (self.get_class_devs)(ptr::null(), PCWSTR::null(), HWND::default(), flags) };
        if list.is_invalid() {
            return Err(io::Error::last_os_error());
        }
        Ok(DeviceList { api: self, list })
    }
}

#[cfg(test)]
thread_local! {
    static VANISHED: std::cell::RefCell<String> = const { std::cell::RefCell::new(String::new()) };
}

#[cfg(test)]
unsafe extern "system" fn instance_id_unless_vanished(
    list: HDEVINFO,
    data: *const SP_DEVINFO_DATA,
    text: PWSTR,
    length: u32,
    needed: *mut u32,
) -> BOOL {
    let Ok(api) = SetupApi::load() else { return false.into() };
    // SAFETY: the arguments are those of the caller.
    let done = unsafe { (api.get_instance_id)(list, data, text, length, needed) };
    // SAFETY: after success, the text is null-terminated.
    let is_other = done.as_bool()
        && VANISHED.with_borrow(|id| unsafe { text.to_string() }.is_ok_and(|text| text != *id));
    is_other.into()
}

/// A list of the present devices at the time of its creation; `Drop` closes it.
#[derive(Debug)]
pub(crate) struct DeviceList<'a> {
    api: &'a SetupApi,
    list: HDEVINFO,
}

impl Drop for DeviceList<'_> {
    fn drop(&mut self) {
        // SAFETY: the list is open and owned by this value. There is no useful reaction to an
        // error.
        let _ = unsafe { (self.api.destroy)(self.list) };
    }
}

impl DeviceList<'_> {
    /// Every device of the list.
    pub(crate) fn devices(&self) -> io::Result<Vec<DeviceEntry<'_>>> {
        let mut devices = Vec::new();
        for index in 0.. {
            let size = u32::try_from(size_of::<SP_DEVINFO_DATA>()).expect("a small structure");
            let mut data = SP_DEVINFO_DATA { cbSize: size, ..SP_DEVINFO_DATA::default() };
            // SAFETY: the list is open, and `data` contains its size.
            let found = unsafe { (self.api.enum_device_info)(self.list, index, &raw mut data) };
            if found.as_bool() {
                devices.push(DeviceEntry { list: self, data });
                continue;
            }
            match io::Error::last_os_error() {
                end if is(&end, ERROR_NO_MORE_ITEMS) => break,
                error => return Err(error),
            }
        }
        Ok(devices)
    }
}

/// A device of a [`DeviceList`].
#[derive(Debug)]
pub(crate) struct DeviceEntry<'a> {
    list: &'a DeviceList<'a>,
    data: SP_DEVINFO_DATA,
}

impl DeviceEntry<'_> {
    /// The setup class; 0 if no driver was ever installed.
    pub(crate) fn class(&self) -> u128 {
        self.data.ClassGuid.to_u128()
    }

    /// The device instance id.
    pub(crate) fn instance_id(&self) -> io::Result<String> {
        let mut id = [0_u16; INSTANCE_ID_UNITS];
        let api = self.list.api;
        let list = self.list.list;
        let length = length_of(&id);
        let buffer = PWSTR(id.as_mut_ptr());
        // SAFETY: list and device are open, and the buffer has `length` units.
        let done = unsafe {
            (api.get_instance_id)(list, &raw const self.data, buffer, length, ptr::null_mut())
        };
        if !done.as_bool() {
            return Err(io::Error::last_os_error());
        }
        Ok(String::from_utf16_lossy(text::until_null(&id)))
    }

    /// A property; `None` if the device does not have it.
    pub(crate) fn property(&self, key: &DEVPROPKEY) -> io::Result<Option<Property>> {
        let mut data = vec![0_u8; 512];
        for _ in 0..GROWTH_ATTEMPTS {
            let mut kind = DEVPROPTYPE::default();
            let mut needed = 0;
            let length = length_of(&data);
            // SAFETY: list and device are open, and `data` has `length` bytes.
            let done = unsafe {
                (self.list.api.get_property)(
                    self.list.list,
                    &raw const self.data,
                    key,
                    &raw mut kind,
                    data.as_mut_ptr(),
                    length,
                    &raw mut needed,
                    0,
                )
            };
            if done.as_bool() {
                data.truncate(needed as usize);
                return Ok(Some(Property { kind: kind.0, data }));
            }
            match io::Error::last_os_error() {
                absent if is(&absent, ERROR_NOT_FOUND) => return Ok(None),
                short if is(&short, ERROR_INSUFFICIENT_BUFFER) => {
                    data.resize((needed as usize).max(data.len() * 2), 0);
                }
                error => return Err(error),
            }
        }
        Err(io::Error::other("the value became longer during each attempt to read it"))
    }
}

fn length_of<T>(buffer: &[T]) -> u32 {
    u32::try_from(buffer.len()).unwrap_or(u32::MAX)
}

fn is(error: &io::Error, code: WIN32_ERROR) -> bool {
    error.raw_os_error() == Some(code.0.cast_signed())
}
