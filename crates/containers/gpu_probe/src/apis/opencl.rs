//! `OpenCL`: a kernel on every device of every platform.
#![allow(unsafe_code, reason = "calls the OpenCL loader")]

use std::ffi::{c_char, c_void};
use std::ptr::{null, null_mut};

use crate::library::{self, Loaded, functions, until_nul};
use crate::outcome::{DeviceInfo, Fault, Kind};
use crate::session::{Candidate, Devices, Refusal, Work};
use crate::workload::{BYTES, GROUP, WORDS};

pub(super) const NAMES: &[&str] = if cfg!(windows) { &["OpenCL.dll"] } else { &["libOpenCL.so.1"] };

const SOURCE: &str = include_str!("../../kernels/mix.cl");

/// A platform, device, context, queue, program, kernel or buffer.
type Handle = *mut c_void;

// The values of `CL/cl.h` and `CL/cl_ext.h`.
const PLATFORM_VERSION: u32 = 0x0901;
const DEVICE_TYPE_ALL: u64 = 0xffff_ffff;
const DEVICE_TYPE_CPU: u64 = 1 << 1;
const DEVICE_TYPE: u32 = 0x1000;
const DEVICE_NAME: u32 = 0x102b;
const DEVICE_GLOBAL_MEMORY_SIZE: u32 = 0x101f;
const DRIVER_VERSION: u32 = 0x102d;
const DEVICE_LUID_VALID: u32 = 0x106c;
const DEVICE_LUID: u32 = 0x106d;
const PROGRAM_BUILD_LOG: u32 = 0x1183;
const MEMORY_READ_WRITE: u64 = 1;
const DEVICE_NOT_FOUND: i32 = -1;
const PLATFORM_NOT_FOUND: i32 = -1001;
const TRUE: u32 = 1;

functions! {
    /// The functions of `CL/cl.h` that the test needs. Callbacks and lists of events are null.
    Functions {
        platforms = "clGetPlatformIDs" fn(u32, *mut Handle, *mut u32) -> i32;
        platform_info = "clGetPlatformInfo" fn(Handle, u32, usize, *mut c_void, *mut usize) -> i32;
        devices = "clGetDeviceIDs" fn(Handle, u64, u32, *mut Handle, *mut u32) -> i32;
        device_info = "clGetDeviceInfo" fn(Handle, u32, usize, *mut c_void, *mut usize) -> i32;
        context = "clCreateContext"
            fn(*const isize, u32, *const Handle, *const c_void, *const c_void, *mut i32) -> Handle;
        queue = "clCreateCommandQueue" fn(Handle, Handle, u64, *mut i32) -> Handle;
        program = "clCreateProgramWithSource"
            fn(Handle, u32, *const *const c_char, *const usize, *mut i32) -> Handle;
        build = "clBuildProgram"
            fn(Handle, u32, *const Handle, *const c_char, *const c_void, *const c_void) -> i32;
        build_info = "clGetProgramBuildInfo"
            fn(Handle, Handle, u32, usize, *mut c_void, *mut usize) -> i32;
        kernel = "clCreateKernel" fn(Handle, *const c_char, *mut i32) -> Handle;
        buffer = "clCreateBuffer" fn(Handle, u64, usize, *mut c_void, *mut i32) -> Handle;
        argument = "clSetKernelArg" fn(Handle, u32, usize, *const c_void) -> i32;
        write = "clEnqueueWriteBuffer" fn(Handle, Handle, u32, usize, usize, *const c_void, u32,
            *const Handle, *mut Handle) -> i32;
        enqueue = "clEnqueueNDRangeKernel" fn(Handle, Handle, u32, *const usize, *const usize,
            *const usize, u32, *const Handle, *mut Handle) -> i32;
        read = "clEnqueueReadBuffer" fn(Handle, Handle, u32, usize, usize, *mut c_void, u32,
            *const Handle, *mut Handle) -> i32;
    }
}

