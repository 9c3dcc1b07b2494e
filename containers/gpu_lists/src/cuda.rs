//! CUDA's driver API.

use windows::core::s;

use crate::library::Library;
use crate::{Devices, Unlisted};

/// `CUDA_ERROR_NO_DEVICE` (cuda.h).
const NO_DEVICE: i32 = 100;

type Init = unsafe extern "system" fn(u32) -> i32;
type GetCount = unsafe extern "system" fn(*mut i32) -> i32;
type Get = unsafe extern "system" fn(*mut i32, i32) -> i32;
type GetLuid = unsafe extern "system" fn(*mut [u8; 8], *mut u32, i32) -> i32;

pub(crate) fn list() -> Result<Devices, Unlisted> {
    let library = Library::load("nvcuda.dll")?;
    let init: Init = library.function(s!("cuInit"))?;
    let get_count: GetCount = library.function(s!("cuDeviceGetCount"))?;
    let get: Get = library.function(s!("cuDeviceGet"))?;
    let get_luid: GetLuid = library.function(s!("cuDeviceGetLuid"))?;
    // SAFETY (of all blocks): the functions have these types (cuda.h), and write into local
    // variables. No flags are defined.
    match unsafe { init(0) } {
        0 => {}
        NO_DEVICE => return Ok(Devices::default()),
        status => return Err(failed("cuInit", status)),
    }
    let mut count = 0;
    // SAFETY: as above.
    match unsafe { get_count(&raw mut count) } {
        0 => {}
        status => return Err(failed("cuDeviceGetCount", status)),
    }
    let luid = |ordinal| {
        let (mut device, mut luid, mut nodes) = (0, [0; 8], 0);
        // SAFETY: as above.
        let found = unsafe { get(&raw mut device, ordinal) } == 0
            // SAFETY: as above; the device was listed.
            && unsafe { get_luid(&raw mut luid, &raw mut nodes, device) } == 0;
        // Compute-only drivers write zeros.
        Some(i64::from_le_bytes(luid)).filter(|luid| found && *luid != 0)
    };
    Ok((0..count).map(luid).collect())
}

fn failed(call: &str, status: i32) -> Unlisted {
    Unlisted::Failed(format!("{call} failed with {status}"))
}
