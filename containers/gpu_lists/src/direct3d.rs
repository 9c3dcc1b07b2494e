//! The adapter that Direct3D uses if a program names none.

use std::ffi::c_void;
use std::ptr::{null, null_mut};

use windows::Win32::Graphics::Direct3D::{
    D3D_DRIVER_TYPE, D3D_DRIVER_TYPE_HARDWARE, D3D_FEATURE_LEVEL, D3D_FEATURE_LEVEL_11_0,
};
use windows::Win32::Graphics::Direct3D12::ID3D12Device;
use windows::Win32::Graphics::Dxgi::IDXGIDevice;
use windows::core::{GUID, HRESULT, IUnknown, Interface as _, s};

use crate::library::{Library, check, failed};
use crate::luid::number;
use crate::{Devices, Unlisted, dxgi};

/// `D3D11_SDK_VERSION` (d3d11.h).
const D3D11_SDK_VERSION: u32 = 7;

type CreateDevice11 = unsafe extern "system" fn(
    *mut c_void,
    D3D_DRIVER_TYPE,
    *mut c_void,
    u32,
    *const D3D_FEATURE_LEVEL,
    u32,
    u32,
    *mut *mut c_void,
    *mut D3D_FEATURE_LEVEL,
    *mut *mut c_void,
) -> HRESULT;

type CreateDevice12 = unsafe extern "system" fn(
    *mut c_void,
    D3D_FEATURE_LEVEL,
    *const GUID,
    *mut *mut c_void,
) -> HRESULT;

pub(crate) fn d3d11() -> Result<Devices, Unlisted> {
    let create: CreateDevice11 = Library::load("d3d11.dll")?.function(s!("D3D11CreateDevice"))?;
    let mut device = null_mut();
    // SAFETY: the function has this type; everything that is null is optional.
    let created = unsafe {
        let (kind, version) = (D3D_DRIVER_TYPE_HARDWARE, D3D11_SDK_VERSION);
        let device = &raw mut device;
        create(null_mut(), kind, null_mut(), 0, null(), 0, version, device, null_mut(), null_mut())
    };
    check("D3D11CreateDevice", created)?;
    // SAFETY: the call succeeded, so this is an object, and this code owns the reference.
    let device = unsafe { IUnknown::from_raw(device) };
    let device: IDXGIDevice = device.cast().map_err(failed("QueryInterface"))?;
    // SAFETY: the device is a live object.
    let adapter = unsafe { device.GetAdapter() }.map_err(failed("GetAdapter"))?;
    Ok([Some(dxgi::luid(&adapter)?)].into_iter().collect())
}

pub(crate) fn d3d12() -> Result<Devices, Unlisted> {
    let create: CreateDevice12 = Library::load("d3d12.dll")?.function(s!("D3D12CreateDevice"))?;
    let mut device = null_mut();
    let level = D3D_FEATURE_LEVEL_11_0;
    // SAFETY: the function has this type; it gets an identifier and room for the object.
    let created = unsafe { create(null_mut(), level, &ID3D12Device::IID, &raw mut device) };
    check("D3D12CreateDevice", created)?;
    // SAFETY: the call succeeded, so this is a device, and this code owns the reference.
    let device = unsafe { ID3D12Device::from_raw(device) };
    // SAFETY: the device is a live object.
    let luid = number(unsafe { device.GetAdapterLuid() });
    Ok([Some(luid)].into_iter().collect())
}
