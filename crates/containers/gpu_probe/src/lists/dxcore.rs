//! The lists of `DXCore`.
#![allow(unsafe_code, reason = "calls dxcore.dll")]

use windows::Win32::Graphics::DXCore::{
    DXCORE_ADAPTER_ATTRIBUTE_D3D11_GRAPHICS, DXCORE_ADAPTER_ATTRIBUTE_D3D12_CORE_COMPUTE,
    DXCORE_ADAPTER_ATTRIBUTE_D3D12_GRAPHICS, IDXCoreAdapter, IDXCoreAdapterFactory,
};
use windows::core::GUID;

use super::{Listed, listed};
use crate::api::Api;
use crate::apis::directx::com::{factory, structure};
use crate::apis::directx::dxcore::{self, luid, with_attribute};
use crate::library::Loaded;
use crate::session::Refusal;

/// The lists that every Windows with `DXCore` has.
const ATTRIBUTES: [(GUID, &str); 3] = [
    (DXCORE_ADAPTER_ATTRIBUTE_D3D11_GRAPHICS, "CreateAdapterList(D3D11_GRAPHICS)"),
    (DXCORE_ADAPTER_ATTRIBUTE_D3D12_GRAPHICS, "CreateAdapterList(D3D12_GRAPHICS)"),
    (DXCORE_ADAPTER_ATTRIBUTE_D3D12_CORE_COMPUTE, "CreateAdapterList(D3D12_CORE_COMPUTE)"),
];

pub(super) fn list(known: &[i64]) -> Result<Vec<Listed>, Refusal> {
    let library = Loaded::open(Api::Dxcore, dxcore::NAMES)?;
    let factory: IDXCoreAdapterFactory = factory(library, dxcore::FACTORY)?;
    let by_attribute = ATTRIBUTES.into_iter().map(|(attribute, call)| {
        let adapters = with_attribute(&factory, attribute).map_err(Refusal::from);
        listed(call, adapters.map(|adapters| adapters.iter().map(luid).collect()))
    });
    let opened = known.iter().filter_map(|luid| {
        let luid = structure(*luid);
        // SAFETY: the factory is a live object, and the LUID is a local variable.
        unsafe { factory.GetAdapterByLuid::<IDXCoreAdapter>(&raw const luid) }.ok()
    });
    let opened = opened.map(|adapter| luid(&adapter)).collect();
    Ok(by_attribute.chain([listed("GetAdapterByLuid", Ok(opened))]).collect())
}
