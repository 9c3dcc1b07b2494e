//! NVML: the GPUs that NVIDIA's driver manages, with their utilization.
#![allow(unsafe_code, reason = "calls NVIDIA's management library")]

use std::ffi::{c_char, c_void};
use std::ptr::null_mut;

use crate::library::{self, Loaded, functions, until_nul};
use crate::outcome::{DeviceInfo, Fault, Kind, Measurement};
use crate::session::{Candidate, Devices, Refusal, Work};

pub(super) const NAMES: &[&str] =
    if cfg!(windows) { &["nvml.dll"] } else { &["libnvidia-ml.so.1"] };

// The results of `nvml.h` that the test distinguishes.
const INSUFFICIENT_SIZE: i32 = 7;
const DRIVER_NOT_LOADED: i32 = 9;
const VERSION_MISMATCH: i32 = 18;

/// `NVML_DEVICE_NAME_V2_BUFFER_SIZE`.
const NAME_SIZE: usize = 96;

type Device = *mut c_void;
/// `nvmlMemory_t`: the total, free and used bytes.
type Memory = [u64; 3];
/// `nvmlUtilization_t`: the percentages of time in which the GPU and its memory were busy.
type Utilization = [u32; 2];

functions! {
    /// The functions of `nvml.h` that the test needs.
    Functions {
        init = "nvmlInit_v2" fn() -> i32;
        driver = "nvmlSystemGetDriverVersion" fn(*mut c_char, u32) -> i32;
        count = "nvmlDeviceGetCount_v2" fn(*mut u32) -> i32;
        device = "nvmlDeviceGetHandleByIndex_v2" fn(u32, *mut Device) -> i32;
        name = "nvmlDeviceGetName" fn(Device, *mut c_char, u32) -> i32;
        memory = "nvmlDeviceGetMemoryInfo" fn(Device, *mut Memory) -> i32;
        utilization = "nvmlDeviceGetUtilizationRates" fn(Device, *mut Utilization) -> i32;
        processes = "nvmlDeviceGetComputeRunningProcesses"
            fn(Device, *mut u32, *mut c_void) -> i32;
    }
}

/// Reads every device.
pub(super) fn list(library: Loaded) -> Result<Devices, Refusal> {
    let functions = Functions::load(&library)?;
    let count = count(functions)?;
    let driver = text(|buffer, size| {
        // SAFETY: `text` passes a buffer with its size.
        unsafe { (functions.driver)(buffer, size) }
    });
    let candidates = (0..count).map(|index| candidate(functions, index, driver.clone())).collect();
    Ok((driver.map(|driver| format!("driver {driver}")), candidates))
}

fn check(call: &str, status: i32) -> Result<(), Fault> {
    library::check(call, status).map_err(|fault| match status {
        DRIVER_NOT_LOADED => fault.hint("NVIDIA's driver does not run on the node"),
        VERSION_MISMATCH => fault.hint(
            "the container has an NVML of another driver version: remove it from the image, and \
             restart the container after the node's driver was replaced",
        ),
        _ => fault,
    })
}

fn count(functions: Functions) -> Result<u32, Fault> {
    // SAFETY: the function has no requirements.
    check("nvmlInit", unsafe { (functions.init)() })?;
    let mut count = 0;
    // SAFETY: NVML was initialized.
    check("nvmlDeviceGetCount", unsafe { (functions.count)(&raw mut count) })?;
    Ok(count)
}

fn candidate(functions: Functions, index: u32, driver: Option<String>) -> Candidate {
    let mut device = null_mut();
    // SAFETY: the index is less than the number of devices.
    let status = unsafe { (functions.device)(index, &raw mut device) };
    if let Err(fault) = check("nvmlDeviceGetHandleByIndex", status) {
        let info = DeviceInfo { name: format!("device {index}"), ..DeviceInfo::default() };
        return Candidate { info, work: Work::Known(Err(fault)) };
    }
    let name = text(|buffer, size| {
        // SAFETY: `text` passes a buffer with its size.
        unsafe { (functions.name)(device, buffer, size) }
    });
    let mut memory = Memory::default();
    // SAFETY: this version of the function writes this structure.
    let has_memory = unsafe { (functions.memory)(device, &raw mut memory) } == 0;
    let [total, _, in_use] = memory;
    let info = DeviceInfo {
        name: name.unwrap_or_else(|| format!("device {index}")),
        kind: Kind::Hardware,
        luid: None,
        driver,
        memory_bytes: has_memory.then_some(total),
    };
    let mut values = Vec::new();
    if has_memory {
        values.push(Measurement::new(
            "memory in use",
            f64::from(u32::try_from(in_use >> 20).unwrap_or(u32::MAX)),
            "MiB",
        ));
    }
    values.extend(load(functions, device));
    Candidate { info, work: Work::Known(Ok(values)) }
}

/// Utilization and processes. Display drivers for Windows report neither.
fn load(functions: Functions, device: Device) -> Vec<Measurement> {
    let mut values = Vec::new();
    let mut used = Utilization::default();
    // SAFETY: writes one structure.
    if unsafe { (functions.utilization)(device, &raw mut used) } == 0 {
        let [gpu, memory] = used;
        values.push(Measurement::new("GPU utilization", gpu.into(), "%"));
        values.push(Measurement::new("memory utilization", memory.into(), "%"));
    }
    let mut processes = 0;
    // SAFETY: with no room for processes, the function only counts them.
    let status = unsafe { (functions.processes)(device, &raw mut processes, null_mut()) };
    if status == 0 || status == INSUFFICIENT_SIZE {
        values.push(Measurement::new("compute processes", processes.into(), ""));
    }
    values
}

/// A text that `query` writes into a buffer of a given size.
fn text(query: impl Fn(*mut c_char, u32) -> i32) -> Option<String> {
    let mut bytes = [0_u8; NAME_SIZE];
    let size = u32::try_from(bytes.len()).ok()?;
    (query(bytes.as_mut_ptr().cast(), size) == 0).then(|| until_nul(&bytes))
}
