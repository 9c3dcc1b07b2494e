//! Reads the version of Windows.
#![allow(unsafe_code, reason = "calls ntdll.dll and kernel32.dll")]

use host::HostBuild;
use windows::Wdk::System::SystemServices::RtlGetVersion;
use windows::Win32::System::SystemInformation::{GetSystemWindowsDirectoryW, OSVERSIONINFOW};
use windows_registry::{Key, Value};
use windows_report::product::ProductSources;
use windows_report::text;

use super::registry;

const CURRENT_VERSION: &str = r"SOFTWARE\Microsoft\Windows NT\CurrentVersion";

/// The maximum length of a path without the prefix `\\?\`, with its null character.
const PATH_UNITS: usize = 261;

/// The build with its update revision, and what the registry says about the product. Values that it
/// lacks are zero or absent.
pub(crate) fn version() -> (HostBuild, ProductSources) {
    let key = registry::local_machine(CURRENT_VERSION);
    let Ok(key) = key else { return (build(0), ProductSources::default()) };
    let revision =
        value(&key, "UBR").and_then(|ubr| Some(u32::from_le_bytes(ubr[..].try_into().ok()?)));
    let sources = ProductSources {
        product_name: text_value(&key, "ProductName"),
        display_version: text_value(&key, "DisplayVersion"),
        release_id: text_value(&key, "ReleaseId"),
    };
    (build(revision.unwrap_or_default()), sources)
}

fn value(key: &Key, name: &str) -> Option<Value> {
    registry::value(key, name).ok()?
}

fn text_value(key: &Key, name: &str) -> Option<String> {
    text::single(&value(key, name)?).ok()
}

/// The Windows folder, for example `C:\Windows`. It does not depend on the user.
pub(crate) fn system_root() -> String {
    let mut path = [0_u16; PATH_UNITS];
    // SAFETY: the slice carries its length.
    let length = unsafe { GetSystemWindowsDirectoryW(Some(&mut path)) };
    match path.get(..length as usize) {
        Some(path) if !path.is_empty() => String::from_utf16_lossy(path),
        _ => r"C:\Windows".to_owned(),
    }
}

fn build(revision: u32) -> HostBuild {
    let size = u32::try_from(size_of::<OSVERSIONINFOW>()).expect("a small structure");
    let mut info = OSVERSIONINFOW { dwOSVersionInfoSize: size, ..OSVERSIONINFOW::default() };
    // SAFETY: the structure contains its size. The function always succeeds.
    let _ = unsafe { RtlGetVersion(&raw mut info) };
    HostBuild {
        major: info.dwMajorVersion,
        minor: info.dwMinorVersion,
        build: info.dwBuildNumber,
        revision,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_is_version_10_or_newer_and_has_a_name() {
        let (build, sources) = version();
        assert!(build.major >= 10 && build.build >= 17763, "{build}");
        assert!(sources.product(build.build).is_some_and(|name| name.starts_with("Microsoft ")));
    }

    #[test]
    fn the_windows_folder_exists() {
        assert!(std::path::Path::new(&system_root()).join("System32").is_dir());
    }
}
