//! Objects, errors and values of Windows.
#![allow(unsafe_code, reason = "takes over references to objects")]

use std::ffi::c_void;

use windows::Win32::Foundation::LUID;
use windows::Win32::Graphics::Direct3D::ID3DBlob;
use windows::core::{GUID, HRESULT, Interface};

use crate::library::{Loaded, Symbols as _};
use crate::outcome::{DeviceInfo, Fault};
use crate::session::{Candidate, Work};

/// An adapter with the object that creates its devices.
pub(super) struct Adapter<T> {
    pub(super) info: DeviceInfo,
    pub(super) object: T,
}

impl<T> Adapter<T> {
    /// The adapter as a device that is only listed.
    pub(super) fn listed(self) -> Candidate {
        Candidate { info: self.info, work: Work::Known(Ok(())) }
    }
}

/// Creates a COM object with a function of a library, which gets the interface's identifier.
pub(crate) fn create<T: Interface>(
    call: &str,
    function: impl FnOnce(*const GUID, *mut *mut c_void) -> HRESULT,
) -> Result<T, Fault> {
    let mut object = std::ptr::null_mut();
    check(call, function(&T::IID, &raw mut object))?;
    if object.is_null() {
        return Err(Fault::new(format!("{call} returned no object")));
    }
    // SAFETY: the call succeeded, so this is an object with the requested interface, and this
    // code owns the reference.
    Ok(unsafe { T::from_raw(object) })
}

/// Creates an object with a function that gets only the interface's identifier.
pub(crate) fn factory<T: Interface>(library: Loaded, name: &'static str) -> Result<T, Fault> {
    type Function = unsafe extern "system" fn(*const GUID, *mut *mut c_void) -> HRESULT;
    let address = library.function(name)?;
    // SAFETY: `CreateDXGIFactory1` (dxgi.h) and `DXCoreCreateAdapterFactory` (dxcore.h) have this
    // type.
    let function = unsafe { std::mem::transmute::<*mut (), Function>(address) };
    // SAFETY: the function gets an identifier and room for the object.
    create(name, |id, object| unsafe { function(id, object) })
}

/// The bytes of the blob that `call` returned.
pub(super) fn blob(call: &str, object: *mut c_void) -> Result<Vec<u8>, Fault> {
    if object.is_null() {
        return Err(Fault::new(format!("{call} returned no blob")));
    }
    // SAFETY: the call succeeded, so this is a blob, and this code owns the reference.
    let blob = unsafe { ID3DBlob::from_raw(object) };
    // SAFETY: the blob is a live object.
    let start = unsafe { blob.GetBufferPointer() }.cast::<u8>();
    // SAFETY: as above.
    let size = unsafe { blob.GetBufferSize() };
    // SAFETY: the blob has this many bytes, and lives until they are copied.
    Ok(unsafe { std::slice::from_raw_parts(start, size) }.to_vec())
}

pub(crate) fn check(call: &str, result: HRESULT) -> Result<(), Fault> {
    result.ok().map_err(failed(call))
}

pub(crate) fn failed(call: &str) -> impl Fn(windows::core::Error) -> Fault + '_ {
    move |error| {
        let code = error.code().0.cast_unsigned();
        let (name, hint) = explain(code);
        let fault = Fault::new(format!("{call} failed: {code:#010x}{name}"));
        if hint.is_empty() { fault } else { fault.hint(hint) }
    }
}

/// The name of an error (winerror.h), and what to do about it.
fn explain(code: u32) -> (&'static str, &'static str) {
    const LOST: &str = "the driver was reset or the device was removed: restart the container, and \
                        check the device on the node";
    match code {
        0x8000_4001 => (" (E_NOTIMPL)", ""),
        0x8000_4002 => (" (E_NOINTERFACE)", ""),
        0x8007_000e => (" (E_OUTOFMEMORY)", ""),
        0x8007_0057 => (" (E_INVALIDARG)", ""),
        0x887a_0004 => (
            " (DXGI_ERROR_UNSUPPORTED)",
            concat!(
                "the adapter's driver does not support this API, or its files are not mounted; \
                 see ",
                page!("runtime-files")
            ),
        ),
        0x887a_0005 => (" (DXGI_ERROR_DEVICE_REMOVED)", LOST),
        0x887a_0006 => (" (DXGI_ERROR_DEVICE_HUNG)", LOST),
        0x887a_0007 => (" (DXGI_ERROR_DEVICE_RESET)", LOST),
        0x887a_0020 => (" (DXGI_ERROR_DRIVER_INTERNAL_ERROR)", LOST),
        _ => ("", ""),
    }
}

pub(crate) fn number(luid: LUID) -> i64 {
    i64::from(luid.HighPart) << 32 | i64::from(luid.LowPart)
}

pub(crate) fn structure(luid: i64) -> LUID {
    let [a, b, c, d, high @ ..] = luid.to_le_bytes();
    LUID { LowPart: u32::from_le_bytes([a, b, c, d]), HighPart: i32::from_le_bytes(high) }
}

/// The text before the first NUL: Windows and Wine leave old text behind it.
pub(super) fn until_null(text: &[u16]) -> String {
    let text = text.split(|unit| *unit == 0).next().unwrap_or_default();
    String::from_utf16_lossy(text)
}

/// A driver version as Windows prints it: four parts of 16 bits.
pub(super) fn driver_version(version: u64) -> String {
    let [a, b, c, d] = [48, 32, 16, 0].map(|shift| version >> shift & 0xffff);
    format!("{a}.{b}.{c}.{d}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_windows_are_written_as_windows_does() {
        assert_eq!(number(LUID { LowPart: 0xffff_fff0, HighPart: 1 }), 0x1_ffff_fff0);
        for luid in [0, 7_098_126, -1, 0x1_ffff_fff0, i64::MIN] {
            assert_eq!(number(structure(luid)), luid);
        }
        assert_eq!(until_null(&[65, 66, 0, 67]), "AB");
        assert_eq!(driver_version(0x001f_0000_000f_14f2), "31.0.15.5362");
    }
}
