//! A `libmfx-gen.so.1.2` with an encoder for H.264 and HEVC. `GPU_PROBE_DOUBLE` selects a fault.
#![allow(non_snake_case, clippy::all)]

fn fault() -> String {
    std::env::var("GPU_PROBE_DOUBLE").unwrap_or_default()
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn MFXInit(kind: i32, version: *mut u32, session: *mut usize) -> i32 {
    assert_eq!((kind, unsafe { *version }), (0x402, 1 << 16));
    unsafe { *session = 5 };
    match fault().as_str() {
        "no-intel" => -3,
        "lost" => -17,
        _ => 0,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn MFXQueryVersion(session: usize, version: *mut u32) -> i32 {
    assert_eq!(session, 5);
    unsafe { *version = 2 << 16 | 9 };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn MFXVideoENCODE_Query(_: usize, input: usize, output: *mut u8) -> i32 {
    assert_eq!(input, 0);
    let codec = unsafe { output.add(116).cast::<[u8; 4]>().read_unaligned() };
    let is_known = codec == *b"AVC " || codec == *b"HEVC";
    if is_known && fault() != "no-codec" { 0 } else { -3 }
}
