//! `OpenCL`.

use std::ffi::c_void;
use std::ptr::null_mut;

use windows::core::s;

use crate::library::Library;
use crate::{Devices, Unlisted};

/// A platform or a device.
type Handle = *mut c_void;
type GetPlatforms = unsafe extern "system" fn(u32, *mut Handle, *mut u32) -> i32;
type GetDevices = unsafe extern "system" fn(Handle, u64, u32, *mut Handle, *mut u32) -> i32;
type GetInfo = unsafe extern "system" fn(Handle, u32, usize, *mut c_void, *mut usize) -> i32;

// The values of `CL/cl.h` and `CL/cl_ext.h`.
const DEVICE_TYPE_ALL: u64 = 0xffff_ffff;
const DEVICE_LUID_VALID: u32 = 0x106c;
const DEVICE_LUID: u32 = 0x106d;
const DEVICE_NOT_FOUND: i32 = -1;
const PLATFORM_NOT_FOUND: i32 = -1001;

pub(crate) fn list() -> Result<Devices, Unlisted> {
    let library = Library::load("OpenCL.dll")?;
    let get_platforms: GetPlatforms = library.function(s!("clGetPlatformIDs"))?;
    let get_devices: GetDevices = library.function(s!("clGetDeviceIDs"))?;
    let get_info: GetInfo = library.function(s!("clGetDeviceInfo"))?;
    // SAFETY (of all blocks): the functions have these types (cl.h), the platform and the
    // device were listed, and `handles` passes a list with its length.
    let platforms =
        handles("clGetPlatformIDs", PLATFORM_NOT_FOUND, |length, list, count| unsafe {
            get_platforms(length, list, count)
        })?;
    let mut luids = Vec::new();
    for platform in platforms {
        let kind = DEVICE_TYPE_ALL;
        // SAFETY: as above.
        let devices = handles("clGetDeviceIDs", DEVICE_NOT_FOUND, |length, list, count| unsafe {
            get_devices(platform, kind, length, list, count)
        })?;
        luids.extend(devices.into_iter().map(|device| luid(get_info, device)));
    }
    Ok(luids.into_iter().collect())
}

/// A list whose function is called for its length first.
fn handles(
    call: &str,
    none: i32,
    get: impl Fn(u32, *mut Handle, *mut u32) -> i32,
) -> Result<Vec<Handle>, Unlisted> {
    let failed = |status| Unlisted::Failed(format!("{call} failed with {status}"));
    let mut count = 0;
    match get(0, null_mut(), &raw mut count) {
        0 if count > 0 => {}
        status if status == 0 || status == none => return Ok(Vec::new()),
        status => return Err(failed(status)),
    }
    let mut list = vec![null_mut(); count as usize];
    match get(count, list.as_mut_ptr(), null_mut()) {
        0 => Ok(list),
        status => Err(failed(status)),
    }
}

/// Drivers without `cl_khr_device_uuid` have no LUIDs.
fn luid(get_info: GetInfo, device: Handle) -> Option<i64> {
    let (mut valid, mut luid) = (0_u32, [0_u8; 8]);
    // SAFETY: the device was listed; the value is a 32-bit number.
    let known =
        unsafe { get_info(device, DEVICE_LUID_VALID, 4, (&raw mut valid).cast(), null_mut()) };
    if known != 0 || valid == 0 {
        return None;
    }
    // SAFETY: as above; a LUID has eight bytes.
    let status = unsafe { get_info(device, DEVICE_LUID, 8, luid.as_mut_ptr().cast(), null_mut()) };
    (status == 0).then(|| i64::from_le_bytes(luid))
}
