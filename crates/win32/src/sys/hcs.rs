//! The Host Compute Service's own properties.
#![allow(unsafe_code, reason = "calls computecore.dll or vmcompute.dll")]

use std::ffi::c_void;

use windows::Win32::Foundation::{HLOCAL, LocalFree};
use windows::core::{HRESULT, HSTRING, PCWSTR, PWSTR};

use super::library::{Library, os_error};
use crate::hcs::{HcsError, QUERY};

/// computecore.dll: query, result (`HcsGetServiceProperties`, computecore.h).
type WithResult = unsafe extern "system" fn(PCWSTR, *mut PWSTR) -> HRESULT;
/// vmcompute.dll, which older hosts have alone: query, properties, result.
type WithPropertiesAndResult = unsafe extern "system" fn(PCWSTR, *mut PWSTR, *mut PWSTR) -> HRESULT;

/// The service's answer to [`QUERY`], as JSON.
pub(crate) fn service_properties() -> Result<String, HcsError> {
    match Library::system("computecore.dll") {
        Ok(library) => by_computecore(library),
        Err(_) => by_vmcompute(Library::system("vmcompute.dll").map_err(HcsError::Missing)?),
    }
}

fn by_computecore(library: Library) -> Result<String, HcsError> {
    // SAFETY: the type is the one computecore.h declares.
    let ask: WithResult =
        unsafe { library.function(c"HcsGetServiceProperties") }.map_err(HcsError::Missing)?;
    let query = HSTRING::from(QUERY);
    let mut answer = ServiceText(PWSTR::null());
    // SAFETY: the query ends with a null and `answer` is ours to write.
    let result = unsafe { ask(PCWSTR(query.as_ptr()), &raw mut answer.0) };
    refused(result)?;
    Ok(answer.read())
}

fn by_vmcompute(library: Library) -> Result<String, HcsError> {
    // SAFETY: the type is the one that callers of vmcompute.dll use (microsoft/hcsshim).
    let ask: WithPropertiesAndResult =
        unsafe { library.function(c"HcsGetServiceProperties") }.map_err(HcsError::Missing)?;
    let query = HSTRING::from(QUERY);
    let mut answer = ServiceText(PWSTR::null());
    let mut details = ServiceText(PWSTR::null());
    // SAFETY: the query ends with a null, and both texts are ours to write.
    let result = unsafe { ask(PCWSTR(query.as_ptr()), &raw mut answer.0, &raw mut details.0) };
    refused(result)?;
    Ok(answer.read())
}

fn refused(result: HRESULT) -> Result<(), HcsError> {
    result.ok().map_err(|error| HcsError::Refused(os_error(&error)))
}

/// A text that the service allocated from the process heap.
struct ServiceText(PWSTR);

impl ServiceText {
    fn read(&self) -> String {
        if self.0.is_null() {
            return String::new();
        }
        // SAFETY: the service's texts end with a null.
        String::from_utf16_lossy(unsafe { self.0.as_wide() })
    }
}

impl Drop for ServiceText {
    fn drop(&mut self) {
        let memory: *mut c_void = self.0.0.cast();
        if !memory.is_null() {
            // SAFETY: the memory is the service's answer and ours to free, in the way
            // that Microsoft's samples do.
            let _ = unsafe { LocalFree(Some(HLOCAL(memory))) };
        }
    }
}
