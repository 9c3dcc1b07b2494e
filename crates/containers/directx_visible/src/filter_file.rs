//! The paths of the filter's files, and whether the files can be loaded.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use visibility_filter::{Architecture, is_filter};

/// The filter for 64-bit programs, in the folder of this program.
pub(crate) const FILTER: &str = "directx-visible-filter.dll";

/// The filter for 32-bit programs, which may be missing.
pub(crate) const FILTER_32: &str = "directx-visible-filter32.dll";

/// The path of the filter for 32-bit programs: in the folder of `program`, which is the path of
/// this program. 32-bit programs see the folder `SysWOW64` in place of the system folder, so the
/// filter is there if this program is in the system folder.
pub(crate) fn path_of_32_bit_filter(program: &str, system_folder: &str) -> Option<String> {
    let (folder, _) = program.rsplit_once('\\')?;
    let (windows, _) = system_folder.rsplit_once('\\')?;
    let start = folder.get(..system_folder.len());
    let is_system = start.is_some_and(|start| start.eq_ignore_ascii_case(system_folder));
    Some(match folder.get(system_folder.len()..) {
        Some(rest) if is_system && (rest.is_empty() || rest.starts_with('\\')) => {
            format!("{windows}\\SysWOW64{rest}\\{FILTER_32}")
        }
        _ => format!("{folder}\\{FILTER_32}"),
    })
}

/// The most bytes of a filter's file that are read; it has some 20 KiB.
const LARGEST: u64 = 1024 * 1024;

/// Loads the filter into this process, where it does nothing. A process whose imports name
/// a library that cannot be loaded does not start, so this is tried first.
#[cfg(windows)]
pub(crate) fn load(path: &Path) -> io::Result<()> {
    use windows::Win32::System::LibraryLoader::{GetProcAddress, LoadLibraryW};
    use windows::core::{HSTRING, s};

    // SAFETY: the path is null-terminated. The library's entry point does nothing here.
    let module = unsafe { LoadLibraryW(&HSTRING::from(path)) }?;
    // SAFETY: the library is loaded, and is never unloaded.
    let entry = unsafe { GetProcAddress(module, s!("DllMain")) };
    entry.map(drop).ok_or_else(|| io::Error::other("it is not the visibility filter"))
}

/// Whether the file is the filter for 32-bit programs, which this process cannot load.
pub(crate) fn check_32_bit(path: &Path) -> io::Result<()> {
    let mut content = Vec::new();
    File::open(path)?.take(LARGEST).read_to_end(&mut content)?;
    if is_filter(&content, Architecture::X86) {
        return Ok(());
    }
    Err(io::Error::other("it is not the visibility filter for 32-bit programs, or damaged"))
}

/// The folder with Windows' 64-bit libraries. 32-bit programs see another one in its place.
#[cfg(windows)]
pub(crate) fn system_folder() -> Option<String> {
    use windows::Win32::System::SystemInformation::GetSystemDirectoryW;

    // Paths of Windows have at most 260 characters, unless they have a prefix.
    let mut text = [0; 260];
    // SAFETY: the function writes at most as many characters as the buffer has.
    let length = unsafe { GetSystemDirectoryW(Some(&mut text)) };
    text.get(..length as usize).filter(|text| !text.is_empty()).map(String::from_utf16_lossy)
}

#[cfg(test)]
mod tests {
    use super::path_of_32_bit_filter;

    #[test]
    fn a_32_bit_program_finds_its_filter() {
        for (program, expected) in [
            (r"C:\app\directx-visible.exe", r"C:\app\directx-visible-filter32.dll"),
            (
                r"C:\Windows\System32\directx-visible.exe",
                r"C:\Windows\SysWOW64\directx-visible-filter32.dll",
            ),
            (
                r"c:\windows\SYSTEM32\gpu\directx-visible.exe",
                r"C:\Windows\SysWOW64\gpu\directx-visible-filter32.dll",
            ),
            (
                r"C:\Windows\System32-gpu\directx-visible.exe",
                r"C:\Windows\System32-gpu\directx-visible-filter32.dll",
            ),
        ] {
            let path = path_of_32_bit_filter(program, r"C:\Windows\system32");
            assert_eq!(path.as_deref(), Some(expected));
        }
        assert_eq!(path_of_32_bit_filter("directx-visible.exe", r"C:\Windows\system32"), None);
    }
}