/// Lists every device, with a kernel on each.
pub(super) fn list(library: Loaded) -> Result<Devices, Refusal> {
    let functions = Functions::load(&library)?;
    // SAFETY: here and below, `handles` passes a list with its length.
    let platforms =
        handles("clGetPlatformIDs", PLATFORM_NOT_FOUND, |length, list, count| unsafe {
            (functions.platforms)(length, list, count)
        })?;
    let mut candidates = Vec::new();
    let mut versions = Vec::new();
    for platform in platforms {
        let version = text(|size, value, needed| {
            // SAFETY: the platform was listed, and `text` passes a buffer with its size.
            unsafe { (functions.platform_info)(platform, PLATFORM_VERSION, size, value, needed) }
        });
        versions.extend(version);
        // SAFETY: as above; the platform was listed.
        let devices = handles("clGetDeviceIDs", DEVICE_NOT_FOUND, |length, list, count| unsafe {
            (functions.devices)(platform, DEVICE_TYPE_ALL, length, list, count)
        })?;
        candidates.extend(devices.into_iter().map(|device| Candidate {
            info: describe(functions, device),
            work: Work::kernel(move || Computation::open(functions, device)?.run()),
        }));
    }
    Ok(((!versions.is_empty()).then(|| versions.join(" and ")), candidates))
}

fn check(call: &str, status: i32) -> Result<(), Fault> {
    library::check(call, status)
        .map_err(|fault| Fault::new(format!("{}{}", fault.message, name(status))))
}

/// The names of the most frequent errors.
fn name(status: i32) -> &'static str {
    match status {
        -2 => " (CL_DEVICE_NOT_AVAILABLE)",
        -3 => " (CL_COMPILER_NOT_AVAILABLE)",
        -4 => " (CL_MEM_OBJECT_ALLOCATION_FAILURE)",
        -5 => " (CL_OUT_OF_RESOURCES)",
        -6 => " (CL_OUT_OF_HOST_MEMORY)",
        -11 => " (CL_BUILD_PROGRAM_FAILURE)",
        _ => "",
    }
}

/// A list. The first call of `get` returns its length, and the status `none` if it is empty.
fn handles(
    call: &str,
    none: i32,
    get: impl Fn(u32, *mut Handle, *mut u32) -> i32,
) -> Result<Vec<Handle>, Fault> {
    let mut count = 0;
    let status = get(0, null_mut(), &raw mut count);
    if status == none || (status == 0 && count == 0) {
        return Ok(Vec::new());
    }
    check(call, status)?;
    let mut found = vec![null_mut(); count as usize];
    check(call, get(count, found.as_mut_ptr(), null_mut()))?;
    Ok(found)
}

/// A text that `query` writes into a buffer. Its first call returns the size of the buffer.
fn text(query: impl Fn(usize, *mut c_void, *mut usize) -> i32) -> Option<String> {
    let mut size = 0;
    if query(0, null_mut(), &raw mut size) != 0 {
        return None;
    }
    let mut bytes = vec![0_u8; size];
    if query(size, bytes.as_mut_ptr().cast(), null_mut()) != 0 {
        return None;
    }
    Some(until_nul(&bytes).trim().to_owned())
}

fn describe(functions: Functions, device: Handle) -> DeviceInfo {
    let kind = functions.device_bytes(device, DEVICE_TYPE, 8).map_or(0, u64::from_le_bytes);
    // Devices without the extension cl_khr_device_uuid refuse the two queries.
    let has_luid =
        functions.device_bytes(device, DEVICE_LUID_VALID, 4).is_some_and(|value| value[0] != 0);
    let luid = if has_luid { functions.device_bytes(device, DEVICE_LUID, 8) } else { None };
    let memory = functions.device_bytes(device, DEVICE_GLOBAL_MEMORY_SIZE, 8);
    DeviceInfo {
        name: functions.device_text(device, DEVICE_NAME).unwrap_or_default(),
        kind: if kind & DEVICE_TYPE_CPU == 0 { Kind::Hardware } else { Kind::Software },
        luid: luid.map(i64::from_le_bytes),
        driver: functions.device_text(device, DRIVER_VERSION),
        memory_bytes: memory.map(u64::from_le_bytes),
        license: None,
    }
}

impl Functions {
    /// A text that describes a device.
    fn device_text(self, device: Handle, key: u32) -> Option<String> {
        text(|size, value, needed| {
            // SAFETY: the device was listed, and `text` passes a buffer with its size.
            unsafe { (self.device_info)(device, key, size, value, needed) }
        })
    }

