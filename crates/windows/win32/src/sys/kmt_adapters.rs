//! Lists the adapters of the graphics kernel (D3DKMT), with what it reports about each.
#![allow(unsafe_code, reason = "calls D3DKMT functions of gdi32.dll")]

use std::io;
use std::ptr;

use host::{HardwareId, Luid};
use windows::Wdk::Graphics::Direct3D::{
    D3DKMT_ADAPTERINFO, D3DKMT_ADAPTERREGISTRYINFO, D3DKMT_ADAPTERTYPE, D3DKMT_DRIVERVERSION,
    D3DKMT_ENUMADAPTERS_FILTER, D3DKMT_ENUMADAPTERS2, D3DKMT_ENUMADAPTERS3,
    D3DKMT_PHYSICAL_ADAPTER_COUNT, D3DKMT_PNP_KEY_HARDWARE, D3DKMT_QUERY_DEVICE_IDS,
    D3DKMT_QUERY_PHYSICAL_ADAPTER_PNP_KEY, D3DKMT_SEGMENTSIZEINFO, D3DKMT_UMD_DRIVER_VERSION,
    KMTQAITYPE_ADAPTERREGISTRYINFO, KMTQAITYPE_ADAPTERTYPE, KMTQAITYPE_CHECKDRIVERUPDATESTATUS,
    KMTQAITYPE_DRIVERVERSION, KMTQAITYPE_GETSEGMENTSIZE, KMTQAITYPE_PHYSICALADAPTERCOUNT,
    KMTQAITYPE_PHYSICALADAPTERDEVICEIDS, KMTQAITYPE_PHYSICALADAPTERPNPKEY,
    KMTQAITYPE_UMD_DRIVER_VERSION, KMTQUERYADAPTERINFOTYPE,
};
use windows::Win32::Foundation::{NTSTATUS, STATUS_BUFFER_TOO_SMALL};
use windows::core::{BOOL, PWSTR};
use windows_report::kernel_report::KernelReport;
use windows_report::property::optional;
use windows_report::text;

use super::kmt::{AdapterHandle, GraphicsKernel, check};
use super::library::Library;

type EnumAdapters2 = unsafe extern "system" fn(*mut D3DKMT_ENUMADAPTERS2) -> NTSTATUS;
type EnumAdapters3 = unsafe extern "system" fn(*mut D3DKMT_ENUMADAPTERS3) -> NTSTATUS;

/// `IncludeComputeOnly` of `D3DKMT_ENUMADAPTERS_FILTER` (d3dkmthk.h).
const INCLUDE_COMPUTE_ONLY: u64 = 1;

/// How often the list is requested again because an adapter was added in between.
const GROWTH_ATTEMPTS: u32 = 4;

/// The length of the buffer for a registry key, in UTF-16 units: more than a device instance
/// ID (200) below the key of all devices needs.
const PNP_KEY_UNITS: usize = 1024;

/// The most physical devices that one linked adapter can have (`DXGK_MAX_PHYSICAL_ADAPTERS`
/// is smaller). It bounds what a wrong count can cause.
const MAX_PHYSICAL_ADAPTERS: u32 = 64;

/// The functions that list the adapters of the graphics kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KernelAdapterList {
    kernel: GraphicsKernel,
    enumerate: Enumerate,
}

/// A function that lists adapters.
#[derive(Clone, Copy, Debug)]
enum Enumerate {
    Adapters2(EnumAdapters2),
    /// Lists adapters that only compute, too.
    Adapters3(EnumAdapters3),
}

/// An adapter of the list, and its properties or the reason why they cannot be read.
pub(crate) type ListedAdapter = (Luid, io::Result<KernelReport>);

impl KernelAdapterList {
    /// Loads the functions.
    pub(crate) fn load() -> io::Result<Self> {
        let gdi = Library::system("gdi32.dll")?;
        // SAFETY: the type is the one d3dkmthk.h declares.
        let enumerate = unsafe { gdi.function(c"D3DKMTEnumAdapters2") }?;
        Ok(Self { kernel: GraphicsKernel::load()?, enumerate: Enumerate::Adapters2(enumerate) })
    }

    /// Loads the functions with one that lists adapters that only compute, too. Windows has it since
    /// version 2004 and Server 2022.
    pub(crate) fn load_with_compute_only() -> io::Result<Self> {
        let gdi = Library::system("gdi32.dll")?;
        // SAFETY: the type is the one d3dkmthk.h declares.
        let enumerate = unsafe { gdi.function(c"D3DKMTEnumAdapters3") }?;
        Ok(Self { kernel: GraphicsKernel::load()?, enumerate: Enumerate::Adapters3(enumerate) })
    }

    /// Every adapter of the host, in its order.
    pub(crate) fn read(&self) -> io::Result<Vec<ListedAdapter>> {
        self.read_except(&[])
    }

