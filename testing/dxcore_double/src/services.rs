//! The parts of `computecore.dll`, `vmcompute.dll` and `winbrand.dll` that tell about the host.
#![allow(unsafe_code, reason = "the exports are called from outside, with raw pointers")]

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

/// `HcsGetServiceProperties`: as `computecore.h` has it, query and answer; as
/// `vmcompute.dll` has it, with details of an error as the third.
#[unsafe(no_mangle)]
extern "system" fn HcsGetServiceProperties(
    query: PCWSTR,
    second: *mut PWSTR,
    third: *mut PWSTR,
) -> HRESULT {
    let Ok(host) = host() else { return E_FAIL };
    if query.is_null() || second.is_null() {
        return E_INVALIDARG;
    }
    let text = allocated(&schemas::answer(&host.facts().hcs_schemas));
    if text.is_null() {
        return E_OUTOFMEMORY;
    }
    // SAFETY: not null, and the caller says that there is room for a pointer.
    unsafe { second.write(text) };
    if is_vmcompute() && !third.is_null() {
        // SAFETY: as above; vmcompute.dll's callers pass three arguments.
        unsafe { third.write(PWSTR::null()) };
    }
    S_OK
}

/// `BrandingFormatString`, which knows `%WINDOWS_LONG%` alone.
#[unsafe(no_mangle)]
extern "system" fn BrandingFormatString(_format: PCWSTR) -> PWSTR {
    let product = host().ok().and_then(|host| host.facts().product);
    product.map_or(PWSTR::null(), |product| {
        // Branding names the product without its maker.
        allocated(product.strip_prefix("Microsoft ").unwrap_or(&product))
    })
}

/// `text` on the heap that `LocalFree` frees from; null where memory is short.
fn allocated(text: &str) -> PWSTR {
    let units: Vec<u16> = text.encode_utf16().chain([0]).collect();
    // SAFETY: plain numbers.
    let memory = unsafe { LocalAlloc(LMEM_FIXED, units.len() * size_of::<u16>()) };
    let Ok(memory) = memory else { return PWSTR::null() };
    let target: *mut u16 = memory.0.cast();
    // SAFETY: the memory is ours, new, and as long as the units.
    unsafe { ptr::copy_nonoverlapping(units.as_ptr(), target, units.len()) };
    PWSTR(target)
}

/// Whether this copy of the library is called `vmcompute.dll`.
fn is_vmcompute() -> bool {
    let here = PCWSTR((is_vmcompute as *const ()).cast());
    let flags =
        GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT;
    let mut module = HMODULE::default();
    // SAFETY: with this flag the name is an address within the module.
    let found = unsafe { GetModuleHandleExW(flags, here, &raw mut module) };
    let mut name = [0; 512];
    // SAFETY: the module is loaded, as this function is in it.
    let length = unsafe { GetModuleFileNameW(Some(module), &mut name) };
    let name = String::from_utf16_lossy(&name[..length as usize]).to_lowercase();
    found.is_ok() && name.ends_with("vmcompute.dll")
}
