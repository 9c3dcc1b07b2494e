//! The adapters that DXGI lists.
#![allow(unsafe_code, reason = "calls dxgi.dll")]

use windows::Win32::Graphics::Dxgi::{
    DXGI_ADAPTER_FLAG_SOFTWARE, DXGI_ERROR_NOT_FOUND, IDXGIAdapter1, IDXGIDevice, IDXGIFactory1,
};
use windows::core::Interface;

use super::com::{Adapter, driver_version, factory, failed, number, until_null};
use super::d3dkmt;
use crate::library::Loaded;
use crate::outcome::{DeviceInfo, Fault, Kind};
use crate::session::{Devices, Refusal};

pub(crate) const NAMES: &[&str] = &["dxgi.dll"];
/// The function that creates the object that lists adapters.
pub(crate) const FACTORY: &str = "CreateDXGIFactory1";

/// Vendor and device of Microsoft's Basic Render Driver, which older versions of Windows do not
/// flag as software.
const BASIC_RENDER: (u32, u32) = (0x1414, 0x8c);

pub(in super::super) fn list(library: Loaded) -> Result<Devices, Refusal> {
    Ok((None, adapters(library)?.into_iter().map(Adapter::listed).collect()))
}

/// The adapters of the loaded `dxgi.dll`.
pub(super) fn adapters(library: Loaded) -> Result<Vec<Adapter<IDXGIAdapter1>>, Fault> {
    let factory: IDXGIFactory1 = factory(library, FACTORY)?;
    // SAFETY: an index out of range is an error.
    each("EnumAdapters1", |index| unsafe { factory.EnumAdapters1(index) })?
        .into_iter()
        .map(|object| Ok(Adapter { info: describe(&object)?, object }))
        .collect()
}

/// The adapters that `call` returns for the numbers from 0.
pub(crate) fn each<T>(
    call: &str,
    get: impl Fn(u32) -> windows::core::Result<T>,
) -> Result<Vec<T>, Fault> {
    let mut found = Vec::new();
    for index in 0.. {
        match get(index) {
            Ok(adapter) => found.push(adapter),
            Err(error) if error.code() == DXGI_ERROR_NOT_FOUND => break,
            Err(error) => return Err(failed(call)(error)),
        }
    }
    Ok(found)
}

fn describe(adapter: &IDXGIAdapter1) -> Result<DeviceInfo, Fault> {
    // SAFETY: the adapter is a live object.
    let description = unsafe { adapter.GetDesc1() }.map_err(failed("GetDesc1"))?;
    let flags = description.Flags & DXGI_ADAPTER_FLAG_SOFTWARE.0.cast_unsigned();
    let is_software = flags != 0 || (description.VendorId, description.DeviceId) == BASIC_RENDER;
    let luid = number(description.AdapterLuid);
    // SAFETY: as above. The driver's version is what this function returns.
    let version = unsafe { adapter.CheckInterfaceSupport(&IDXGIDevice::IID) }.ok();
    Ok(DeviceInfo {
        name: until_null(&description.Description),
        kind: if is_software { Kind::Software } else { d3dkmt::kind_of(luid) },
        luid: Some(luid),
        driver: version.map(|version| driver_version(version.cast_unsigned())),
        memory_bytes: Some(description.DedicatedVideoMemory as u64),
        license: None,
    })
}
