//! The version of a library's file, on Windows from its version resource, elsewhere from its name.
#![cfg_attr(windows, allow(unsafe_code, reason = "reads version resources with version.dll"))]

/// The version in a path such as `/usr/lib/libcuda.so.550.54`.
#[cfg(not(windows))]
pub(crate) fn read(path: &str) -> Option<String> {
    let (_, version) = path.rsplit_once(".so.")?;
    let is_version = version.starts_with(|c: char| c.is_ascii_digit()) && !version.contains('/');
    is_version.then(|| version.to_owned())
}

/// The version of the file at `path`.
#[cfg(windows)]
pub(crate) fn read(path: &str) -> Option<String> {
    use windows::core::HSTRING;

    use crate::api::Api;
    use crate::library::Loaded;

    let library = Loaded::open(Api::Dxgi, &["version.dll"]).ok()?;
    let functions = Functions::load(&library).ok()?;
    let path = HSTRING::from(path);
    // SAFETY: here and below, the names end with a NUL.
    let size = unsafe { (functions.size)(path.as_ptr(), std::ptr::null_mut()) };
    let mut resource = vec![0_u64; (size as usize).div_ceil(8)];
    if resource.is_empty() {
        return None;
    }
    // SAFETY: the buffer has at least this size.
    let is_read =
        unsafe { (functions.read)(path.as_ptr(), 0, size, resource.as_mut_ptr().cast()) } != 0;
    let mut start = std::ptr::null::<u32>();
    let mut length = 0;
    let root = HSTRING::from("\\");
    // SAFETY: the buffer is a version resource if it was read.
    let is_found = is_read
        && unsafe {
            let resource = resource.as_ptr().cast();
            (functions.find)(resource, root.as_ptr(), &raw mut start, &raw mut length)
        } != 0;
    // `VS_FIXEDFILEINFO` has 13 numbers. The third and the fourth are the version.
    if !is_found || start.is_null() || (length as usize) < 13 * size_of::<u32>() {
        return None;
    }
    // SAFETY: the value is in the buffer and has these numbers.
    let [high, low] = unsafe { [start.add(2).read_unaligned(), start.add(3).read_unaligned()] };
    Some(format!("{}.{}.{}.{}", high >> 16, high & 0xffff, low >> 16, low & 0xffff))
}

#[cfg(windows)]
crate::library::functions! {
    /// The functions of `winver.h`.
    Functions {
        size = "GetFileVersionInfoSizeW" fn(*const u16, *mut u32) -> u32;
        read = "GetFileVersionInfoW" fn(*const u16, u32, u32, *mut std::ffi::c_void) -> i32;
        find = "VerQueryValueW"
            fn(*const std::ffi::c_void, *const u16, *mut *const u32, *mut u32) -> i32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(not(windows))]
    #[test]
    fn names_contain_versions() {
        assert_eq!(read("/usr/lib/libcuda.so.550.54.14").as_deref(), Some("550.54.14"));
        assert_eq!(read("/usr/lib/libx.so"), None);
        assert_eq!(read("/usr/a.so.1/libx.so"), None);
    }

    /// Wine's libraries have version resources too.
    #[cfg(windows)]
    #[test]
    fn libraries_of_windows_have_versions() {
        let system = std::env::var("SystemRoot").unwrap() + "\\System32\\";
        let version = read(&format!("{system}kernel32.dll")).unwrap();
        assert_eq!(version.split('.').count(), 4, "{version}");
        assert!(!version.starts_with("0."), "{version}");
        assert_eq!(read(&format!("{system}no-such-library.dll")), None);
    }
}
