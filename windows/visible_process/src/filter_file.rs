//! Whether the filter's file can be loaded.

use std::io;
use std::os::windows::ffi::OsStrExt as _;
use std::path::Path;

use windows::Win32::System::LibraryLoader::{GetProcAddress, LoadLibraryW};
use windows::core::{PCWSTR, s};

/// Loads the filter into this process, where it does nothing. A process whose imports name
/// a library that cannot be loaded does not start, so this is tried first.
pub fn load(path: &Path) -> io::Result<()> {
    let text: Vec<u16> = path.as_os_str().encode_wide().chain([0]).collect();
    // SAFETY: the path is null-terminated. The library's entry point does nothing here.
    let module = unsafe { LoadLibraryW(PCWSTR(text.as_ptr())) }?;
    // SAFETY: the library is loaded, and is never unloaded.
    let entry = unsafe { GetProcAddress(module, s!("DllMain")) };
    entry.map(drop).ok_or_else(|| io::Error::other("it is not the visibility filter"))
}
