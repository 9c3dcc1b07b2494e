//! A `libnvidia-ml.so.1` with three vGPUs: one with a license, one without and one that needs none.
//! `licenses.rs` compiles it as a library: as it is, with `--cfg earlier` as one of an earlier
//! driver, and with `--cfg old` as one that reports no licenses.
#![allow(non_snake_case, reason = "the names are those of `nvml.h`")]

use std::ffi::{c_char, c_void};

type Device = *mut c_void;

/// What a C compiler makes of `nvmlGridLicensableFeatures_t`, as numbers of 32 bits.
const EARLIER_FEATURE: usize = 67;
const FEATURE: usize = EARLIER_FEATURE + 4;

#[unsafe(no_mangle)]
pub extern "system" fn nvmlInit_v2() -> i32 {
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn nvmlDeviceGetCount_v2(count: *mut u32) -> i32 {
    unsafe { count.write(3) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn nvmlDeviceGetHandleByIndex_v2(index: u32, device: *mut Device) -> i32 {
    unsafe { device.write(index as usize as Device) };
    0
}

unsafe fn write_text(text: &str, buffer: *mut c_char, size: u32) -> i32 {
    assert!(text.len() < size as usize);
    unsafe {
        buffer.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), text.len());
        buffer.add(text.len()).write(0);
    }
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn nvmlSystemGetDriverVersion(buffer: *mut c_char, size: u32) -> i32 {
    unsafe { write_text("553.62", buffer, size) }
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn nvmlDeviceGetName(
    device: Device,
    buffer: *mut c_char,
    size: u32,
) -> i32 {
    let name = ["NVIDIA A10-24Q", "NVIDIA A10-12Q", "NVIDIA A10"][device as usize];
    unsafe { write_text(name, buffer, size) }
}

#[unsafe(no_mangle)]
pub extern "system" fn nvmlDeviceGetMemoryInfo(_: Device, _: *mut c_void) -> i32 {
    3
}

/// Writes the features of a device, each of `size` numbers. The second one is enabled.
unsafe fn write_features(device: Device, features: *mut u32, size: usize) -> i32 {
    let is_vgpu = (device as usize) < 2;
    let enabled = 2 + size;
    unsafe {
        features.write(u32::from(is_vgpu));
        features.add(1).write(if is_vgpu { 2 } else { 0 });
        features.add(enabled + 1).write(u32::from(device as usize == 0));
        features.add(enabled + EARLIER_FEATURE - 1).write(1);
    }
    0
}

#[cfg(not(any(earlier, old)))]
#[unsafe(no_mangle)]
pub unsafe extern "system" fn nvmlDeviceGetGridLicensableFeatures_v4(
    device: Device,
    features: *mut u32,
) -> i32 {
    unsafe {
        // The expiry: 2026-12-01 10:00:01, which is valid.
        let expiry = features.add(2 + FEATURE + EARLIER_FEATURE);
        expiry.write(2026);
        expiry.add(1).write(12 | 1 << 16);
        expiry.add(2).write(10);
        expiry.add(3).write(1 | 2 << 16);
        write_features(device, features, FEATURE)
    }
}

#[cfg(not(old))]
#[unsafe(no_mangle)]
pub unsafe extern "system" fn nvmlDeviceGetGridLicensableFeatures_v3(
    device: Device,
    features: *mut u32,
) -> i32 {
    unsafe { write_features(device, features, EARLIER_FEATURE) }
}
