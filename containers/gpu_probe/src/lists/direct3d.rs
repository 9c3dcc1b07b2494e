//! The adapter that Direct3D uses if a program names none.
#![allow(unsafe_code, reason = "calls d3d11.dll and d3d12.dll")]

use std::ptr::null_mut;

use windows::Win32::Graphics::Direct3D::{D3D_DRIVER_TYPE_HARDWARE, D3D_FEATURE_LEVEL_11_0};
use windows::Win32::Graphics::Direct3D12::ID3D12Device;
use windows::Win32::Graphics::Dxgi::IDXGIDevice;
use windows::core::Interface as _;

use super::Luids;
use super::dxgi::luid;
use crate::api::Api;
use crate::apis::directx::com::{failed, number};
use crate::apis::directx::{d3d11, d3d12};
use crate::library::Loaded;

pub(super) fn d3d11() -> Luids {
    let library = Loaded::open(Api::D3d11, d3d11::NAMES)?;
    let (device, ..) = d3d11::create_device(&library, D3D_DRIVER_TYPE_HARDWARE, null_mut())?;
    let device: IDXGIDevice = device.cast().map_err(failed("QueryInterface"))?;
    // SAFETY: the device is a live object.
    let adapter = unsafe { device.GetAdapter() }.map_err(failed("GetAdapter"))?;
    Ok(vec![Some(luid(&adapter)?)])
}

pub(super) fn d3d12() -> Luids {
    let library = Loaded::open(Api::D3d12, d3d12::NAMES)?;
    let device: ID3D12Device =
        d3d12::create_device_of(&library, null_mut(), D3D_FEATURE_LEVEL_11_0)?;
    // SAFETY: the device is a live object.
    Ok(vec![Some(number(unsafe { device.GetAdapterLuid() }))])
}
