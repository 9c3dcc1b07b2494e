//! The lists of `DXCore`.
#![allow(unsafe_code, reason = "calls dxcore.dll")]

use windows::Win32::Graphics::DXCore::{
    DXCORE_ADAPTER_ATTRIBUTE_D3D11_GRAPHICS, DXCORE_ADAPTER_ATTRIBUTE_D3D12_CORE_COMPUTE,
    DXCORE_ADAPTER_ATTRIBUTE_D3D12_GRAPHICS, IDXCoreAdapter, IDXCoreAdapterFactory,
    IDXCoreAdapterList,
};
use windows::core::GUID;

use super::{Listed, Luids, listed};
use crate::api::Api;
use crate::apis::directx::com::{failed, structure};
use crate::apis::directx::dxcore::{self, luid};
use crate::library::Loaded;

/// The lists that every Windows with `DXCore` has.
const ATTRIBUTES: [(GUID, &str); 3] = [
    (DXCORE_ADAPTER_ATTRIBUTE_D3D11_GRAPHICS, "CreateAdapterList(D3D11_GRAPHICS)"),
    (DXCORE_ADAPTER_ATTRIBUTE_D3D12_GRAPHICS, "CreateAdapterList(D3D12_GRAPHICS)"),
    (DXCORE_ADAPTER_ATTRIBUTE_D3D12_CORE_COMPUTE, "CreateAdapterList(D3D12_CORE_COMPUTE)"),
];

pub(super) fn list(known: &[i64]) -> Vec<Listed> {
    let library = Loaded::open(Api::Dxcore, dxcore::NAMES);
    let factory = match library.and_then(|library| Ok(dxcore::factory(library)?)) {
        Ok(factory) => factory,
        Err(refusal) => return vec![listed("DXCoreCreateAdapterFactory", Err(refusal))],
    };
    let by_attribute = ATTRIBUTES
        .into_iter()
        .map(|(attribute, call)| listed(call, with_attribute(&factory, attribute)));
    let opened = known.iter().filter_map(|luid| {
        let luid = structure(*luid);
        // SAFETY: the factory is a live object, and the LUID is a local variable.
        unsafe { factory.GetAdapterByLuid::<IDXCoreAdapter>(&raw const luid) }.ok()
    });
    let opened = opened.map(|adapter| luid(&adapter)).collect();
    by_attribute.chain([listed("GetAdapterByLuid", Ok(opened))]).collect()
}

fn with_attribute(factory: &IDXCoreAdapterFactory, attribute: GUID) -> Luids {
    // SAFETY: here and below, the objects are live, and an index out of range is an error.
    let list: IDXCoreAdapterList =
        unsafe { factory.CreateAdapterList(&[attribute]) }.map_err(failed("CreateAdapterList"))?;
    // SAFETY: as above.
    let count = unsafe { list.GetAdapterCount() };
    let mut luids = Vec::new();
    for index in 0..count {
        // SAFETY: as above.
        let adapter: IDXCoreAdapter =
            unsafe { list.GetAdapter(index) }.map_err(failed("GetAdapter"))?;
        luids.push(luid(&adapter));
    }
    Ok(luids)
}
