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
    if let Ok(library) = Library::system("computecore.dll")
        // SAFETY: the type is the one computecore.h declares.
        && let Ok(ask) = unsafe { library.function(c"HcsGetServiceProperties") }
    {
        return ask_for_result(ask);
    }
    let library = Library::system("vmcompute.dll").map_err(HcsError::Missing)?;
    // SAFETY: the type is the one that callers of vmcompute.dll use (microsoft/hcsshim).
    let ask = unsafe { library.function(c"HcsGetServiceProperties") };
    ask_for_properties(ask.map_err(HcsError::Missing)?)
}

fn ask_for_result(ask: WithResult) -> Result<String, HcsError> {
    let query = HSTRING::from(QUERY);
    let mut answer = ServiceText(PWSTR::null());
    // SAFETY: the query ends with a null and `answer` is ours to write.
    let result = unsafe { ask(PCWSTR(query.as_ptr()), &raw mut answer.0) };
    refused(result)?;
    Ok(answer.read())
}

fn ask_for_properties(ask: WithPropertiesAndResult) -> Result<String, HcsError> {
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

#[cfg(test)]
mod tests {
    use std::ptr;

    use windows::Win32::Foundation::E_ACCESSDENIED;

    use super::*;

    /// A copy of `text` on the process heap, as the service makes its answers.
    fn allocated(text: &str) -> PWSTR {
        type LocalAlloc = unsafe extern "system" fn(u32, usize) -> *mut c_void;
        let units: Vec<u16> = text.encode_utf16().chain([0]).collect();
        // SAFETY: the type is the one winbase.h declares.
        let allocate: LocalAlloc =
            unsafe { Library::system("kernel32.dll").unwrap().function(c"LocalAlloc") }.unwrap();
        // SAFETY: fixed memory of any size may be asked for.
        let memory = unsafe { allocate(0, size_of_val(units.as_slice())) }.cast::<u16>();
        // SAFETY: there is as much room as was asked for.
        unsafe { ptr::copy_nonoverlapping(units.as_ptr(), memory, units.len()) };
        PWSTR(memory)
    }

    fn is_the_query(query: PCWSTR) -> bool {
        // SAFETY: the caller passes a text with a null at its end.
        unsafe { query.to_string() }.unwrap() == QUERY
    }

    unsafe extern "system" fn computecore(query: PCWSTR, result: *mut PWSTR) -> HRESULT {
        assert!(is_the_query(query));
        // SAFETY: the caller passes a place for the answer.
        unsafe { *result = allocated("new") };
        HRESULT(0)
    }

    unsafe extern "system" fn vmcompute(
        query: PCWSTR,
        properties: *mut PWSTR,
        result: *mut PWSTR,
    ) -> HRESULT {
        assert!(is_the_query(query));
        // SAFETY: the caller passes a place for the answer.
        unsafe { *properties = allocated("old") };
        // SAFETY: the caller passes a place for the details.
        unsafe { *result = allocated("details") };
        HRESULT(0)
    }

    unsafe extern "system" fn denied(_: PCWSTR, _: *mut PWSTR) -> HRESULT {
        E_ACCESSDENIED
    }

    unsafe extern "system" fn silent(_: PCWSTR, _: *mut PWSTR) -> HRESULT {
        HRESULT(0)
    }

    #[test]
    fn either_library_is_asked_in_its_own_way() {
        assert_eq!(ask_for_result(computecore).unwrap(), "new");
        assert_eq!(ask_for_properties(vmcompute).unwrap(), "old");
    }

    #[test]
    fn a_refusal_says_why_and_no_answer_is_an_empty_one() {
        let error = ask_for_result(denied).unwrap_err();
        let HcsError::Refused(source) = error else { panic!("{error}") };
        assert_eq!(source.kind(), std::io::ErrorKind::PermissionDenied);
        assert_eq!(ask_for_result(silent).unwrap(), "");
    }
}
