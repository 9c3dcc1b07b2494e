//! The functions of NVIDIA's management library that the programs call. They report the GPUs of
//! which the inventory says what NVML reports.
#![allow(unsafe_code, reason = "other programs call the exports with raw pointers")]

use std::ffi::c_void;
use std::sync::Arc;

use host::{Adapter, License, LicenseState, Luid, NvidiaFacts};
use windows_report::nvml_license::{EarlierFeature, Expiry, Feature, Features, Return};

use crate::doubled_host::{Host, host};

const SUCCESS: Return = 0;
const NOT_SUPPORTED: Return = 3;
const NOT_FOUND: Return = 6;
const UNINITIALIZED: Return = 1;
const INVALID_ARGUMENT: Return = 2;
const GPU_IS_LOST: Return = 15;
/// `NVML_GRID_LICENSE_EXPIRY_VALID` and `NVML_GRID_LICENSE_EXPIRY_PERMANENT`.
const EXPIRY: [u8; 2] = [2, 4];

/// `nvmlDevice_t`: the LUID of the adapter.
type Device = *mut c_void;

/// `nvmlPciInfo_t`.
#[repr(C)]
struct PciInfo {
    bus_id_legacy: [u8; 16],
    domain: u32,
    bus: u32,
    device: u32,
    pci_device_id: u32,
    pci_subsystem_id: u32,
    bus_id: [u8; 32],
}

fn gpus() -> Vec<Arc<Adapter>> {
    let mut adapters = host().map(Host::adapters).unwrap_or_default();
    adapters.retain(|adapter| adapter.nvidia != NvidiaFacts::default());
    adapters
}

/// Calls `report` with the GPU of a handle.
fn with(device: Device, report: impl FnOnce(&Adapter) -> Return) -> Return {
    let luid = Luid(device.expose_provenance().cast_signed() as i64);
    let gpus = gpus();
    gpus.iter().find(|gpu| gpu.luid == luid).map_or(NOT_FOUND, |gpu| report(gpu))
}

/// The file with the fault of the library. A process that asks it gets no variables of a test.
const FAULT: &str = r"C:\nvml-fault.txt";

/// How much a library with the fault `leaks` loses in each process.
const LEAK: usize = 512 << 20;

/// Whether the library has this fault.
fn has_fault(name: &str) -> bool {
    std::fs::read_to_string(FAULT).is_ok_and(|fault| fault == name)
}

#[unsafe(no_mangle)]
extern "C" fn nvmlInit_v2() -> Return {
    if has_fault("needs-flags") {
        return UNINITIALIZED;
    }
    if has_fault("crashes") {
        // SAFETY: not sound on purpose: no process may write to the first page of its memory.
        unsafe { std::ptr::without_provenance_mut::<u8>(8).write_volatile(1) };
    }
    if has_fault("leaks") {
        std::mem::forget(std::hint::black_box(vec![1_u8; LEAK]));
    }
    if has_fault("prints") {
        print!("{}", "a driver prints much\n".repeat(1000));
        print!("and half a line");
    }
    while has_fault("hangs") {
        std::thread::sleep(std::time::Duration::from_mins(1));
    }
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn nvmlInitWithFlags(flags: u32) -> Return {
    if flags == 0 { SUCCESS } else { INVALID_ARGUMENT }
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetCount_v2(count: *mut u32) -> Return {
    // SAFETY: the caller passes a writable number.
    unsafe { count.write(u32::try_from(gpus().len()).unwrap_or(0)) };
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetHandleByIndex_v2(index: u32, device: *mut Device) -> Return {
    if index == 0 && has_fault("loses-first-gpu") {
        return GPU_IS_LOST;
    }
    let gpus = gpus();
    let Some(gpu) = gpus.get(index as usize) else { return NOT_FOUND };
    let Ok(luid) = usize::try_from(gpu.luid.0) else { return NOT_FOUND };
    // SAFETY: the caller passes a writable handle.
    unsafe { device.write(std::ptr::with_exposed_provenance_mut(luid)) };
    SUCCESS
}

/// The addresses are those that `wine_bed` gives the devices: parts of the LUID.
#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetPciInfo_v3(device: Device, info: *mut PciInfo) -> Return {
    with(device, |gpu| {
        let luid = gpu.luid.0.cast_unsigned();
        let info_of_gpu = PciInfo {
            bus_id_legacy: [0; 16],
            domain: 0,
            bus: (luid & 0xFF) as u32,
            device: (luid >> 8 & 0x1F) as u32,
            pci_device_id: 0,
            pci_subsystem_id: 0,
            bus_id: [0; 32],
        };
        // SAFETY: the caller passes a writable structure.
        unsafe { info.write(info_of_gpu) };
        SUCCESS
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetUUID(device: Device, text: *mut u8, length: u32) -> Return {
    with(device, |gpu| {
        let uuid = format!("GPU-{}\0", gpu.luid);
        assert!(uuid.len() <= length as usize, "the caller's buffer is too small");
        // SAFETY: the caller passes a buffer of this length.
        unsafe { text.copy_from_nonoverlapping(uuid.as_ptr(), uuid.len()) };
        SUCCESS
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetCudaComputeCapability(
    device: Device,
    major: *mut i32,
    minor: *mut i32,
) -> Return {
    with(device, |gpu| {
        let Some(capability) = gpu.nvidia.compute_capability else { return NOT_SUPPORTED };
        // SAFETY: the caller passes a writable number.
        unsafe { major.write(capability.major.cast_signed()) };
        // SAFETY: as above.
        unsafe { minor.write(capability.minor.cast_signed()) };
        SUCCESS
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetGridLicensableFeatures_v4(
    device: Device,
    features: *mut Features,
) -> Return {
    with(device, |gpu| {
        let Some(license) = gpu.nvidia.license else { return NOT_FOUND };
        // SAFETY: the caller passes a writable structure.
        unsafe { features.write(licensable(license)) };
        SUCCESS
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetGridLicensableFeatures_v3(
    device: Device,
    features: *mut Features<EarlierFeature>,
) -> Return {
    with(device, |gpu| {
        let Some(license) = gpu.nvidia.license else { return NOT_FOUND };
        let Features { is_supported, count, features: found } = licensable(license);
        let found = Features { is_supported, count, features: found.map(|found| found.earlier) };
        // SAFETY: the caller passes a writable structure.
        unsafe { features.write(found) };
        SUCCESS
    })
}

/// A license as NVML reports it. The first feature is not the one that is enabled.
fn licensable(license: License) -> Features {
    let is_required = license.state != LicenseState::NotRequired;
    let [valid, permanent] = EXPIRY;
    let [year, month, day, hour, minute, second] =
        license.expires.map(|time| numbers(&time.to_string())).unwrap_or_default();
    let status = if license.expires.is_some() { valid } else { permanent };
    let feature = Feature {
        earlier: EarlierFeature {
            code: 2,
            state: (license.state == LicenseState::Licensed).into(),
            enabled: is_required.into(),
            ..EarlierFeature::default()
        },
        expiry: Expiry { year: year.into(), month, day, hour, minute, second, status },
    };
    Features {
        is_supported: is_required.into(),
        count: 2,
        features: [Feature::default(), feature, Feature::default()],
    }
}

/// The numbers in a time.
fn numbers(time: &str) -> [u16; 6] {
    let mut numbers = time.split(|c: char| !c.is_ascii_digit()).map_while(|n| n.parse().ok());
    std::array::from_fn(|_| numbers.next().unwrap_or(0))
}
