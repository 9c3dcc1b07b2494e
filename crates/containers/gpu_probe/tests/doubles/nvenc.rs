//! A `libnvidia-encode.so.1` whose encoder writes the start of a bitstream of H.264. It refuses
//! structures of another version and calls in another order. `GPU_PROBE_DOUBLE` selects a fault.
#![allow(non_snake_case, clippy::all)]

use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};

type Handle = *mut c_void;

fn fault() -> String {
    std::env::var("GPU_PROBE_DOUBLE").unwrap_or_default()
}

const SUCCESS: i32 = 0;
const INVALID_PARAM: i32 = 8;
const INVALID_VERSION: i32 = 15;

const H264: [u8; 16] =
    [0x62, 0x27, 0xc8, 0x6b, 0x63, 0x4e, 0xa4, 0x4c, 0xaa, 0x85, 0x1e, 0x50, 0xf3, 0x21, 0xf6, 0xbf];

/// The calls of the session: bits 0 to 2 are set after initialize, create_input, create_bitstream.
static STATE: AtomicU32 = AtomicU32::new(0);
static FRAMES: AtomicU32 = AtomicU32::new(0);
static BITSTREAM: [u8; 8] = [0, 0, 0, 1, 0x67, 0x42, 0, 0x1e];
static OTHER_FRAME: [u8; 8] = [0, 0, 0, 1, 0x41, 0, 0, 0];
/// The frame, which is filled before each encoding.
static FRAME: AtomicU64 = AtomicU64::new(0);
const PITCH: usize = 768;
const INPUT: u64 = 0x1000;
const OUTPUT: u64 = 0x2000;

unsafe fn u32_at(structure: *mut u8, offset: usize) -> u32 {
    unsafe { structure.add(offset).cast::<u32>().read_unaligned() }
}

unsafe fn u64_at(structure: *mut u8, offset: usize) -> u64 {
    unsafe { structure.add(offset).cast::<u64>().read_unaligned() }
}

unsafe fn set(structure: *mut u8, offset: usize, value: u64) {
    unsafe { structure.add(offset).cast::<u64>().write_unaligned(value) };
}

