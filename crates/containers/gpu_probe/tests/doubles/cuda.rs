//! A `libcuda.so.1` with one device that uses the memory of the process. It knows the kernels by
//! their names and computes what their PTX should. `GPU_PROBE_DOUBLE` selects a fault;
//! `--cfg old` builds a library that lacks a function.
#![allow(non_snake_case, clippy::missing_safety_doc, clippy::all)]

use std::ffi::{CStr, c_char, c_void};
use std::sync::OnceLock;
use std::time::Duration;

const DEVICES: i32 = 1;

fn fault() -> String {
    std::env::var("GPU_PROBE_DOUBLE").unwrap_or_default()
}

fn status(name: &str, error: i32) -> i32 {
    if fault() == name { error } else { 0 }
}

#[unsafe(no_mangle)]
pub extern "system" fn cuInit(_: u32) -> i32 {
    match fault().as_str() {
        "no-device" => 100,
        "mismatch" => 803,
        "crash" => {
            eprintln!("double: on purpose");
            std::process::abort()
        }
        "hang" => loop {
            std::thread::sleep(Duration::from_secs(1));
        },
        "noise" => {
            print!("a driver that prints to standard output, without a line feed");
            0
        }
        _ => 0,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuGetErrorName(error: i32, name: *mut *const c_char) -> i32 {
    let text = match error {
        221 => c"CUDA_ERROR_JIT_COMPILER_NOT_FOUND",
        719 => c"CUDA_ERROR_LAUNCH_FAILED",
        803 => c"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
        _ => return 1,
    };
    unsafe { *name = text.as_ptr() };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuDriverGetVersion(version: *mut i32) -> i32 {
    unsafe { *version = 12_040 };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuDeviceGetCount(count: *mut i32) -> i32 {
    unsafe { *count = DEVICES };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuDeviceGet(device: *mut i32, ordinal: i32) -> i32 {
    unsafe { *device = ordinal };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuDeviceGetName(name: *mut c_char, length: i32, _: i32) -> i32 {
    let text = b"Double T4\0";
    assert!(length as usize >= text.len());
    unsafe { name.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), text.len()) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuDeviceTotalMem_v2(bytes: *mut usize, _: i32) -> i32 {
    unsafe { *bytes = 16 << 30 };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuDeviceGetLuid(luid: *mut c_char, nodes: *mut u32, _: i32) -> i32 {
    unsafe {
        luid.cast::<[u8; 8]>().write_unaligned(70_000_i64.to_le_bytes());
        *nodes = 1;
    }
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuCtxCreate_v2(context: *mut usize, _: u32, device: i32) -> i32 {
    unsafe { *context = 100 + device as usize };
    0
}

#[unsafe(no_mangle)]
pub extern "system" fn cuCtxSetCurrent(context: usize) -> i32 {
    if context == 100 { 0 } else { 201 }
}

#[unsafe(no_mangle)]
pub extern "system" fn cuCtxSynchronize() -> i32 {
    status("launch", 719)
}

/// The module is its PTX.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuModuleLoadData(module: *mut *const c_char, ptx: *const c_char) -> i32 {
    unsafe { *module = Box::leak(Box::new(CStr::from_ptr(ptx).to_owned())).as_ptr() };
    status("no-compiler", 221)
}

/// A kernel is 1 for `mix_words` and 2 for `monte_carlo`.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuModuleGetFunction(
    kernel: *mut usize,
    module: *const c_char,
    name: *const c_char,
) -> i32 {
    let (ptx, name) = unsafe { (CStr::from_ptr(module), CStr::from_ptr(name)) };
    let name = name.to_str().unwrap();
    if !ptx.to_str().unwrap().contains(&format!(".visible .entry {name}(")) {
        return 500;
    }
    unsafe { *kernel = if name == "mix_words" { 1 } else { 2 } };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuMemAlloc_v2(address: *mut u64, size: usize) -> i32 {
    let memory: &mut [u32] = Box::leak(vec![0_u32; size / 4].into_boxed_slice());
    unsafe { *address = memory.as_mut_ptr() as u64 };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuMemsetD32_v2(address: u64, value: u32, count: usize) -> i32 {
    unsafe { std::slice::from_raw_parts_mut(address as *mut u32, count) }.fill(value);
    0
}

#[cfg(not(old))]
#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuMemcpyHtoD_v2(to: u64, from: *const c_void, size: usize) -> i32 {
    unsafe { (to as *mut u8).copy_from_nonoverlapping(from.cast(), size) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuMemcpyDtoH_v2(to: *mut c_void, from: u64, size: usize) -> i32 {
    unsafe { to.cast::<u8>().copy_from_nonoverlapping(from as *const u8, size) };
    if fault() == "memory" && size > 1 << 20 {
        unsafe { *to.cast::<u8>() ^= 1 };
    }
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuMemcpyDtoD_v2(to: u64, from: u64, size: usize) -> i32 {
    unsafe { (to as *mut u8).copy_from_nonoverlapping(from as *const u8, size) };
    0
}

/// The results of both kernels for one word.
fn compute(mut word: u32) -> [u32; 2] {
    let mut hits = 0;
    for _ in 0..256 {
        word ^= word >> 16;
        word = word.wrapping_mul(0x85eb_ca6b);
        word ^= word >> 13;
        word = word.wrapping_mul(0xc2b2_ae35);
        word ^= word >> 16;
        let (x, y) = (word & 0x7fff, word >> 16 & 0x7fff);
        hits += u32::from(x * x + y * y < 1 << 30);
    }
    [word, hits]
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuLaunchKernel(
    kernel: usize,
    grid: u32,
    grid_y: u32,
    grid_z: u32,
    block: u32,
    block_y: u32,
    block_z: u32,
    shared: u32,
    stream: usize,
    arguments: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> i32 {
    if [grid_y, grid_z, block_y, block_z, shared] != [1, 1, 1, 1, 0] || stream != 0 {
        return 1;
    }
    assert!(extra.is_null());
    let words = unsafe {
        let address = *(*arguments).cast::<*mut u32>();
        std::slice::from_raw_parts_mut(address, (grid * block) as usize)
    };
    // The results are computed once: the tests run many times, and every run launches the kernels
    // many times.
    static RESULTS: OnceLock<Vec<[u32; 2]>> = OnceLock::new();
    let results = RESULTS.get_or_init(|| (1..=words.len() as u32).map(compute).collect());
    assert_eq!(results.len(), words.len());
    for (result, computed) in words.iter_mut().zip(results) {
        *result = computed[kernel - 1];
    }
    match (fault().as_str(), kernel) {
        ("wrong", 1) | ("wrong-pi", 2) => words[17] ^= 1,
        // A driver that is idle computes nothing.
        ("idle", 1) => words.fill(0),
        _ => {}
    }
    0
}
