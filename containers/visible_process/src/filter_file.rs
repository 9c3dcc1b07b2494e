//! Whether the filter's files can be loaded.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::windows::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

use visibility::{Architecture, is_filter};
use windows::Win32::System::LibraryLoader::{GetProcAddress, LoadLibraryW};
use windows::Win32::System::SystemInformation::GetSystemDirectoryW;
use windows::core::{PCWSTR, s};

/// The most bytes of a filter's file that are read; it has some 20 KiB.
const LARGEST: u64 = 1024 * 1024;

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

/// Whether the file is the filter for 32-bit programs, which this process cannot load.
pub fn check_32_bit(path: &Path) -> io::Result<()> {
    let mut content = Vec::new();
    File::open(path)?.take(LARGEST).read_to_end(&mut content)?;
    if is_filter(&content, Architecture::X86) {
        return Ok(());
    }
    Err(io::Error::other("it is not the visibility filter for 32-bit programs, or damaged"))
}

/// The folder with Windows' 64-bit libraries. 32-bit programs see another one in its place.
#[must_use]
pub fn system_folder() -> Option<OsString> {
    // Windows' longest path without a prefix.
    let mut text = [0; 260];
    // SAFETY: the function writes at most as many characters as the buffer has.
    let length = unsafe { GetSystemDirectoryW(Some(&mut text)) };
    text.get(..length as usize).filter(|text| !text.is_empty()).map(OsString::from_wide)
}
