//! NVML: the GPUs that NVIDIA's driver manages.
#![allow(unsafe_code, reason = "calls NVIDIA's management library")]

use std::ffi::{c_char, c_void};
use std::ptr::null_mut;

use host::License;
use windows_report::nvml_license::{self, EarlierFeature, Features};

use crate::library::{self, Loaded, Symbols as _, functions, until_nul};
use crate::outcome::{DeviceInfo, Fault, Kind};
use crate::session::{Candidate, Devices, Refusal, Work};

pub(super) const NAMES: &[&str] =
    if cfg!(windows) { &["nvml.dll"] } else { &["libnvidia-ml.so.1"] };

// The results of `nvml.h` that the test distinguishes.
const DRIVER_NOT_LOADED: i32 = 9;
const VERSION_MISMATCH: i32 = 18;

/// `NVML_DEVICE_NAME_V2_BUFFER_SIZE`.
const NAME_SIZE: usize = 96;

type Device = *mut c_void;
/// `nvmlMemory_t`: the total, free and used bytes.
type Memory = [u64; 3];
type GetFeatures<F> = unsafe extern "system" fn(Device, *mut Features<F>) -> i32;

functions! {
    /// The functions of `nvml.h` that the test needs.
    Functions {
        init = "nvmlInit_v2" fn() -> i32;
        driver = "nvmlSystemGetDriverVersion" fn(*mut c_char, u32) -> i32;
        count = "nvmlDeviceGetCount_v2" fn(*mut u32) -> i32;
        device = "nvmlDeviceGetHandleByIndex_v2" fn(u32, *mut Device) -> i32;
        name = "nvmlDeviceGetName" fn(Device, *mut c_char, u32) -> i32;
        memory = "nvmlDeviceGetMemoryInfo" fn(Device, *mut Memory) -> i32;
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
    let candidates =
        (0..count).map(|index| candidate(&library, functions, index, driver.clone())).collect();
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

fn candidate(
    library: &Loaded,
    functions: Functions,
    index: u32,
    driver: Option<String>,
) -> Candidate {
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
    let [total, ..] = memory;
    let info = DeviceInfo {
        name: name.unwrap_or_else(|| format!("device {index}")),
        kind: Kind::Hardware,
        luid: None,
        driver,
        memory_bytes: has_memory.then_some(total),
        license: license(library, device),
    };
    Candidate { info, work: Work::Known(Ok(())) }
}

/// The license, if the driver needs one. Drivers without the functions do not report it.
fn license(library: &Loaded, device: Device) -> Option<License> {
    let newest = features(library, device, nvml_license::FUNCTION);
    let earlier = features::<EarlierFeature>(library, device, nvml_license::EARLIER_FUNCTION);
    let license = nvml_license::read(newest, earlier)?;
    (license != License::NOT_REQUIRED).then_some(license)
}

/// A call of the function `name`, which must fill this structure.
fn features<F>(
    library: &Loaded,
    device: Device,
    name: &'static str,
) -> Option<impl FnOnce(&mut Features<F>) -> i32> {
    let address = library.function(name).ok()?;
    // SAFETY: the callers name the function of `nvml.h` that fills their structure.
    let get: GetFeatures<F> = unsafe { std::mem::transmute(address) };
    // SAFETY: the handle comes from the library, and the structure is writable.
    Some(move |features: &mut Features<F>| unsafe { get(device, features) })
}

/// A text that `query` writes into a buffer of a given size.
fn text(query: impl Fn(*mut c_char, u32) -> i32) -> Option<String> {
    let mut bytes = [0_u8; NAME_SIZE];
    let size = u32::try_from(bytes.len()).ok()?;
    (query(bytes.as_mut_ptr().cast(), size) == 0).then(|| until_nul(&bytes))
}
