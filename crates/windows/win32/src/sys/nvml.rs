//! NVIDIA's management library, loaded from a driver's folder.
#![allow(unsafe_code, reason = "calls nvml.dll")]

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::io;
use std::ptr;
use windows_report::gpu_uuids::{Gpu, PciAddress};

use super::library::Library;

/// `nvmlReturn_t`; 0 is success.
type Return = c_int;
/// `nvmlDevice_t`.
type Device = *mut c_void;

/// `nvmlPciInfo_t`, in the version that `nvmlDeviceGetPciInfo_v3` fills (nvml.h).
#[repr(C)]
#[derive(Default)]
struct PciInfo {
    bus_id_legacy: [u8; 16],
    domain: c_uint,
    bus: c_uint,
    device: c_uint,
    pci_device_id: c_uint,
    pci_subsystem_id: c_uint,
    bus_id: [u8; 32],
}

/// `NVML_DEVICE_UUID_V2_BUFFER_SIZE` (nvml.h).
const UUID_BYTES: c_uint = 96;

type Call = unsafe extern "C" fn() -> Return;
type Count = unsafe extern "C" fn(*mut c_uint) -> Return;
type HandleByIndex = unsafe extern "C" fn(c_uint, *mut Device) -> Return;
type GetPciInfo = unsafe extern "C" fn(Device, *mut PciInfo) -> Return;
type GetUuid = unsafe extern "C" fn(Device, *mut c_char, c_uint) -> Return;

/// The initialized library; dropping it shuts the library down. It stays loaded: NVIDIA does not
/// promise that it can be unloaded, and a process that does so again and again may crash.
pub(crate) struct Nvml {
    shutdown: Call,
    library: Library,
}

impl Drop for Nvml {
    fn drop(&mut self) {
        // SAFETY: the library is initialized.
        let _ = unsafe { (self.shutdown)() };
    }
}

impl Nvml {
    /// Loads the library from the first of `folders` that contains it, or else from System32,
    /// where NVIDIA's installer also puts it.
    pub(crate) fn load<'a>(folders: impl Iterator<Item = &'a str>) -> io::Result<Self> {
        let names = folders.flat_map(|folder| {
            ["nvml.dll", "nvml_loader.dll"].map(|name| format!(r"{folder}\{name}"))
        });
        let mut libraries = names.filter_map(|path| Library::at(&path).ok());
        let library = match libraries.next() {
            Some(library) => library,
            None => Library::system("nvml.dll")?,
        };
        // SAFETY: the type is the one nvml.h declares.
        let init: Call = unsafe { library.function(c"nvmlInit_v2") }?;
        // SAFETY: as above.
        let shutdown = unsafe { library.function(c"nvmlShutdown") }?;
        // SAFETY: the function takes no arguments and may be called repeatedly.
        check("nvmlInit_v2", unsafe { init() })?;
        Ok(Self { shutdown, library })
    }

    /// Every GPU that the driver can access. A GPU that cannot be queried is skipped.
    pub(crate) fn gpus(&self) -> io::Result<Vec<Gpu>> {
        // SAFETY: the type is the one nvml.h declares.
        let count: Count = unsafe { self.library.function(c"nvmlDeviceGetCount_v2") }?;
        let mut gpus = 0;
        // SAFETY: the argument points to a writable number.
        check("nvmlDeviceGetCount_v2", unsafe { count(&raw mut gpus) })?;
        Ok((0..gpus).filter_map(|index| self.gpu(index).ok()).collect())
    }

    fn gpu(&self, index: c_uint) -> io::Result<Gpu> {
        // SAFETY: the type is the one nvml.h declares.
        let by_index: HandleByIndex =
            unsafe { self.library.function(c"nvmlDeviceGetHandleByIndex_v2") }?;
        let mut device = ptr::null_mut();
        // SAFETY: the second argument points to a writable handle.
        check("nvmlDeviceGetHandleByIndex_v2", unsafe { by_index(index, &raw mut device) })?;
        Ok(Gpu { address: self.address(device)?, uuid: self.uuid(device)? })
    }

    fn address(&self, device: Device) -> io::Result<PciAddress> {
        // SAFETY: the type is the one nvml.h declares.
        let get: GetPciInfo = unsafe { self.library.function(c"nvmlDeviceGetPciInfo_v3") }?;
        let mut info = PciInfo::default();
        // SAFETY: the handle comes from the library, and the structure is the third version.
        check("nvmlDeviceGetPciInfo_v3", unsafe { get(device, &raw mut info) })?;
        Ok(PciAddress { segment: info.domain, bus: info.bus, device: info.device })
    }

    fn uuid(&self, device: Device) -> io::Result<String> {
        // SAFETY: the type is the one nvml.h declares.
        let get: GetUuid = unsafe { self.library.function(c"nvmlDeviceGetUUID") }?;
        let mut text = [0_u8; UUID_BYTES as usize];
        let buffer = text.as_mut_ptr().cast();
        // SAFETY: the handle comes from the library, and the buffer has the given length.
        check("nvmlDeviceGetUUID", unsafe { get(device, buffer, UUID_BYTES) })?;
        let uuid = CStr::from_bytes_until_nul(&text).map_err(io::Error::other)?;
        Ok(uuid.to_string_lossy().into_owned())
    }
}

fn check(call: &str, result: Return) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::other(format!("{call} returned {result}"))) }
}
