//! The function of `vmcompute.dll` that describes the host.
#![allow(unsafe_code, reason = "other programs call the exports with raw pointers")]

use std::ptr;

use windows::Win32::Foundation::{E_FAIL, E_INVALIDARG, E_OUTOFMEMORY, S_OK};
use windows::Win32::System::Memory::{LMEM_FIXED, LocalAlloc};
use windows::core::{HRESULT, PCWSTR, PWSTR};

use crate::doubled_host::host;
use crate::schemas;

/// `HcsGetServiceProperties`, as callers of `vmcompute.dll` declare it (microsoft/hcsshim).
#[unsafe(no_mangle)]
extern "system" fn HcsGetServiceProperties(
    query: PCWSTR,
    result: *mut PWSTR,
    error_details: *mut PWSTR,
) -> HRESULT {
    let Ok(host) = host() else { return E_FAIL };
    if query.is_null() || result.is_null() {
        return E_INVALIDARG;
    }
    let text = local_alloc(&schemas::response(&host.facts().hcs_schemas));
    if text.is_null() {
        return E_OUTOFMEMORY;
    }
    // SAFETY: not null, and the caller guarantees that there is space for a pointer.
    unsafe { result.write(text) };
    if !error_details.is_null() {
        // SAFETY: as above.
        unsafe { error_details.write(PWSTR::null()) };
    }
    S_OK
}

/// A copy of `text` allocated with `LocalAlloc`; null if memory is exhausted.
fn local_alloc(text: &str) -> PWSTR {
    let units: Vec<u16> = text.encode_utf16().chain([0]).collect();
    // SAFETY: the function takes only numbers.
    let memory = unsafe { LocalAlloc(LMEM_FIXED, units.len() * size_of::<u16>()) };
    let Ok(memory) = memory else { return PWSTR::null() };
    let target: *mut u16 = memory.0.cast();
    // SAFETY: the memory was just allocated with the length of the units.
    unsafe { ptr::copy_nonoverlapping(units.as_ptr(), target, units.len()) };
    PWSTR(target)
}
