//! Queries the properties of the Host Compute Service.
#![allow(unsafe_code, reason = "calls vmcompute.dll")]

use std::ffi::c_void;

use windows::Win32::Foundation::{HLOCAL, LocalFree};
use windows::core::{HRESULT, HSTRING, PCWSTR, PWSTR};

use super::library::{Library, os_error};
use crate::hcs_error::HcsError;

/// The query that `HcsGetServiceProperties` answers with the supported schemas.
const QUERY: &str = r#"{"PropertyTypes":["Basic"]}"#;

/// `HcsGetServiceProperties`: query, properties, error details (microsoft/hcsshim, which also calls
/// it in this library on every host).
type GetServiceProperties = unsafe extern "system" fn(PCWSTR, *mut PWSTR, *mut PWSTR) -> HRESULT;

/// The JSON response of the service to [`QUERY`].
pub(crate) fn service_properties() -> Result<String, HcsError> {
    let library = Library::system("vmcompute.dll").map_err(HcsError::Missing)?;
    // SAFETY: the type is the one that callers of vmcompute.dll use.
    let get = unsafe { library.function(c"HcsGetServiceProperties") };
    get_properties(get.map_err(HcsError::Missing)?)
}

fn get_properties(get: GetServiceProperties) -> Result<String, HcsError> {
    let query = HSTRING::from(QUERY);
    let mut answer = ServiceText(PWSTR::null());
    let mut details = ServiceText(PWSTR::null());
    // SAFETY: the query is null-terminated, and both results are writable.
    let result = unsafe { get(PCWSTR(query.as_ptr()), &raw mut answer.0, &raw mut details.0) };
    result.ok().map_err(|error| HcsError::Refused(os_error(&error)))?;
    Ok(answer.read())
}

/// A text that the service allocated from the process heap.
struct ServiceText(PWSTR);

impl ServiceText {
    fn read(&self) -> String {
        if self.0.is_null() {
            return String::new();
        }
        // SAFETY: texts of the service are null-terminated.
        String::from_utf16_lossy(unsafe { self.0.as_wide() })
    }
}

impl Drop for ServiceText {
    fn drop(&mut self) {
        let memory: *mut c_void = self.0.0.cast();
        if !memory.is_null() {
            // SAFETY: the memory is a result of the service, which the caller must free with
            // `LocalFree`, as Microsoft's samples do.
            let _ = unsafe { LocalFree(Some(HLOCAL(memory))) };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use windows::Win32::Foundation::E_ACCESSDENIED;

    use super::*;

    /// A copy of `text` on the process heap, as the service allocates its results.
    fn local_alloc(text: &str) -> PWSTR {
        type LocalAlloc = unsafe extern "system" fn(u32, usize) -> *mut c_void;
        let units: Vec<u16> = text.encode_utf16().chain([0]).collect();
        // SAFETY: the type is the one winbase.h declares.
        let allocate: LocalAlloc =
            unsafe { Library::system("kernel32.dll").unwrap().function(c"LocalAlloc") }.unwrap();
        // SAFETY: flags and size are valid.
        let memory = unsafe { allocate(0, size_of_val(units.as_slice())) }.cast::<u16>();
        // SAFETY: the memory has the requested size.
        unsafe { ptr::copy_nonoverlapping(units.as_ptr(), memory, units.len()) };
        PWSTR(memory)
    }

    fn is_the_query(query: PCWSTR) -> bool {
        // SAFETY: the caller passes a null-terminated text.
        unsafe { query.to_string() }.unwrap() == QUERY
    }

    unsafe extern "system" fn vmcompute(
        query: PCWSTR,
        properties: *mut PWSTR,
        result: *mut PWSTR,
    ) -> HRESULT {
        assert!(is_the_query(query));
        // SAFETY: the caller passes a writable pointer.
        unsafe { *properties = local_alloc("properties") };
        // SAFETY: the caller passes a writable pointer.
        unsafe { *result = local_alloc("details") };
        HRESULT(0)
    }

    unsafe extern "system" fn denied(_: PCWSTR, _: *mut PWSTR, _: *mut PWSTR) -> HRESULT {
        E_ACCESSDENIED
    }

    unsafe extern "system" fn no_result(_: PCWSTR, _: *mut PWSTR, _: *mut PWSTR) -> HRESULT {
        HRESULT(0)
    }

    #[test]
    fn the_properties_are_the_answer() {
        assert_eq!(get_properties(vmcompute).unwrap(), "properties");
    }

    #[test]
    fn an_error_keeps_its_cause_and_a_null_result_is_empty() {
        let error = get_properties(denied).unwrap_err();
        let HcsError::Refused(source) = error else { panic!("{error}") };
        assert_eq!(source.kind(), std::io::ErrorKind::PermissionDenied);
        assert_eq!(get_properties(no_result).unwrap(), "");
    }
}
