//! CUDA's driver API: a kernel, Monte Carlo π and copies on every device.
#![allow(unsafe_code, reason = "calls the CUDA driver")]

use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr::{null, null_mut};
use std::time::Instant;

use crate::library::{Loaded, functions, until_nul};
use crate::outcome::{DeviceInfo, Fault, Kind, Measurement};
use crate::session::{Candidate, Devices, Kernel, Refusal, Work};
use crate::workload::{self, BYTES, GROUP, GROUPS, WORDS};

pub(super) const NAMES: &[&str] = if cfg!(windows) { &["nvcuda.dll"] } else { &["libcuda.so.1"] };

const SOURCE: &str = include_str!("../../kernels/mix.ptx");

// The errors of `cuda.h` that the test distinguishes.
const NO_DEVICE: i32 = 100;
const JIT_COMPILER_NOT_FOUND: i32 = 221;
const DRIVER_MISMATCH: i32 = 803;

/// The size of the copies that are measured.
const COPY: u32 = 64 << 20;
/// [`COPY`] in the type of the driver's functions.
const COPY_BYTES: usize = COPY as usize;
/// How often each copy is repeated.
const COPIES: u32 = 8;

/// A device's number.
type Device = i32;
/// A context, module or function.
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
        set_context = "cuCtxSetCurrent" fn(Handle) -> i32;
        synchronize = "cuCtxSynchronize" fn() -> i32;
        module = "cuModuleLoadData" fn(*mut Handle, *const c_void) -> i32;
        function = "cuModuleGetFunction" fn(*mut Handle, Handle, *const c_char) -> i32;
        allocate = "cuMemAlloc_v2" fn(*mut Address, usize) -> i32;
        fill = "cuMemsetD32_v2" fn(Address, u32, usize) -> i32;
        to_device = "cuMemcpyHtoD_v2" fn(Address, *const c_void, usize) -> i32;
        to_host = "cuMemcpyDtoH_v2" fn(*mut c_void, Address, usize) -> i32;
        on_device = "cuMemcpyDtoD_v2" fn(Address, Address, usize) -> i32;
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
        work: Work::kernel(move || Computation::open(functions, device?)),
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
    fn create_context(self, device: Device) -> Result<Handle, Fault> {
        let mut context = null_mut();
        // SAFETY: the device was listed. The new context is current until another one is.
        let status = unsafe { (self.context)(&raw mut context, 0, device) };
        self.check("cuCtxCreate", status)?;
        Ok(context)
    }

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
        let (mut luid, mut nodes) = ([0_u8; 8], 0);
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
    }
}

/// The kernels on a device.
struct Computation {
    functions: Functions,
    context: Handle,
    mix: Handle,
    monte_carlo: Handle,
    words: Address,
}

impl Computation {
    fn open(functions: Functions, device: Device) -> Result<Computation, Fault> {
        let context = functions.create_context(device)?;
        let mut module = null_mut();
        let source = CString::new(SOURCE).map_err(|error| Fault::new(error.to_string()))?;
        // SAFETY: PTX is a text that ends with a NUL.
        let status = unsafe { (functions.module)(&raw mut module, source.as_ptr().cast()) };
        functions.check("cuModuleLoadData", status)?;
        let mix = kernel(functions, module, c"mix_words")?;
        let monte_carlo = kernel(functions, module, c"monte_carlo")?;
        let words = allocate(functions, BYTES)?;
        Ok(Computation { functions, context, mix, monte_carlo, words })
    }

    fn select(&self) -> Result<(), Fault> {
        // SAFETY: the context is never destroyed.
        let status = unsafe { (self.functions.set_context)(self.context) };
        self.functions.check("cuCtxSetCurrent", status)
    }

    fn synchronize(&self) -> Result<(), Fault> {
        // SAFETY: a context is current.
        self.functions.check("cuCtxSynchronize", unsafe { (self.functions.synchronize)() })
    }

