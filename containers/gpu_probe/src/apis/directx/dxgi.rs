//! The adapters that DXGI lists.
#![allow(unsafe_code, reason = "calls dxgi.dll")]

use std::ffi::c_void;

use windows::Win32::Graphics::Dxgi::{
    DXGI_ADAPTER_FLAG_SOFTWARE, DXGI_ERROR_NOT_FOUND, IDXGIAdapter1, IDXGIDevice, IDXGIFactory1,
};
use windows::core::{GUID, HRESULT, Interface};

use super::com::{Adapter, create, driver_version, failed, number, until_null};
use crate::library::{Loaded, functions};
use crate::outcome::{DeviceInfo, Fault, Kind};
use crate::session::{Devices, Refusal};

pub(crate) const NAMES: &[&str] = &["dxgi.dll"];

/// Vendor and device of Microsoft's Basic Render Driver, which older versions of Windows do not
/// flag as software.
const BASIC_RENDER: (u32, u32) = (0x1414, 0x8c);

functions! {
    /// The function of `dxgi.h`.
    Functions {
        create_factory = "CreateDXGIFactory1" fn(*const GUID, *mut *mut c_void) -> HRESULT;
    }
}

/// Lists the adapters.
pub(in super::super) fn list(library: Loaded) -> Result<Devices, Refusal> {
    Ok((None, adapters(library)?.into_iter().map(Adapter::listed).collect()))
}

/// The object that lists adapters.
pub(crate) fn factory(library: Loaded) -> Result<IDXGIFactory1, Fault> {
    let functions = Functions::load(&library)?;
    // SAFETY: the function gets an identifier and room for the object.
    create("CreateDXGIFactory1", |id, object| unsafe { (functions.create_factory)(id, object) })
}

/// The adapters of the loaded `dxgi.dll`.
pub(super) fn adapters(library: Loaded) -> Result<Vec<Adapter<IDXGIAdapter1>>, Fault> {
    let factory = factory(library)?;
    let mut found = Vec::new();
    for index in 0.. {
        // SAFETY: an index out of range is an error.
        match unsafe { factory.EnumAdapters1(index) } {
            Ok(object) => found.push(Adapter { info: describe(&object)?, object }),
            Err(error) if error.code() == DXGI_ERROR_NOT_FOUND => break,
            Err(error) => return Err(failed("EnumAdapters1")(error)),
        }
    }
    Ok(found)
}

fn describe(adapter: &IDXGIAdapter1) -> Result<DeviceInfo, Fault> {
    // SAFETY: the adapter is a live object.
    let description = unsafe { adapter.GetDesc1() }.map_err(failed("GetDesc1"))?;
    let flags = description.Flags & DXGI_ADAPTER_FLAG_SOFTWARE.0.cast_unsigned();
    let is_software = flags != 0 || (description.VendorId, description.DeviceId) == BASIC_RENDER;
    // SAFETY: as above. The driver's version is what this function returns.
    let version = unsafe { adapter.CheckInterfaceSupport(&IDXGIDevice::IID) }.ok();
    Ok(DeviceInfo {
        name: until_null(&description.Description),
        kind: if is_software { Kind::Software } else { Kind::Hardware },
        luid: Some(number(description.AdapterLuid)),
        driver: version.map(|version| driver_version(version.cast_unsigned())),
        memory_bytes: Some(description.DedicatedVideoMemory as u64),
    })
}
