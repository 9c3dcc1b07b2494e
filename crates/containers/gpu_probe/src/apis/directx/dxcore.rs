//! The adapters that `DXCore` lists: the adapters of DXGI, and compute-only devices.
#![allow(unsafe_code, reason = "calls dxcore.dll")]

use windows::Win32::Graphics::DXCore::{
    DXCORE_ADAPTER_ATTRIBUTE_D3D11_GRAPHICS, DXCORE_ADAPTER_ATTRIBUTE_D3D12_CORE_COMPUTE,
    DXCORE_ADAPTER_ATTRIBUTE_D3D12_GRAPHICS, DXCoreAdapterProperty, DedicatedAdapterMemory,
    DriverDescription, DriverVersion, IDXCoreAdapter, IDXCoreAdapterFactory, IDXCoreAdapterList,
    InstanceLuid, IsHardware,
};
use windows::core::GUID;

use super::com::{Adapter, driver_version, factory, failed};
use super::d3dkmt;
use crate::library::{Loaded, until_nul};
use crate::outcome::{DeviceInfo, Fault, Kind};
use crate::session::{Devices, Refusal};

pub(crate) const NAMES: &[&str] = &["dxcore.dll"];
/// The function that creates the object that lists adapters.
pub(crate) const FACTORY: &str = "DXCoreCreateAdapterFactory";

const ATTRIBUTES: [GUID; 3] = [
    DXCORE_ADAPTER_ATTRIBUTE_D3D12_CORE_COMPUTE,
    DXCORE_ADAPTER_ATTRIBUTE_D3D12_GRAPHICS,
    DXCORE_ADAPTER_ATTRIBUTE_D3D11_GRAPHICS,
];

pub(in super::super) fn list(library: Loaded) -> Result<Devices, Refusal> {
    Ok((None, adapters(library)?.into_iter().map(Adapter::listed).collect()))
}

/// The adapters of the loaded `dxcore.dll`, each once.
pub(super) fn adapters(library: Loaded) -> Result<Vec<Adapter<IDXCoreAdapter>>, Fault> {
    let factory = factory(library, FACTORY)?;
    let mut found: Vec<Adapter<IDXCoreAdapter>> = Vec::new();
    for attribute in ATTRIBUTES {
        for object in with_attribute(&factory, attribute)? {
            let info = describe(&object);
            if !found.iter().any(|adapter| adapter.info.luid == info.luid) {
                found.push(Adapter { info, object });
            }
        }
    }
    Ok(found)
}

/// The adapters with an attribute.
pub(crate) fn with_attribute(
    factory: &IDXCoreAdapterFactory,
    attribute: GUID,
) -> Result<Vec<IDXCoreAdapter>, Fault> {
    // SAFETY: here and below, the objects are live, and an index out of range is an error.
    let list: IDXCoreAdapterList =
        unsafe { factory.CreateAdapterList(&[attribute]) }.map_err(failed("CreateAdapterList"))?;
    // SAFETY: as above.
    let count = unsafe { list.GetAdapterCount() };
    // SAFETY: as above. An adapter that was removed meanwhile is an error.
    Ok((0..count).filter_map(|index| unsafe { list.GetAdapter(index) }.ok()).collect())
}

fn describe(adapter: &IDXCoreAdapter) -> DeviceInfo {
    let description = bytes(adapter, DriverDescription).unwrap_or_default();
    let is_hardware = bytes(adapter, IsHardware).is_none_or(|value| value.first() != Some(&0));
    let luid = luid(adapter);
    DeviceInfo {
        name: until_nul(&description),
        kind: if is_hardware {
            luid.map_or(Kind::Hardware, d3dkmt::kind_of)
        } else {
            Kind::Software
        },
        luid,
        driver: number(adapter, DriverVersion).map(driver_version),
        memory_bytes: number(adapter, DedicatedAdapterMemory),
        license: None,
    }
}

pub(crate) fn luid(adapter: &IDXCoreAdapter) -> Option<i64> {
    number(adapter, InstanceLuid).map(u64::cast_signed)
}

fn number(adapter: &IDXCoreAdapter, property: DXCoreAdapterProperty) -> Option<u64> {
    Some(u64::from_le_bytes(bytes(adapter, property)?.try_into().ok()?))
}

fn bytes(adapter: &IDXCoreAdapter, property: DXCoreAdapterProperty) -> Option<Vec<u8>> {
    // SAFETY: the adapter is a live object.
    let size = unsafe { adapter.GetPropertySize(property) }.ok()?;
    let mut value = vec![0_u8; size];
    // SAFETY: the buffer has the size that is passed.
    unsafe { adapter.GetProperty(property, size, value.as_mut_ptr().cast()) }.ok()?;
    Some(value)
}
