//! Returns a COM object as the interface that the caller asks for.
#![allow(unsafe_code, reason = "COM passes raw pointers")]

use std::ffi::c_void;

use windows::Win32::Foundation::E_POINTER;
use windows::core::{GUID, Interface, Result};

/// Writes the interface `iid` of `object` to `out`, as `QueryInterface` does.
pub(crate) fn query(
    object: &impl Interface,
    iid: *const GUID,
    out: *mut *mut c_void,
) -> Result<()> {
    if iid.is_null() || out.is_null() {
        return Err(E_POINTER.into());
    }
    // SAFETY: neither pointer is null, and the caller guarantees that they point to a
    // GUID and to space for a pointer.
    unsafe { object.query(iid, out) }.ok()
}
