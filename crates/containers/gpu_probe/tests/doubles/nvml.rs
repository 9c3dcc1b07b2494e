//! A `libnvidia-ml.so.1` with one device. `GPU_PROBE_DOUBLE` selects a fault.
#![allow(non_snake_case, clippy::all)]

use std::ffi::c_char;

fn fault() -> String {
    std::env::var("GPU_PROBE_DOUBLE").unwrap_or_default()
}

unsafe fn write(text: &[u8], to: *mut c_char, length: u32) -> i32 {
    assert!(length as usize >= text.len());
    unsafe { to.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), text.len()) };
    0
}

#[unsafe(no_mangle)]
pub extern "system" fn nvmlInit_v2() -> i32 {
    match fault().as_str() {
        "mismatch" => 18,
        "no-driver" => 9,
        _ => 0,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn nvmlSystemGetDriverVersion(text: *mut c_char, length: u32) -> i32 {
    unsafe { write(b"553.62\0", text, length) }
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn nvmlDeviceGetCount_v2(count: *mut u32) -> i32 {
    unsafe { *count = 1 };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn nvmlDeviceGetHandleByIndex_v2(index: u32, device: *mut usize) -> i32 {
    unsafe { *device = 7 + index as usize };
    if fault() == "lost" { 15 } else { 0 }
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn nvmlDeviceGetName(_: usize, text: *mut c_char, length: u32) -> i32 {
    unsafe { write(b"Double T4\0", text, length) }
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn nvmlDeviceGetMemoryInfo(device: usize, memory: *mut [u64; 3]) -> i32 {
    assert_eq!(device, 7);
    unsafe { *memory = [16 << 30, 15 << 30, 1 << 30] };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn nvmlDeviceGetUtilizationRates(_: usize, rates: *mut [u32; 2]) -> i32 {
    unsafe { *rates = [42, 7] };
    if fault() == "wddm" { 3 } else { 0 }
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn nvmlDeviceGetComputeRunningProcesses(
    _: usize,
    count: *mut u32,
    list: usize,
) -> i32 {
    assert_eq!((unsafe { *count }, list), (0, 0));
    unsafe { *count = 3 };
    if fault() == "wddm" { 3 } else { 7 }
}