    fn execute(&self, kernel: Handle, repeats: u32) -> Result<Vec<u32>, Fault> {
        let functions = self.functions;
        self.select()?;
        // SAFETY: the allocation has this many words.
        functions.check("cuMemsetD32", unsafe { (functions.fill)(self.words, 0, WORDS) })?;
        let mut address = self.words;
        let mut arguments = [(&raw mut address).cast::<c_void>()];
        for _ in 0..repeats {
            // SAFETY: the kernel has one argument, an address with room for a word per thread.
            let status = unsafe {
                let (launch, arguments) = (functions.launch, arguments.as_mut_ptr());
                launch(kernel, GROUPS, 1, 1, GROUP, 1, 1, 0, null_mut(), arguments, null_mut())
            };
            functions.check("cuLaunchKernel", status)?;
        }
        self.synchronize()?;
        let mut words = vec![0_u32; WORDS];
        // SAFETY: both have this many bytes.
        let status = unsafe { (functions.to_host)(words.as_mut_ptr().cast(), self.words, BYTES) };
        functions.check("cuMemcpyDtoH", status)?;
        Ok(words)
    }

    /// Estimates π with points whose coordinates the device computes.
    fn pi(&self) -> Result<Measurement, Fault> {
        let hits = self.execute(self.monte_carlo, 1)?;
        workload::verify_hits(&hits)?;
        Ok(Measurement::new("Monte Carlo π", workload::pi(&hits), ""))
    }

    /// Copies to the device, on it and back, and compares what arrives.
    fn bandwidth(&self) -> Result<[Measurement; 3], Fault> {
        let functions = self.functions;
        let (from, to) = (allocate(functions, COPY_BYTES)?, allocate(functions, COPY_BYTES)?);
        let sent: Vec<u32> = workload::expected()
            .iter()
            .copied()
            .cycle()
            .take(COPY_BYTES / size_of::<u32>())
            .collect();
        let mut received = vec![0_u32; sent.len()];
        // SAFETY: here and below, both sides have this many bytes.
        let sending = self.rate("to device", "cuMemcpyHtoD", 1, || unsafe {
            (functions.to_device)(from, sent.as_ptr().cast(), COPY_BYTES)
        })?;
        // A copy on the device reads and writes.
        let copying = self.rate("on device", "cuMemcpyDtoD", 2, || unsafe {
            (functions.on_device)(to, from, COPY_BYTES)
        })?;
        let receiving = self.rate("to host", "cuMemcpyDtoH", 1, || unsafe {
            (functions.to_host)(received.as_mut_ptr().cast(), to, COPY_BYTES)
        })?;
        if received != sent {
            return Err(Fault::new(
                "wrong result: memory that was copied to the device and back differs",
            )
            .hint("check the device's memory"));
        }
        Ok([sending, copying, receiving])
    }

    fn rate(
        &self,
        name: &str,
        call: &str,
        transfers: u32,
        mut copy: impl FnMut() -> i32,
    ) -> Result<Measurement, Fault> {
        let start = Instant::now();
        for _ in 0..COPIES {
            self.functions.check(call, copy())?;
        }
        self.synchronize()?;
        let copied = f64::from(COPIES * transfers) * f64::from(COPY);
        Ok(Measurement::new(name, copied / start.elapsed().as_secs_f64().max(1e-9) / 1e9, "GB/s"))
    }
}

/// The kernel with this name, in a loaded module.
fn kernel(functions: Functions, module: Handle, name: &CStr) -> Result<Handle, Fault> {
    let mut kernel = null_mut();
    // SAFETY: the module was loaded, and the name ends with a NUL.
    let status = unsafe { (functions.function)(&raw mut kernel, module, name.as_ptr()) };
    functions.check("cuModuleGetFunction", status)?;
    Ok(kernel)
}

fn allocate(functions: Functions, size: usize) -> Result<Address, Fault> {
    let mut address = 0;
    // SAFETY: a context is current.
    let status = unsafe { (functions.allocate)(&raw mut address, size) };
    functions.check("cuMemAlloc", status)?;
    Ok(address)
}

impl Kernel for Computation {
    fn run(&mut self, repeats: u32) -> Result<Vec<u32>, Fault> {
        self.execute(self.mix, repeats)
    }

    fn further_tests(&mut self) -> Result<Vec<Measurement>, Fault> {
        let pi = self.pi()?;
        Ok([vec![pi], self.bandwidth()?.into()].concat())
    }
}
