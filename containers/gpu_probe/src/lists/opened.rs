//! What adapters can be opened with besides LUIDs: displays, and the names of devices.
#![allow(unsafe_code, reason = "calls gdi32.dll, user32.dll and cfgmgr32.dll")]

use std::ffi::c_void;
use std::ptr::{null, null_mut};

use windows::Win32::Graphics::Gdi::{DISPLAY_DEVICEW, HDC};
use windows::core::{BOOL, GUID, PCWSTR};

use crate::api::Api;
use crate::library::{Loaded, functions};
use crate::session::Refusal;

/// Something that one function opens an adapter with.
pub(super) trait Object {
    /// Valid while the object lives.
    fn pointer(&self) -> *const c_void;
}

/// The drawing context of a display.
pub(super) struct Display {
    context: HDC,
    contexts: Contexts,
}

impl Object for Display {
    fn pointer(&self) -> *const c_void {
        self.context.0
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        // SAFETY: the context exists, and nobody else deletes it. Nothing depends on the result.
        let _ = unsafe { (self.contexts.delete)(self.context) };
    }
}

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

/// The displays of this session, which containers usually do not have.
pub(super) fn displays(gdi: Loaded) -> Result<impl Iterator<Item = Display>, Refusal> {
    let user = Loaded::open(Api::D3dkmt, &["user32.dll"])?;
    let displays = Displays::load(&user).map_err(Refusal::Absent)?;
    let contexts = Contexts::load(&gdi).map_err(Refusal::Absent)?;
    let device = move |number| {
        let size = u32::try_from(size_of::<DISPLAY_DEVICEW>()).unwrap_or_default();
        let mut device = DISPLAY_DEVICEW { cb: size, ..DISPLAY_DEVICEW::default() };
        // SAFETY: the function has this type, and the structure states its size.
        let found = unsafe { (displays.get)(null(), number, &raw mut device, 0) };
        found.as_bool().then_some(device.DeviceName)
    };
    let display = move |name: [u16; 32]| {
        // SAFETY: the function has this type, and the name is null-terminated.
        let context = unsafe { (contexts.create)(null(), name.as_ptr(), null(), null()) };
        (!context.is_invalid()).then_some(Display { context, contexts })
    };
    Ok((0..).map_while(device).filter_map(display))
}

/// The name of a device's interface.
pub(super) struct Interface(Vec<u16>);

impl Object for Interface {
    fn pointer(&self) -> *const c_void {
        self.0.as_ptr().cast()
    }
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

/// The interfaces of display and compute-only devices.
pub(super) fn interfaces() -> Result<impl Iterator<Item = Interface>, Refusal> {
    let library = Loaded::open(Api::D3dkmt, &["cfgmgr32.dll"])?;
    let functions = Interfaces::load(&library).map_err(Refusal::Absent)?;
    let of_class = move |class: GUID| {
        let mut size = 0;
        // SAFETY: the function has this type. No flag: interfaces that are present.
        let found = unsafe { (functions.size)(&raw mut size, &raw const class, PCWSTR::null(), 0) };
        let mut text = vec![0; size as usize];
        let place = if text.is_empty() { null_mut() } else { text.as_mut_ptr() };
        // SAFETY: as above; the buffer has this many characters.
        let list = || unsafe { (functions.list)(&raw const class, PCWSTR::null(), place, size, 0) };
        // Wine lacks the second function, and the first one fails.
        if found == 0 && list() == 0 { names(&text) } else { Vec::new() }
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