    /// A value of at most eight bytes that describes a device; zeros follow it.
    fn device_bytes(self, device: Handle, key: u32, size: usize) -> Option<[u8; 8]> {
        let mut value = [0_u8; 8];
        // SAFETY: the buffer has at least `size` bytes.
        let status =
            unsafe { (self.device_info)(device, key, size, value.as_mut_ptr().cast(), null_mut()) };
        (status == 0).then_some(value)
    }
}

/// The kernel on a device.
struct Computation {
    functions: Functions,
    queue: Handle,
    kernel: Handle,
    buffer: Handle,
}

impl Computation {
    fn open(functions: Functions, device: Handle) -> Result<Computation, Fault> {
        let mut status = 0;
        // SAFETY: here and below, handles come from earlier calls and are never released, and
        // pointers are valid during the call.
        let context = unsafe {
            let devices = &raw const device;
            (functions.context)(null(), 1, devices, null(), null(), &raw mut status)
        };
        check("clCreateContext", status)?;
        // SAFETY: as above.
        let queue = unsafe { (functions.queue)(context, device, 0, &raw mut status) };
        check("clCreateCommandQueue", status)?;
        let program = build(functions, context, device)?;
        // SAFETY: as above; the name ends with a NUL.
        let kernel = unsafe { (functions.kernel)(program, c"mix_words".as_ptr(), &raw mut status) };
        check("clCreateKernel", status)?;
        // SAFETY: as above.
        let buffer = unsafe {
            (functions.buffer)(context, MEMORY_READ_WRITE, BYTES, null_mut(), &raw mut status)
        };
        check("clCreateBuffer", status)?;
        let argument = (&raw const buffer).cast();
        // SAFETY: as above; the kernel's only argument is a buffer.
        let status = unsafe { (functions.argument)(kernel, 0, size_of::<Handle>(), argument) };
        check("clSetKernelArg", status)?;
        Ok(Computation { functions, queue, kernel, buffer })
    }

    fn run(&self) -> Result<Vec<u32>, Fault> {
        let Computation { functions, queue, kernel, buffer } = *self;
        let mut words = vec![0_u32; WORDS];
        // SAFETY: the call returns when the words are copied.
        let status = unsafe {
            let source = words.as_ptr().cast();
            (functions.write)(queue, buffer, TRUE, 0, BYTES, source, 0, null(), null_mut())
        };
        check("clEnqueueWriteBuffer", status)?;
        let global = WORDS;
        let local = GROUP as usize;
        // SAFETY: one dimension, whose size is a multiple of the group's.
        let status = unsafe {
            let global = &raw const global;
            let local = &raw const local;
            (functions.enqueue)(queue, kernel, 1, null(), global, local, 0, null(), null_mut())
        };
        check("clEnqueueNDRangeKernel", status)?;
        // SAFETY: the call returns when the words are written, and there is room for them.
        let status = unsafe {
            let target = words.as_mut_ptr().cast();
            (functions.read)(queue, buffer, TRUE, 0, BYTES, target, 0, null(), null_mut())
        };
        check("clEnqueueReadBuffer", status)?;
        Ok(words)
    }
}

fn build(functions: Functions, context: Handle, device: Handle) -> Result<Handle, Fault> {
    let source = SOURCE.as_ptr().cast::<c_char>();
    let length = SOURCE.len();
    let mut status = 0;
    // SAFETY: one source with its length.
    let program = unsafe {
        let sources = &raw const source;
        let lengths = &raw const length;
        (functions.program)(context, 1, sources, lengths, &raw mut status)
    };
    check("clCreateProgramWithSource", status)?;
    // SAFETY: the device belongs to the program's context.
    let status =
        unsafe { (functions.build)(program, 1, &raw const device, c"".as_ptr(), null(), null()) };
    check("clBuildProgram", status).map_err(|fault| {
        let log = text(|size, value, needed| {
            // SAFETY: `text` passes a buffer with its size.
            unsafe {
                (functions.build_info)(program, device, PROGRAM_BUILD_LOG, size, value, needed)
            }
        });
        match log {
            Some(log) if !log.is_empty() => Fault::new(format!("{}: {log}", fault.message)),
            _ => fault,
        }
    })?;
    Ok(program)
}
