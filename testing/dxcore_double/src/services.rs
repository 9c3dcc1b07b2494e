//! The functions of `computecore.dll`, `vmcompute.dll` and `winbrand.dll` that describe the host.
#![allow(unsafe_code, reason = "other programs call the exports with raw pointers")]

use std::ptr;

use windows::Win32::Foundation::{E_FAIL, E_INVALIDARG, E_OUTOFMEMORY, HMODULE, S_OK};
use windows::Win32::System::LibraryLoader::{
    GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS, GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT,
    GetModuleFileNameW, GetModuleHandleExW,
};
use windows::Win32::System::Memory::{LMEM_FIXED, LocalAlloc};
use windows::core::{HRESULT, PCWSTR, PWSTR};

use crate::host::host;
use crate::schemas;

/// `HcsGetServiceProperties`. In `computecore.h` it takes the query and the result; in
/// `vmcompute.dll` it takes the error details as a third argument.
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
    if is_vmcompute() && !error_details.is_null() {
        // SAFETY: as above; callers of vmcompute.dll pass three arguments.
        unsafe { error_details.write(PWSTR::null()) };
    }
    S_OK
}

/// `BrandingFormatString`, which supports only `%WINDOWS_LONG%`.
#[unsafe(no_mangle)]
extern "system" fn BrandingFormatString(_format: PCWSTR) -> PWSTR {
    let product = host().ok().and_then(|host| host.facts().product);
    product.map_or(PWSTR::null(), |product| {
        // Branding names the product without its manufacturer.
        local_alloc(product.strip_prefix("Microsoft ").unwrap_or(&product))
    })
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

/// Whether this copy of the library has the file name `vmcompute.dll`.
fn is_vmcompute() -> bool {
    let own_address = PCWSTR((is_vmcompute as *const ()).cast());
    let flags =
        GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT;
    let mut module = HMODULE::default();
    // SAFETY: with this flag the name is an address inside the module.
    let found = unsafe { GetModuleHandleExW(flags, own_address, &raw mut module) };
    let mut name = [0; 512];
    // SAFETY: the module is loaded, because it contains this function.
    let length = unsafe { GetModuleFileNameW(Some(module), &mut name) };
    let name = String::from_utf16_lossy(&name[..length as usize]).to_lowercase();
    found.is_ok() && name.ends_with("vmcompute.dll")
}
