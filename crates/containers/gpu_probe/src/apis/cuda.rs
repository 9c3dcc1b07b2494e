//! CUDA's driver API: a kernel on every device.
#![allow(unsafe_code, reason = "calls the CUDA driver")]

use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr::{null, null_mut};

use crate::library::{Loaded, functions, until_nul};
use crate::outcome::{DeviceInfo, Fault, Kind};
use crate::session::{Candidate, Devices, Refusal, Work};
use crate::workload::{BYTES, GROUP, GROUPS, WORDS};

pub(super) const NAMES: &[&str] = if cfg!(windows) { &["nvcuda.dll"] } else { &["libcuda.so.1"] };

const SOURCE: &str = include_str!("../../kernels/mix.ptx");

// The errors of `cuda.h` that the test distinguishes.
const NO_DEVICE: i32 = 100;
const JIT_COMPILER_NOT_FOUND: i32 = 221;
const DRIVER_MISMATCH: i32 = 803;

/// A device's number.
type Device = i32;
/// A context, module or function of a module.
type Handle = *mut c_void;
/// An address in the device's memory.
type Address = u64;

functions! {
    /// The functions of `cuda.h` that the test needs.
    Functions {
        init = "cuInit" fn(u32) -> i32;
        error_name = "cuGetErrorName" fn(i32, *mut *const c_char) -> i32;
        version = "cuDriverGetVersion" fn(*mut i32) -> i32;
        count = "cuDeviceGetCount" fn(*mut i32) -> i32;
        device = "cuDeviceGet" fn(*mut Device, i32) -> i32;
        name = "cuDeviceGetName" fn(*mut c_char, i32, Device) -> i32;
        memory = "cuDeviceTotalMem_v2" fn(*mut usize, Device) -> i32;
        context = "cuCtxCreate_v2" fn(*mut Handle, u32, Device) -> i32;
        synchronize = "cuCtxSynchronize" fn() -> i32;
        module = "cuModuleLoadData" fn(*mut Handle, *const c_void) -> i32;
        function = "cuModuleGetFunction" fn(*mut Handle, Handle, *const c_char) -> i32;
        allocate = "cuMemAlloc_v2" fn(*mut Address, usize) -> i32;
        fill = "cuMemsetD32_v2" fn(Address, u32, usize) -> i32;
        to_host = "cuMemcpyDtoH_v2" fn(*mut c_void, Address, usize) -> i32;
        launch = "cuLaunchKernel" fn(Handle, u32, u32, u32, u32, u32, u32, u32, Handle,
            *mut *mut c_void, *mut *mut c_void) -> i32;
    }
}

functions! {
    /// The function that only drivers for Windows have.
    WindowsFunctions {
        luid = "cuDeviceGetLuid" fn(*mut c_char, *mut u32, Device) -> i32;
    }
}

/// What is known about a device, and its number.
type Described = (DeviceInfo, Result<Device, Fault>);

/// Lists every device, with a kernel on each.
pub(super) fn list(library: Loaded) -> Result<Devices, Refusal> {
    let functions = Functions::load(&library)?;
    let candidates = devices(&library, functions)?.into_iter().map(|(info, device)| Candidate {
        info,
        work: Work::kernel(move || compute(functions, device?)),
    });
    Ok((version(functions), candidates.collect()))
}

fn devices(library: &Loaded, functions: Functions) -> Result<Vec<Described>, Fault> {
    let luids = WindowsFunctions::load(library).ok();
    let mut devices = Vec::new();
    for ordinal in 0..count(functions)? {
        let mut device = 0;
        // SAFETY: the driver was initialized.
        let status = unsafe { (functions.device)(&raw mut device, ordinal) };
        let found = functions.check("cuDeviceGet", status).map(|()| device);
        devices.push((describe(functions, luids, device), found));
    }
    Ok(devices)
}

impl Functions {
    fn check(self, call: &str, status: i32) -> Result<(), Fault> {
        if status == 0 {
            return Ok(());
        }
        let mut text = null();
        // SAFETY: the function writes the address of a constant text, or null.
        let is_known = unsafe { (self.error_name)(status, &raw mut text) } == 0 && !text.is_null();
        let name = if is_known {
            // SAFETY: the text ends with a NUL and lives as long as the library.
            format!(" ({})", unsafe { CStr::from_ptr(text) }.to_string_lossy())
        } else {
            String::new()
        };
        let fault = Fault::new(format!("{call} failed with {status}{name}"));
        Err(match status {
            JIT_COMPILER_NOT_FOUND => fault.hint(concat!(
                "nvptxJITCompiler64.dll or libnvidia-ptxjitcompiler.so is missing: the driver's \
                 files are mounted only in part; see ",
                page!("runtime-files")
            )),
            DRIVER_MISMATCH => fault.hint(
                "the container has CUDA files of another driver version: remove them from the \
                 image, and restart the container after the node's driver was replaced",
            ),
            _ => fault,
        })
    }
}

