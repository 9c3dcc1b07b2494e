//! The lists of DXGI, and the adapters that Direct3D chooses from them.
#![allow(unsafe_code, reason = "calls dxgi.dll, d3d11.dll and d3d12.dll")]

use std::ptr::null_mut;

use windows::Win32::Graphics::Direct3D::{D3D_DRIVER_TYPE_HARDWARE, D3D_FEATURE_LEVEL_11_0};
use windows::Win32::Graphics::Dxgi::{
    DXGI_GPU_PREFERENCE_UNSPECIFIED, IDXGIAdapter, IDXGIDevice, IDXGIFactory1, IDXGIFactory4,
    IDXGIFactory6,
};
use windows::core::{Interface, Result as WindowsResult};

use super::{Listed, Luids, listed};
use crate::api::Api;
use crate::apis::directx::com::{factory, failed, number, structure};
use crate::apis::directx::{d3d11, d3d12, dxgi};
use crate::library::Loaded;
use crate::outcome::Fault;
use crate::session::Refusal;

pub(super) fn list(known: &[i64]) -> Result<Vec<Listed>, Refusal> {
    let library = Loaded::open(Api::Dxgi, dxgi::NAMES)?;
    let factory: IDXGIFactory1 = factory(library, dxgi::FACTORY)?;
    // SAFETY: here and below, the factory is a live object, and an index out of range is an
    // error.
    let first = each(|n| unsafe { factory.EnumAdapters(n) });
    let first1 = each(|n| unsafe { factory.EnumAdapters1(n) }.and_then(|found| found.cast()));
    let by_luid = newer::<IDXGIFactory4>(&factory).and_then(|factory| {
        let mut luids = Vec::new();
        for wanted in known {
            // SAFETY: as above.
            let found = unsafe { factory.EnumAdapterByLuid::<IDXGIAdapter>(structure(*wanted)) };
            if let Ok(adapter) = found {
                luids.push(Some(luid(&adapter)?));
            }
        }
        Ok(luids)
    });
    let by_preference = newer::<IDXGIFactory6>(&factory).and_then(|factory| {
        let preference = DXGI_GPU_PREFERENCE_UNSPECIFIED;
        // SAFETY: as above.
        each(|n| unsafe { factory.EnumAdapterByGpuPreference(n, preference) })
    });
    Ok(vec![
        listed("IDXGIFactory::EnumAdapters", first),
        listed("IDXGIFactory1::EnumAdapters1", first1),
        listed("IDXGIFactory4::EnumAdapterByLuid", by_luid),
        listed("IDXGIFactory6::EnumAdapterByGpuPreference", by_preference),
    ])
}

/// The interface of a newer Windows.
fn newer<T: Interface>(factory: &IDXGIFactory1) -> Result<T, Refusal> {
    factory.cast().map_err(|_| Refusal::Absent(Fault::new("not in this Windows")))
}

/// The adapters of a list, by their numbers.
fn each(get: impl Fn(u32) -> WindowsResult<IDXGIAdapter>) -> Luids {
    dxgi::each("the call", get)?.iter().map(|adapter| Ok(Some(luid(adapter)?))).collect()
}

/// The adapter that Direct3D 11 uses if a program names none.
pub(super) fn d3d11() -> Luids {
    let library = Loaded::open(Api::D3d11, d3d11::NAMES)?;
    let (device, ..) = d3d11::create_device(&library, D3D_DRIVER_TYPE_HARDWARE, null_mut())?;
    let device: IDXGIDevice = device.cast().map_err(failed("QueryInterface"))?;
    // SAFETY: the device is a live object.
    let adapter = unsafe { device.GetAdapter() }.map_err(failed("GetAdapter"))?;
    Ok(vec![Some(luid(&adapter)?)])
}

/// The adapter that Direct3D 12 uses if a program names none.
pub(super) fn d3d12() -> Luids {
    let library = Loaded::open(Api::D3d12, d3d12::NAMES)?;
    let device = d3d12::create_device_of(&library, null_mut(), D3D_FEATURE_LEVEL_11_0)?;
    // SAFETY: the device is a live object.
    Ok(vec![Some(number(unsafe { device.GetAdapterLuid() }))])
}

fn luid(adapter: &IDXGIAdapter) -> Result<i64, Fault> {
    // SAFETY: the adapter is a live object.
    let description = unsafe { adapter.GetDesc() }.map_err(failed("GetDesc"))?;
    Ok(number(description.AdapterLuid))
}