    /// The adapters that are not `known`.
    pub(crate) fn read_except(&self, known: &[Luid]) -> io::Result<Vec<ListedAdapter>> {
        let mut adapters = self.adapters()?;
        adapters.retain(|(luid, _)| !known.contains(luid));
        Ok(adapters.iter().map(|(luid, adapter)| (*luid, report(adapter))).collect())
    }

    /// The adapters, which the kernel opens while it lists them.
    fn adapters(&self) -> io::Result<Vec<(Luid, AdapterHandle<'_>)>> {
        for _ in 0..GROWTH_ATTEMPTS {
            let mut count = 0;
            // SAFETY: a request without a buffer only counts.
            check(unsafe { self.enumerate.call(ptr::null_mut(), &mut count) })?;
            let mut buffer = vec![D3DKMT_ADAPTERINFO::default(); count as usize];
            // SAFETY: the buffer has `count` writable elements.
            let status = unsafe { self.enumerate.call(buffer.as_mut_ptr(), &mut count) };
            if status == STATUS_BUFFER_TOO_SMALL {
                continue;
            }
            check(status)?;
            buffer.truncate(count as usize);
            return Ok(buffer.iter().map(|info| self.adapter(info)).collect());
        }
        Err(io::Error::other("adapters were added during each attempt to list them"))
    }

    fn adapter(&self, info: &D3DKMT_ADAPTERINFO) -> (Luid, AdapterHandle<'_>) {
        let high = i64::from(info.AdapterLuid.HighPart) << 32;
        let luid = Luid(high | i64::from(info.AdapterLuid.LowPart));
        (luid, self.kernel.adopt(info.hAdapter))
    }
}

impl Enumerate {
    /// Writes at most `count` adapters to `list`, and their number to `count`.
    ///
    /// # Safety
    /// `list` must be null or point to `count` writable elements.
    unsafe fn call(self, list: *mut D3DKMT_ADAPTERINFO, count: &mut u32) -> NTSTATUS {
        match self {
            Enumerate::Adapters2(function) => {
                let mut request = D3DKMT_ENUMADAPTERS2 { NumAdapters: *count, pAdapters: list };
                // SAFETY: the caller guarantees the list of the request.
                let status = unsafe { function(&raw mut request) };
                *count = request.NumAdapters;
                status
            }
            Enumerate::Adapters3(function) => {
                let mut request = D3DKMT_ENUMADAPTERS3 {
                    Filter: D3DKMT_ENUMADAPTERS_FILTER { Value: INCLUDE_COMPUTE_ONLY },
                    NumAdapters: *count,
                    pAdapters: list,
                };
                // SAFETY: as above.
                let status = unsafe { function(&raw mut request) };
                *count = request.NumAdapters;
                status
            }
        }
    }
}

/// The flags of an adapter (`D3DKMT_ADAPTERTYPE`).
pub(crate) fn flags(kernel: &GraphicsKernel, luid: Luid) -> io::Result<u32> {
    flags_of(&kernel.open(luid)?)
}

fn flags_of(adapter: &AdapterHandle<'_>) -> io::Result<u32> {
    let kind: D3DKMT_ADAPTERTYPE = value(adapter, KMTQAITYPE_ADAPTERTYPE)?;
    // SAFETY: both fields of the union are 32-bit numbers.
    Ok(unsafe { kind.Anonymous.Value })
}

/// Reads the properties. Only the kind of the adapter is required.
fn report(adapter: &AdapterHandle<'_>) -> io::Result<KernelReport> {
    if is_driver_update_in_progress(adapter) {
        return Err(io::Error::other("the driver is being updated"));
    }
    let flags = flags_of(adapter)?;
    let mut notes = Vec::new();
    let model = supported(value(adapter, KMTQAITYPE_DRIVERVERSION));
    let model = optional("the version of the driver model", model, &mut notes);
    let version = supported(value(adapter, KMTQAITYPE_UMD_DRIVER_VERSION));
    let version: Option<D3DKMT_UMD_DRIVER_VERSION> =
        optional("the driver version", version, &mut notes);
    let sizes = supported(value(adapter, KMTQAITYPE_GETSEGMENTSIZE));
    let sizes: Option<D3DKMT_SEGMENTSIZEINFO> = optional("the memory", sizes, &mut notes);
    let description = supported(description(adapter));
    Ok(KernelReport {
        flags,
        driver_model: model.map(|D3DKMT_DRIVERVERSION(model)| model),
        hardware_id: optional("the hardware ID", supported(hardware_id(adapter)), &mut notes),
        description: optional("the description", description, &mut notes),
        driver_version: version.map(|version| version.DriverVersion.cast_unsigned()),
        dedicated_memory: sizes.map(|sizes| sizes.DedicatedVideoMemorySize),
        pnp_keys: pnp_keys_of(adapter),
        notes,
    })
}