fn count(functions: Functions) -> Result<i32, Fault> {
    // SAFETY: no flags are defined.
    let status = unsafe { (functions.init)(0) };
    if status == NO_DEVICE {
        return Ok(0);
    }
    functions.check("cuInit", status)?;
    let mut count = 0;
    // SAFETY: the driver was initialized.
    functions.check("cuDeviceGetCount", unsafe { (functions.count)(&raw mut count) })?;
    Ok(count)
}

fn version(functions: Functions) -> Option<String> {
    let mut version = 0;
    // SAFETY: writes one number.
    let status = unsafe { (functions.version)(&raw mut version) };
    (status == 0).then(|| format!("CUDA {}.{}", version / 1000, version % 1000 / 10))
}

fn describe(functions: Functions, luids: Option<WindowsFunctions>, device: Device) -> DeviceInfo {
    let mut name = [0_u8; 256];
    // SAFETY: the buffer has this length, and the driver ends the name with a NUL.
    let has_name = unsafe { (functions.name)(name.as_mut_ptr().cast(), 256, device) } == 0;
    let mut memory = 0;
    // SAFETY: writes one number.
    let has_memory = unsafe { (functions.memory)(&raw mut memory, device) } == 0;
    let luid = luids.and_then(|functions| {
        let mut luid = [0_u8; 8];
        let mut nodes = 0;
        // SAFETY: a LUID has eight bytes.
        let status = unsafe { (functions.luid)(luid.as_mut_ptr().cast(), &raw mut nodes, device) };
        (status == 0).then(|| i64::from_le_bytes(luid))
    });
    DeviceInfo {
        name: if has_name { until_nul(&name) } else { String::new() },
        kind: Kind::Hardware,
        // Compute-only drivers and drivers for Linux write zeros.
        luid: luid.filter(|luid| *luid != 0),
        driver: None,
        memory_bytes: has_memory.then_some(memory as u64),
        license: None,
    }
}

/// Runs the kernel on a device, and returns the words that it wrote.
fn compute(functions: Functions, device: Device) -> Result<Vec<u32>, Fault> {
    let mut context = null_mut();
    // SAFETY: the device was listed. The calls below use the new context.
    let status = unsafe { (functions.context)(&raw mut context, 0, device) };
    functions.check("cuCtxCreate", status)?;
    let kernel = kernel(functions)?;
    let mut address = 0;
    // SAFETY: a context is current.
    let status = unsafe { (functions.allocate)(&raw mut address, BYTES) };
    functions.check("cuMemAlloc", status)?;
    // SAFETY: the allocation has this many words.
    functions.check("cuMemsetD32", unsafe { (functions.fill)(address, 0, WORDS) })?;
    launch(functions, kernel, address)?;
    // SAFETY: a context is current.
    functions.check("cuCtxSynchronize", unsafe { (functions.synchronize)() })?;
    let mut words = vec![0_u32; WORDS];
    // SAFETY: both have this many bytes.
    let status = unsafe { (functions.to_host)(words.as_mut_ptr().cast(), address, BYTES) };
    functions.check("cuMemcpyDtoH", status)?;
    Ok(words)
}

/// The kernel, which the driver compiles for the device of the current context.
fn kernel(functions: Functions) -> Result<Handle, Fault> {
    let source = CString::new(SOURCE).map_err(|error| Fault::new(error.to_string()))?;
    let mut module = null_mut();
    // SAFETY: PTX is a text that ends with a NUL.
    let status = unsafe { (functions.module)(&raw mut module, source.as_ptr().cast()) };
    functions.check("cuModuleLoadData", status)?;
    let mut kernel = null_mut();
    let name = c"mix_words".as_ptr();
    // SAFETY: the module was loaded, and the name ends with a NUL.
    let status = unsafe { (functions.function)(&raw mut kernel, module, name) };
    functions.check("cuModuleGetFunction", status)?;
    Ok(kernel)
}

/// Starts the kernel, which writes [`WORDS`] words at `address`.
fn launch(functions: Functions, kernel: Handle, mut address: Address) -> Result<(), Fault> {
    let mut arguments = [(&raw mut address).cast::<c_void>()];
    // SAFETY: the kernel has one argument, an address with room for a word per thread. The driver
    // copies the argument during the call.
    let status = unsafe {
        (functions.launch)(
            kernel,
            GROUPS,
            1,
            1,
            GROUP,
            1,
            1,
            0,
            null_mut(),
            arguments.as_mut_ptr(),
            null_mut(),
        )
    };
    functions.check("cuLaunchKernel", status)
}