unsafe fn has_version(structure: *mut u8, version: u32) -> bool {
    unsafe { u32_at(structure, 0) == version | 0x7000_000b | 1 << 24 }
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn NvEncodeAPIGetMaxSupportedVersion(version: *mut u32) -> i32 {
    unsafe { *version = if fault() == "old-encoder" { 10 << 4 } else { 12 << 4 | 2 } };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn NvEncodeAPICreateInstance(list: *mut u8) -> i32 {
    if !unsafe { has_version(list, 2 << 16) } {
        return INVALID_VERSION;
    }
    let functions: [(usize, *const ()); 12] = [
        (16, count as _),
        (40, codecs as _),
        (64, capability as _),
        (96, initialize as _),
        (104, create_input as _),
        (120, create_bitstream as _),
        (136, encode as _),
        (144, lock as _),
        (152, unlock as _),
        (160, lock_input as _),
        (168, unlock_input as _),
        (240, open as _),
    ];
    for (offset, function) in functions {
        if fault() != "missing-function" || offset != 136 {
            unsafe { set(list, offset, function as usize as u64) };
        }
    }
    SUCCESS
}

unsafe extern "system" fn open(parameters: *mut u8, session: *mut Handle) -> i32 {
    match fault().as_str() {
        "no-encoder" => return 2,
        "busy" => return 10,
        _ => {}
    }
    if !unsafe { has_version(parameters, 1 << 16) } {
        return INVALID_VERSION;
    }
    // The session has the context of the double of CUDA, and the version of the interface.
    let expected = unsafe { u32_at(parameters, 4) == 1 && u64_at(parameters, 8) == 100 };
    if !expected || unsafe { u32_at(parameters, 24) } != 0x0100_000b {
        return INVALID_PARAM;
    }
    unsafe { *session = 7 as Handle };
    SUCCESS
}

unsafe extern "system" fn count(_: Handle, count: *mut u32) -> i32 {
    unsafe { *count = 1 };
    SUCCESS
}

unsafe extern "system" fn codecs(_: Handle, list: *mut [u8; 16], size: u32, count: *mut u32) -> i32 {
    assert_eq!(size, 1);
    unsafe {
        *list = H264;
        *count = 1;
    }
    SUCCESS
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Guid(u32, u16, u16, [u8; 8]);

unsafe extern "system" fn capability(_: Handle, codec: Guid, query: *mut u8, value: *mut i32) -> i32 {
    if !unsafe { has_version(query, 1 << 16) } {
        return INVALID_VERSION;
    }
    let is_width = unsafe { u32_at(query, 4) } == 16;
    if codec.0 != 0x6bc8_2762 || codec.3[7] != 0xbf || !is_width {
        return INVALID_PARAM;
    }
    unsafe { *value = 4096 };
    SUCCESS
}

unsafe extern "system" fn initialize(session: Handle, parameters: *mut u8) -> i32 {
    if !unsafe { has_version(parameters, 5 << 16 | 1 << 31) } {
        return INVALID_VERSION;
    }
    let codec = unsafe { parameters.add(4).cast::<[u8; 16]>().read_unaligned() };
    let size = unsafe { (u32_at(parameters, 36), u32_at(parameters, 40)) };
    if fault() == "refused" || session as usize != 7 || codec != H264 || size != (640, 360) {
        return INVALID_PARAM;
    }
    STATE.fetch_or(1, SeqCst);
    SUCCESS
}

unsafe extern "system" fn create_input(_: Handle, buffer: *mut u8) -> i32 {
    if !unsafe { has_version(buffer, 1 << 16) } || STATE.fetch_or(2, SeqCst) & 1 == 0 {
        return INVALID_PARAM;
    }
    unsafe { set(buffer, 24, INPUT) };
    SUCCESS
}

unsafe extern "system" fn create_bitstream(_: Handle, buffer: *mut u8) -> i32 {
    if !unsafe { has_version(buffer, 1 << 16) } || STATE.fetch_or(4, SeqCst) & 1 == 0 {
        return INVALID_PARAM;
    }
    unsafe { set(buffer, 16, OUTPUT) };
    SUCCESS
}

unsafe extern "system" fn lock_input(_: Handle, lock: *mut u8) -> i32 {
    if !unsafe { has_version(lock, 1 << 16) } || unsafe { u64_at(lock, 8) } != INPUT {
        return INVALID_PARAM;
    }
    let frame = Box::leak(vec![0_u8; PITCH * 540].into_boxed_slice()).as_mut_ptr();
    FRAME.store(frame as u64, SeqCst);
    unsafe {
        set(lock, 16, frame as u64);
        set(lock, 24, PITCH as u64);
    }
    SUCCESS
}

unsafe extern "system" fn unlock_input(_: Handle, buffer: u64) -> i32 {
    if buffer == INPUT { SUCCESS } else { INVALID_PARAM }
}

unsafe extern "system" fn encode(_: Handle, picture: *mut u8) -> i32 {
    if !unsafe { has_version(picture, 4 << 16 | 1 << 31) } {
        return INVALID_VERSION;
    }
    let buffers = unsafe { (u64_at(picture, 40), u64_at(picture, 48)) };
    let index = unsafe { u32_at(picture, 20) };
    // The last bytes of a frame with a gradient differ.
    let end = unsafe { (FRAME.load(SeqCst) as *const u8).add(PITCH * 540 - 2) };
    let is_drawn = unsafe { *end != *end.add(1) };
    let expected = buffers == (INPUT, OUTPUT) && STATE.load(SeqCst) == 7 && is_drawn;
    if !expected || index != FRAMES.fetch_add(1, SeqCst) {
        return INVALID_PARAM;
    }
    SUCCESS
}

unsafe extern "system" fn lock(_: Handle, lock: *mut u8) -> i32 {
    if !unsafe { has_version(lock, 1 << 16) } || unsafe { u64_at(lock, 8) } != OUTPUT {
        return INVALID_PARAM;
    }
    let size = if fault() == "empty" && FRAMES.load(SeqCst) == 4 { 0_u64 } else { 8 };
    let is_first = FRAMES.load(SeqCst) == 1 && fault() != "other-frame";
    let bytes = if is_first { &BITSTREAM } else { &OTHER_FRAME };
    unsafe {
        lock.add(36).cast::<u32>().write_unaligned(size as u32);
        set(lock, 56, bytes.as_ptr() as u64);
    }
    SUCCESS
}

unsafe extern "system" fn unlock(_: Handle, buffer: u64) -> i32 {
    if buffer == OUTPUT { SUCCESS } else { INVALID_PARAM }
}
