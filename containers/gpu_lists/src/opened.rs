//! What adapters can be opened with besides LUIDs: displays, and the names of devices.

use std::ffi::c_void;
use std::ptr::{null, null_mut};

use windows::Win32::Graphics::Gdi::{DISPLAY_DEVICEW, HDC};
use windows::core::{BOOL, GUID, PCWSTR, s};

use crate::Unlisted;
use crate::library::Library;

/// Something that one function opens an adapter with.
pub(crate) trait Object {
    /// Valid while the object lives.
    fn pointer(&self) -> *const c_void;
}

/// The drawing context of a display.
pub(crate) struct Display {
    context: HDC,
    delete: DeleteDc,
}

impl Object for Display {
    fn pointer(&self) -> *const c_void {
        self.context.0
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        // SAFETY: the context exists, and nobody else deletes it. Nothing depends on the result.
        let _ = unsafe { (self.delete)(self.context) };
    }
}

type EnumDisplayDevices =
    unsafe extern "system" fn(*const u16, u32, *mut DISPLAY_DEVICEW, u32) -> BOOL;
type CreateDc = unsafe extern "system" fn(*const u16, *const u16, *const u16, *const c_void) -> HDC;
type DeleteDc = unsafe extern "system" fn(HDC) -> BOOL;

/// The displays of this session, which containers usually do not have.
pub(crate) fn displays(gdi: Library) -> Result<impl Iterator<Item = Display>, Unlisted> {
    let get: EnumDisplayDevices =
        Library::load("user32.dll")?.function(s!("EnumDisplayDevicesW"))?;
    let create: CreateDc = gdi.function(s!("CreateDCW"))?;
    let delete: DeleteDc = gdi.function(s!("DeleteDC"))?;
    let device = move |number| {
        let size = u32::try_from(size_of::<DISPLAY_DEVICEW>()).unwrap_or_default();
        let mut device = DISPLAY_DEVICEW { cb: size, ..DISPLAY_DEVICEW::default() };
        // SAFETY: the function has this type, and the structure states its size.
        let found = unsafe { get(null(), number, &raw mut device, 0) };
        found.as_bool().then_some(device.DeviceName)
    };
    let display = move |name: [u16; 32]| {
        // SAFETY: the function has this type, and the name is null-terminated.
        let context = unsafe { create(null(), name.as_ptr(), null(), null()) };
        (!context.is_invalid()).then_some(Display { context, delete })
    };
    Ok((0..).map_while(device).filter_map(display))
}

/// The name of a device's interface.
pub(crate) struct Interface(Vec<u16>);

impl Object for Interface {
    fn pointer(&self) -> *const c_void {
        self.0.as_ptr().cast()
    }
}

type GetSize = unsafe extern "system" fn(*mut u32, *const GUID, PCWSTR, u32) -> u32;
type GetList = unsafe extern "system" fn(*const GUID, PCWSTR, *mut u16, u32, u32) -> u32;

/// `GUID_DISPLAY_DEVICE_ARRIVAL` and `GUID_COMPUTE_DEVICE_ARRIVAL` (ntddvdeo.h).
const CLASSES: [GUID; 2] = [
    GUID::from_u128(0x1ca0_5180_a699_450a_9a0c_de4f_be3d_dd89),
    GUID::from_u128(0x1024_e4c9_47c9_48d3_b4a8_f9df_7852_3b53),
];

/// The interfaces of display and compute-only devices.
pub(crate) fn interfaces() -> Result<impl Iterator<Item = Interface>, Unlisted> {
    let library = Library::load("cfgmgr32.dll")?;
    let get_size: GetSize = library.function(s!("CM_Get_Device_Interface_List_SizeW"))?;
    let get_list: GetList = library.function(s!("CM_Get_Device_Interface_ListW"))?;
    let of_class = move |class: GUID| {
        let mut size = 0;
        // SAFETY: the function has this type. No flag: interfaces that are present.
        let found = unsafe { get_size(&raw mut size, &raw const class, PCWSTR::null(), 0) };
        let mut text = vec![0; size as usize];
        let place = if text.is_empty() { null_mut() } else { text.as_mut_ptr() };
        // SAFETY: as above; the buffer has this many characters.
        if found != 0 || unsafe { get_list(&raw const class, PCWSTR::null(), place, size, 0) } != 0
        {
            return Vec::new();
        }
        names(&text)
    };
    Ok(CLASSES.into_iter().flat_map(of_class).map(Interface))
}

/// The parts of a text that a null ends each, with that null.
fn names(text: &[u16]) -> Vec<Vec<u16>> {
    let names = text.split_inclusive(|unit| *unit == 0);
    names.filter(|name| name.len() > 1).map(<[u16]>::to_vec).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_interfaces_end_with_a_null() {
        assert_eq!(names(&[65, 66, 0, 67, 0, 0]), [vec![65, 66, 0], vec![67, 0]]);
        assert_eq!(names(&[0]), Vec::<Vec<u16>>::new());
    }
}
