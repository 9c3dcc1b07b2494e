//! NVIDIA's management library, loaded from a driver's folder.
#![allow(unsafe_code, reason = "calls nvml.dll")]

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::io;
use std::ptr;

use host::{ComputeCapability, License};
use windows::Win32::System::Diagnostics::Debug::{
    SEM_FAILCRITICALERRORS, SEM_NOGPFAULTERRORBOX, SetErrorMode,
};
use windows_report::nvml::{Gpu, PciAddress};
use windows_report::nvml_license::{self, EarlierFeature, Features};

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

type Init = unsafe extern "C" fn() -> Return;
type InitWithFlags = unsafe extern "C" fn(c_uint) -> Return;
type Count = unsafe extern "C" fn(*mut c_uint) -> Return;
type HandleByIndex = unsafe extern "C" fn(c_uint, *mut Device) -> Return;
type GetPciInfo = unsafe extern "C" fn(Device, *mut PciInfo) -> Return;
type GetUuid = unsafe extern "C" fn(Device, *mut c_char, c_uint) -> Return;
type GetCapability = unsafe extern "C" fn(Device, *mut c_int, *mut c_int) -> Return;
type GetFeatures<F> = unsafe extern "C" fn(Device, *mut Features<F>) -> Return;

/// The initialized library. It is not shut down, because its process ends after one answer.
pub(crate) struct Nvml {
    library: Library,
}

impl Nvml {
    /// Loads the library from the first of `folders` that contains it, or else from System32,
    /// where NVIDIA's installer also puts it. From then on, a crash ends this process at once:
    /// Windows shows no dialog and writes no report.
    pub(crate) fn load<'a>(folders: impl Iterator<Item = &'a str>) -> io::Result<Self> {
        // SAFETY: the function has no preconditions.
        unsafe { SetErrorMode(SEM_FAILCRITICALERRORS | SEM_NOGPFAULTERRORBOX) };
        let names = folders.flat_map(|folder| {
            ["nvml.dll", "nvml_loader.dll"].map(|name| format!(r"{folder}\{name}"))
        });
        let mut libraries = names.filter_map(|path| Library::at(&path).ok());
        let library = match libraries.next() {
            Some(library) => library,
            None => Library::system("nvml.dll")?,
        };
        // SAFETY: the type is the one nvml.h declares.
        let init: Init = unsafe { library.function(c"nvmlInit_v2") }?;
        // SAFETY: the function takes no arguments.
        let initialized = check("nvmlInit_v2", unsafe { init() });
        // With some drivers (R460), only the newer function works.
        initialized.or_else(|error| init_with_flags(library).map_err(|_| error))?;
        Ok(Self { library })
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
        Ok(Gpu {
            address: self.address(device)?,
            uuid: self.uuid(device).ok(),
            compute_capability: self.compute_capability(device).ok(),
            license: self.license(device),
        })
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

    fn compute_capability(&self, device: Device) -> io::Result<ComputeCapability> {
        // SAFETY: the type is the one nvml.h declares.
        let get: GetCapability =
            unsafe { self.library.function(c"nvmlDeviceGetCudaComputeCapability") }?;
        let mut major: c_int = 0;
        let mut minor: c_int = 0;
        // SAFETY: the handle comes from the library, and both numbers are writable.
        let result = unsafe { get(device, &raw mut major, &raw mut minor) };
        check("nvmlDeviceGetCudaComputeCapability", result)?;
        Ok(ComputeCapability { major: major.cast_unsigned(), minor: minor.cast_unsigned() })
    }

    fn license(&self, device: Device) -> Option<License> {
        let newest = self.features(device, nvml_license::FUNCTION);
        let earlier = self.features::<EarlierFeature>(device, nvml_license::EARLIER_FUNCTION);
        nvml_license::read(newest, earlier)
    }

    /// A call of the function `name`, which must fill this structure.
    fn features<F>(
        &self,
        device: Device,
        name: &str,
    ) -> Option<impl FnOnce(&mut Features<F>) -> Return> {
        let name = CString::new(name).ok()?;
        // SAFETY: the callers name the function of nvml.h that fills their structure.
        let get: GetFeatures<F> = unsafe { self.library.function(&name) }.ok()?;
        // SAFETY: the handle comes from the library, and the structure is writable.
        Some(move |features: &mut Features<F>| unsafe { get(device, features) })
    }
}

fn init_with_flags(library: Library) -> io::Result<()> {
    // SAFETY: the type is the one nvml.h declares.
    let init: InitWithFlags = unsafe { library.function(c"nvmlInitWithFlags") }?;
    // SAFETY: 0 means no flags.
    check("nvmlInitWithFlags", unsafe { init(0) })
}

fn check(call: &str, result: Return) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::other(format!("{call} returned {result}"))) }
}
