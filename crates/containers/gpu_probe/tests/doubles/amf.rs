//! A `libamfrt64.so.1` that starts. `GPU_PROBE_DOUBLE` selects a fault.
#![allow(non_snake_case, clippy::all)]

const VERSION: u64 = 1 << 48 | 4 << 32 | 34 << 16;

#[unsafe(no_mangle)]
pub unsafe extern "system" fn AMFQueryVersion(version: *mut u64) -> i32 {
    unsafe { *version = VERSION };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn AMFInit(version: u64, factory: *mut usize) -> i32 {
    assert_eq!(version, VERSION);
    match std::env::var("GPU_PROBE_DOUBLE").unwrap_or_default().as_str() {
        "no-runtime" => return 12,
        "no-object" => {}
        _ => unsafe { *factory = 1 },
    }
    0
}
