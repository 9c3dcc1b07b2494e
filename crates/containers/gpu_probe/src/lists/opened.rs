//! Opens adapters through displays and the names of devices, not through their LUIDs.
#![allow(unsafe_code, reason = "calls gdi32.dll, user32.dll and cfgmgr32.dll")]

use std::ffi::c_void;
use std::ptr::{null, null_mut};

use windows::Win32::Graphics::Gdi::{DISPLAY_DEVICEW, HDC};
use windows::core::{BOOL, GUID, PCWSTR};

use super::Luids;
use crate::api::Api;
use crate::library::{Loaded, functions, structure_size};
use crate::session::Refusal;

functions! {
    /// The functions of `wingdi.h`.
    Contexts {
        create = "CreateDCW" fn(*const u16, *const u16, *const u16, *const c_void) -> HDC;
        delete = "DeleteDC" fn(HDC) -> BOOL;
    }
}

functions! {
    /// The function of `winuser.h`.
    Displays {
        get = "EnumDisplayDevicesW" fn(*const u16, u32, *mut DISPLAY_DEVICEW, u32) -> BOOL;
    }
}

/// The adapters that `open` opens with the drawing contexts of the displays of this session, which
/// containers usually do not have.
pub(super) fn with_displays(gdi: Loaded, open: impl Fn(*const c_void) -> Option<i64>) -> Luids {
    let user = Loaded::open(Api::D3dkmt, &["user32.dll"])?;
    let displays = Displays::load(&user).map_err(Refusal::Absent)?;
    let contexts = Contexts::load(&gdi).map_err(Refusal::Absent)?;
    let size = structure_size::<DISPLAY_DEVICEW>();
    let mut luids = Vec::new();
    for number in 0.. {
        let mut device = DISPLAY_DEVICEW { cb: size, ..DISPLAY_DEVICEW::default() };
        // SAFETY: the structure states its size.
        let found = unsafe { (displays.get)(null(), number, &raw mut device, 0) };
        if !found.as_bool() {
            break;
        }
        let name = device.DeviceName;
        // SAFETY: the name is null-terminated.
        let context = unsafe { (contexts.create)(null(), name.as_ptr(), null(), null()) };
        if context.is_invalid() {
            continue;
        }
        luids.extend(open(context.0).map(Some));
        // SAFETY: the context exists, and nothing else deletes it. The result does not matter.
        let _ = unsafe { (contexts.delete)(context) };
    }
    Ok(luids)
}

functions! {
    /// The functions of `cfgmgr32.h`.
    Interfaces {
        size = "CM_Get_Device_Interface_List_SizeW" fn(*mut u32, *const GUID, PCWSTR, u32) -> u32;
        list = "CM_Get_Device_Interface_ListW"
            fn(*const GUID, PCWSTR, *mut u16, u32, u32) -> u32;
    }
}

/// `GUID_DISPLAY_DEVICE_ARRIVAL` and `GUID_COMPUTE_DEVICE_ARRIVAL` (ntddvdeo.h).
const CLASSES: [GUID; 2] = [
    GUID::from_u128(0x1ca0_5180_a699_450a_9a0c_de4f_be3d_dd89),
    GUID::from_u128(0x1024_e4c9_47c9_48d3_b4a8_f9df_7852_3b53),
];

/// The adapters that `open` opens with the names of the interfaces of display and compute-only
/// devices.
pub(super) fn with_interfaces(open: impl Fn(*const c_void) -> Option<i64>) -> Luids {
    let library = Loaded::open(Api::D3dkmt, &["cfgmgr32.dll"])?;
    let functions = Interfaces::load(&library).map_err(Refusal::Absent)?;
    let mut luids = Vec::new();
    for class in &CLASSES {
        let mut size = 0;
        // SAFETY: no flag: interfaces that are present.
        let found = unsafe { (functions.size)(&raw mut size, class, PCWSTR::null(), 0) };
        // Wine does not know the interfaces: asking for the size of their list fails.
        if found != 0 {
            continue;
        }
        let mut text = vec![0; size as usize];
        let place = if text.is_empty() { null_mut() } else { text.as_mut_ptr() };
        // SAFETY: as above; the buffer has this many characters.
        if unsafe { (functions.list)(class, PCWSTR::null(), place, size, 0) } == 0 {
            luids.extend(names(&text).filter_map(|name| open(name.as_ptr().cast())).map(Some));
        }
    }
    Ok(luids)
}

/// The parts of a text that end with a null, each with the null.
fn names(text: &[u16]) -> impl Iterator<Item = &[u16]> {
    text.split_inclusive(|unit| *unit == 0).filter(|name| name.len() > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_interfaces_end_with_a_null() {
        assert!(names(&[65, 66, 0, 67, 0, 0]).eq([&[65, 66, 0][..], &[67, 0]]));
        assert_eq!(names(&[0]).count(), 0);
    }
}
