//! Calls the library as C code does.

#![allow(unsafe_code, reason = "reads text through pointers, as C code does")]

use directx_device_discovery::WideChar;
use directx_device_discovery::abi::*;

/// An instance that is destroyed with the test.
pub(crate) struct Owned(pub(crate) *mut std::ffi::c_void);

impl Owned {
    pub(crate) fn new() -> Owned {
        let instance = CreateDeviceDiscoveryInstance();
        assert!(!instance.is_null());
        Owned(instance)
    }

    pub(crate) fn error(&self) -> String {
        text(DeviceDiscovery_GetLastErrorMessage(self.0)).unwrap()
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        DestroyDeviceDiscoveryInstance(self.0);
    }
}

/// The text at `start`, or `None` for null.
pub(crate) fn text(start: *const WideChar) -> Option<String> {
    if start.is_null() {
        return None;
    }
    let mut units = Vec::new();
    let mut at = start;
    loop {
        // SAFETY: the text of the library is readable up to its null character.
        let unit = unsafe { at.read() };
        if unit == 0 {
            return Some(decoded(&units));
        }
        units.push(unit);
        // SAFETY: the unit was not the null character, so the text continues.
        at = unsafe { at.add(1) };
    }
}

#[cfg(windows)]
fn decoded(units: &[WideChar]) -> String {
    String::from_utf16(units).unwrap()
}

#[cfg(not(windows))]
fn decoded(units: &[WideChar]) -> String {
    units.iter().map(|unit| char::from_u32(*unit).unwrap()).collect()
}

/// Calls every function and returns the numbers, and whether each text is null.
pub(crate) fn failures(
    instance: *mut std::ffi::c_void,
    device: u32,
    file: u32,
) -> (Vec<i64>, Vec<bool>) {
    let number = |get: extern "C" fn(_, u32) -> i32| i64::from(get(instance, device));
    let numbers = vec![
        DeviceDiscovery_GetDeviceAdapterLUID(instance, device),
        number(DeviceDiscovery_GetNumRuntimeFiles),
        number(DeviceDiscovery_GetNumRuntimeFilesWow64),
        number(DeviceDiscovery_IsDeviceIntegrated),
        number(DeviceDiscovery_IsDeviceDetachable),
        number(DeviceDiscovery_DoesDeviceSupportDisplay),
        number(DeviceDiscovery_DoesDeviceSupportCompute),
    ];
    let texts = vec![
        DeviceDiscovery_GetDeviceID(instance, device),
        DeviceDiscovery_GetDeviceDescription(instance, device),
        DeviceDiscovery_GetDeviceDriverRegistryKey(instance, device),
        DeviceDiscovery_GetDeviceDriverStorePath(instance, device),
        DeviceDiscovery_GetDeviceLocationPath(instance, device),
        DeviceDiscovery_GetDeviceVendor(instance, device),
        DeviceDiscovery_GetRuntimeFileSource(instance, device, file),
        DeviceDiscovery_GetRuntimeFileDestination(instance, device, file),
        DeviceDiscovery_GetRuntimeFileSourceWow64(instance, device, file),
        DeviceDiscovery_GetRuntimeFileDestinationWow64(instance, device, file),
    ];
    (numbers, texts.into_iter().map(<*const WideChar>::is_null).collect())
}
