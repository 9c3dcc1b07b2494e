//! `DXCore`.

use std::ffi::c_void;

use windows::Win32::Foundation::LUID;
use windows::Win32::Graphics::DXCore::{
    DXCORE_ADAPTER_ATTRIBUTE_D3D11_GRAPHICS, DXCORE_ADAPTER_ATTRIBUTE_D3D12_CORE_COMPUTE,
    DXCORE_ADAPTER_ATTRIBUTE_D3D12_GRAPHICS, IDXCoreAdapter, IDXCoreAdapterFactory,
    IDXCoreAdapterList, InstanceLuid,
};
use windows::core::{GUID, HRESULT, Interface, s};

use crate::library::{Library, check, failed};
use crate::luid::{number, structure};
use crate::{Devices, Listing, Unlisted};

/// The lists that every Windows with `DXCore` has.
const ATTRIBUTES: [(GUID, &str); 3] = [
    (DXCORE_ADAPTER_ATTRIBUTE_D3D11_GRAPHICS, "CreateAdapterList(D3D11_GRAPHICS)"),
    (DXCORE_ADAPTER_ATTRIBUTE_D3D12_GRAPHICS, "CreateAdapterList(D3D12_GRAPHICS)"),
    (DXCORE_ADAPTER_ATTRIBUTE_D3D12_CORE_COMPUTE, "CreateAdapterList(D3D12_CORE_COMPUTE)"),
];

type CreateFactory = unsafe extern "system" fn(*const GUID, *mut *mut c_void) -> HRESULT;

pub(crate) fn list(known: &[i64]) -> Vec<Listing> {
    let factory = match factory() {
        Ok(factory) => factory,
        Err(error) => return vec![Listing::new("DXCoreCreateAdapterFactory", Err(error))],
    };
    let by_attribute = ATTRIBUTES
        .into_iter()
        .map(|(attribute, call)| Listing::new(call, with_attribute(&factory, attribute)));
    let opened = known.iter().filter_map(|luid| {
        let luid = structure(*luid);
        // SAFETY: the factory is a live object, and the LUID is a local variable.
        unsafe { factory.GetAdapterByLuid::<IDXCoreAdapter>(&raw const luid) }.ok()
    });
    let opened = opened.map(|adapter| luid(&adapter)).collect();
    by_attribute.chain([Listing::new("GetAdapterByLuid", Ok(opened))]).collect()
}

fn factory() -> Result<IDXCoreAdapterFactory, Unlisted> {
    let library = Library::load("dxcore.dll")?;
    let create: CreateFactory = library.function(s!("DXCoreCreateAdapterFactory"))?;
    let mut factory = std::ptr::null_mut();
    // SAFETY: the function has this type; it gets an identifier and room for the object.
    let created = unsafe { create(&IDXCoreAdapterFactory::IID, &raw mut factory) };
    check("DXCoreCreateAdapterFactory", created)?;
    // SAFETY: the call succeeded, so this is a factory, and this code owns the reference.
    Ok(unsafe { IDXCoreAdapterFactory::from_raw(factory) })
}

fn with_attribute(factory: &IDXCoreAdapterFactory, attribute: GUID) -> Result<Devices, Unlisted> {
    // SAFETY: here and below, the objects are live, and an index out of range is an error.
    let list: IDXCoreAdapterList =
        unsafe { factory.CreateAdapterList(&[attribute]) }.map_err(failed("CreateAdapterList"))?;
    // SAFETY: as above.
    let count = unsafe { list.GetAdapterCount() };
    let adapter = |index| {
        // SAFETY: as above.
        let adapter: IDXCoreAdapter =
            unsafe { list.GetAdapter(index) }.map_err(failed("GetAdapter"))?;
        Ok(luid(&adapter))
    };
    (0..count).map(adapter).collect()
}

fn luid(adapter: &IDXCoreAdapter) -> Option<i64> {
    let mut luid = LUID::default();
    // SAFETY: the adapter is a live object, and the property is a LUID.
    unsafe {
        adapter.GetProperty(InstanceLuid, size_of::<LUID>(), (&raw mut luid).cast::<c_void>())
    }
    .ok()?;
    Some(number(luid))
}
