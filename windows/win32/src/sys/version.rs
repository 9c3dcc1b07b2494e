//! Which Windows this is.
#![allow(unsafe_code, reason = "calls ntdll.dll, kernel32.dll and winbrand.dll")]

use std::io;

use devices::HostBuild;
use windows::Wdk::System::SystemServices::RtlGetVersion;
use windows::Win32::Foundation::{HLOCAL, LocalFree};
use windows::Win32::System::SystemInformation::{GetSystemWindowsDirectoryW, OSVERSIONINFOW};
use windows::core::{PCWSTR, PWSTR, w};

use super::library::Library;
use super::registry::Key;
use crate::product::ProductSources;
use crate::text;

type BrandingFormatString = unsafe extern "system" fn(PCWSTR) -> PWSTR;

const CURRENT_VERSION: &str = r"SOFTWARE\Microsoft\Windows NT\CurrentVersion";

/// The longest path that is not prefixed, with its null.
const PATH_UNITS: usize = 261;

/// The build with its update revision, and the sources of the product's name. What the
/// registry does not tell is zero or absent.
pub(crate) fn version() -> (HostBuild, ProductSources) {
    let registry = Key::local_machine(CURRENT_VERSION);
    let value = |name| registry.as_ref().ok()?.value(name).ok()?;
    let words = |name| text::single(&value(name)?.data).ok();
    let revision = value("UBR").and_then(|ubr| Some(u32::from_le_bytes(ubr.data.try_into().ok()?)));
    let sources = ProductSources {
        branding: branding().ok(),
        product_name: words("ProductName"),
        display_version: words("DisplayVersion"),
        release_id: words("ReleaseId"),
    };
    (build(revision.unwrap_or_default()), sources)
}

/// The Windows folder, `C:\Windows`, whoever is logged on.
pub(crate) fn system_root() -> String {
    let mut path = [0_u16; PATH_UNITS];
    // SAFETY: the buffer is ours, and the function is told its length.
    let length = unsafe { GetSystemWindowsDirectoryW(Some(&mut path)) };
    match path.get(..length as usize) {
        Some(path) if !path.is_empty() => String::from_utf16_lossy(path),
        _ => r"C:\Windows".to_owned(),
    }
}

fn build(revision: u32) -> HostBuild {
    let size = u32::try_from(size_of::<OSVERSIONINFOW>()).expect("a small structure");
    let mut info = OSVERSIONINFOW { dwOSVersionInfoSize: size, ..OSVERSIONINFOW::default() };
    // SAFETY: the structure says how large it is. The function cannot fail.
    let _ = unsafe { RtlGetVersion(&raw mut info) };
    HostBuild {
        major: info.dwMajorVersion,
        minor: info.dwMinorVersion,
        build: info.dwBuildNumber,
        revision,
    }
}

fn branding() -> io::Result<String> {
    let library = Library::system("winbrand.dll")?;
    // SAFETY: the function takes a text and allocates another, or gives null.
    let format: BrandingFormatString = unsafe { library.function(c"BrandingFormatString") }?;
    // SAFETY: the text ends with a null.
    let name = unsafe { format(w!("%WINDOWS_LONG%")) };
    if name.is_null() {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the answer ends with a null.
    let text = String::from_utf16_lossy(unsafe { name.as_wide() });
    // SAFETY: the answer is on the process heap and ours to free.
    let _ = unsafe { LocalFree(Some(HLOCAL(name.0.cast()))) };
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_windows_is_10_or_newer_and_has_a_name() {
        let (build, sources) = version();
        assert!(build.major >= 10 && build.build >= 17763, "{build}");
        assert!(sources.product(build.build).is_some_and(|name| name.starts_with("Microsoft ")));
    }

    #[test]
    fn the_windows_folder_is_there() {
        assert!(std::path::Path::new(&system_root()).join("System32").is_dir());
    }
}
