//! Loads libraries at run time.
#![allow(unsafe_code, reason = "loads libraries and looks up functions by name")]

use std::ffi::CStr;
use std::io;

use windows::Win32::Foundation::HMODULE;
use windows::Win32::System::LibraryLoader::{
    GetProcAddress, LOAD_LIBRARY_FLAGS, LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR,
    LOAD_LIBRARY_SEARCH_SYSTEM32, LoadLibraryExW,
};
use windows::core::{HSTRING, PCSTR};

/// A library that stays loaded until the process exits, because its own threads may run
/// after the last call and the function pointers have no lifetime. Loading it again returns the
/// same library.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Library(HMODULE);

// SAFETY: any thread may use a module handle.
unsafe impl Send for Library {}
// SAFETY: as above; nothing is written through it.
unsafe impl Sync for Library {}

impl Library {
    /// Loads `name` only from System32, not from the working or the program directory.
    pub(crate) fn system(name: &str) -> io::Result<Self> {
        Self::load(name, LOAD_LIBRARY_SEARCH_SYSTEM32)
    }

    /// Loads the library at an absolute path, and its dependencies from its own folder and
    /// System32.
    pub(crate) fn at(path: &str) -> io::Result<Self> {
        Self::load(path, LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR | LOAD_LIBRARY_SEARCH_SYSTEM32)
    }

    fn load(name: &str, flags: LOAD_LIBRARY_FLAGS) -> io::Result<Self> {
        let name = HSTRING::from(name);
        // SAFETY: `name` is null-terminated, and the entry points of these libraries may run.
        let module = unsafe { LoadLibraryExW(&name, None, flags) };
        module.map(Self).map_err(|error| os_error(&error))
    }

    /// The function `name`.
    ///
    /// # Safety
    /// `F` must be the type of a pointer to that function.
    pub(crate) unsafe fn function<F: Copy>(self, name: &CStr) -> io::Result<F> {
        const { assert!(size_of::<F>() == size_of::<usize>()) };
        // SAFETY: the module is loaded and `name` is null-terminated.
        let address = unsafe { GetProcAddress(self.0, PCSTR(name.as_ptr().cast())) }
            .ok_or_else(io::Error::last_os_error)?;
        // SAFETY: both have the size of a pointer, and the caller guarantees the type.
        Ok(unsafe { std::mem::transmute_copy(&address) })
    }
}

/// Converts an error of the `windows` crate to an operating system error.
pub(crate) fn os_error(error: &windows::core::Error) -> io::Error {
    const FACILITY_WIN32: u32 = 0x8007_0000;
    let code = error.code().0.cast_unsigned();
    // Reverses `HRESULT_FROM_WIN32`, because std knows only the Win32 codes.
    let win32_code = if code & 0xFFFF_0000 == FACILITY_WIN32 { code & 0xFFFF } else { code };
    io::Error::from_raw_os_error(win32_code.cast_signed())
}

/// Converts an `NTSTATUS` to an error.
pub(crate) fn status_error(status: i32) -> io::Error {
    io::Error::other(format!("status 0x{:08X}", status.cast_unsigned()))
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::sys::version;

    /// A copy of a library of Windows that nothing else has loaded.
    fn own_library(name: &str) -> PathBuf {
        let name = format!("{name}-{}.dll", std::process::id());
        let own = std::env::current_exe().unwrap().with_file_name(name);
        let system = Path::new(&version::system_root()).join(r"System32\version.dll");
        std::fs::copy(system, &own).unwrap();
        own
    }

    #[test]
    fn a_name_is_searched_only_in_system32() {
        let own = own_library("searched");
        let found = Library::system(own.file_name().unwrap().to_str().unwrap());
        std::fs::remove_file(&own).unwrap();
        assert!(found.is_err(), "{found:?}");
    }

    /// The functions of a library are looked up again for each read of a host.
    #[test]
    fn a_library_is_loaded_once_and_stays() {
        let own = own_library("stays");
        let first = Library::at(own.to_str().unwrap()).unwrap();
        let second = Library::at(own.to_str().unwrap()).unwrap();
        assert_eq!(first.0, second.0);
        // Windows cannot remove a loaded library.
        assert!(std::fs::remove_file(&own).is_err());
    }

    #[test]
    fn a_missing_library_or_function_is_an_error_with_its_code() {
        const ERROR_MOD_NOT_FOUND: i32 = 126;
        const ERROR_PROC_NOT_FOUND: i32 = 127;
        let error = Library::system("no-such-library.dll").unwrap_err();
        assert_eq!(error.raw_os_error(), Some(ERROR_MOD_NOT_FOUND));
        let library = Library::system("kernel32.dll").unwrap();
        // SAFETY: the function does not exist.
        let function = unsafe { library.function::<usize>(c"NoSuchFunction") };
        assert_eq!(function.unwrap_err().raw_os_error(), Some(ERROR_PROC_NOT_FOUND));
    }

    #[test]
    fn error_codes_are_converted() {
        let denied = windows::core::Error::from_hresult(windows::core::HRESULT(
            0x8007_0005_u32.cast_signed(),
        ));
        assert_eq!(os_error(&denied).kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(status_error(0xC000_0002_u32.cast_signed()).to_string(), "status 0xC0000002");
    }
}