/// What the kernel answers; `None` if this Windows or the driver does not support the query.
fn supported<T>(answer: io::Result<T>) -> io::Result<Option<T>> {
    match answer {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(None),
        answer => answer.map(Some),
    }
}

fn is_driver_update_in_progress(adapter: &AdapterHandle<'_>) -> bool {
    let status: io::Result<BOOL> = value(adapter, KMTQAITYPE_CHECKDRIVERUPDATESTATUS);
    status.is_ok_and(BOOL::as_bool)
}

fn hardware_id(adapter: &AdapterHandle<'_>) -> io::Result<HardwareId> {
    let D3DKMT_QUERY_DEVICE_IDS { DeviceIds: ids, .. } =
        value(adapter, KMTQAITYPE_PHYSICALADAPTERDEVICEIDS)?;
    Ok(HardwareId {
        vendor: ids.VendorID,
        device: ids.DeviceID,
        subsystem: ids.SubSystemID << 16 | (ids.SubVendorID & 0xFFFF),
        revision: ids.RevisionID,
    })
}

fn description(adapter: &AdapterHandle<'_>) -> io::Result<String> {
    let info: D3DKMT_ADAPTERREGISTRYINFO = value(adapter, KMTQAITYPE_ADAPTERREGISTRYINFO)?;
    Ok(String::from_utf16_lossy(text::until_null(&info.AdapterString)))
}

/// The registry keys of the physical devices of an adapter.
pub(crate) fn pnp_keys(kernel: &GraphicsKernel, luid: Luid) -> io::Result<Vec<String>> {
    Ok(pnp_keys_of(&kernel.open(luid)?))
}

/// The registry keys of the physical devices; an empty text for one that is not reported.
fn pnp_keys_of(adapter: &AdapterHandle<'_>) -> Vec<String> {
    let count = value(adapter, KMTQAITYPE_PHYSICALADAPTERCOUNT)
        .map_or(1, |count: D3DKMT_PHYSICAL_ADAPTER_COUNT| count.Count);
    let indexes = 0..count.min(MAX_PHYSICAL_ADAPTERS);
    indexes.map(|index| pnp_key(adapter, index).unwrap_or_default()).collect()
}

fn pnp_key(adapter: &AdapterHandle<'_>, index: u32) -> io::Result<String> {
    let mut buffer = vec![0_u16; PNP_KEY_UNITS];
    let mut length = u32::try_from(PNP_KEY_UNITS).expect("a small buffer");
    let mut request = D3DKMT_QUERY_PHYSICAL_ADAPTER_PNP_KEY {
        PhysicalAdapterIndex: index,
        PnPKeyType: D3DKMT_PNP_KEY_HARDWARE,
        pDest: PWSTR(buffer.as_mut_ptr()),
        pCchDest: &raw mut length,
    };
    // SAFETY: the query takes such a structure, which points to `length` writable units.
    unsafe { adapter.query(KMTQAITYPE_PHYSICALADAPTERPNPKEY, &mut request) }?;
    Ok(String::from_utf16_lossy(text::until_null(&buffer)))
}

/// A structure that contains only numbers, and the query that fills it.
///
/// # Safety
/// Any bytes must be a valid value.
unsafe trait Numbers: Default {}

// SAFETY: the structure contains only numbers.
unsafe impl Numbers for D3DKMT_ADAPTERTYPE {}
// SAFETY: as above.
unsafe impl Numbers for D3DKMT_DRIVERVERSION {}
// SAFETY: as above.
unsafe impl Numbers for D3DKMT_UMD_DRIVER_VERSION {}
// SAFETY: as above.
unsafe impl Numbers for D3DKMT_SEGMENTSIZEINFO {}
// SAFETY: as above.
unsafe impl Numbers for D3DKMT_QUERY_DEVICE_IDS {}
// SAFETY: as above.
unsafe impl Numbers for D3DKMT_ADAPTERREGISTRYINFO {}
// SAFETY: as above.
unsafe impl Numbers for D3DKMT_PHYSICAL_ADAPTER_COUNT {}
// SAFETY: as above.
unsafe impl Numbers for BOOL {}

/// Queries a structure. The kernel checks that it has the size of `kind`.
fn value<T: Numbers>(adapter: &AdapterHandle<'_>, kind: KMTQUERYADAPTERINFOTYPE) -> io::Result<T> {
    let mut value = T::default();
    // SAFETY: every byte of `value` is writable, and any bytes are a valid value. It contains
    // no pointers that the kernel follows.
    unsafe { adapter.query(kind, &mut value) }?;
    Ok(value)
}

#[cfg(test)]
mod tests;
