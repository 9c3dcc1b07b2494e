//! DXGI.

use std::ffi::c_void;

use windows::Win32::Graphics::Dxgi::{
    DXGI_ERROR_NOT_FOUND, DXGI_GPU_PREFERENCE_UNSPECIFIED, IDXGIAdapter, IDXGIFactory1,
    IDXGIFactory4, IDXGIFactory6,
};
use windows::core::{GUID, HRESULT, Interface, Result as WindowsResult, s};

use crate::library::{Library, check, failed};
use crate::luid::{number, structure};
use crate::{Devices, Listing, Unlisted};

type CreateFactory = unsafe extern "system" fn(*const GUID, *mut *mut c_void) -> HRESULT;

pub(crate) fn list(known: &[i64]) -> Vec<Listing> {
    let factory = match factory() {
        Ok(factory) => factory,
        Err(error) => return vec![Listing::new("CreateDXGIFactory1", Err(error))],
    };
    // SAFETY: here and below, the factory is a live object, and an index out of range is an
    // error.
    let first = each(|n| unsafe { factory.EnumAdapters(n) });
    let first1 = each(|n| unsafe { factory.EnumAdapters1(n) }.and_then(|found| found.cast()));
    let by_luid = newer::<IDXGIFactory4>(&factory).and_then(|factory| {
        // SAFETY: as above.
        opened(known, |luid| unsafe { factory.EnumAdapterByLuid(structure(luid)) })
    });
    let by_preference = newer::<IDXGIFactory6>(&factory).and_then(|factory| {
        let preference = DXGI_GPU_PREFERENCE_UNSPECIFIED;
        // SAFETY: as above.
        each(|n| unsafe { factory.EnumAdapterByGpuPreference(n, preference) })
    });
    vec![
        Listing::new("IDXGIFactory::EnumAdapters", first),
        Listing::new("IDXGIFactory1::EnumAdapters1", first1),
        Listing::new("IDXGIFactory4::EnumAdapterByLuid", by_luid),
        Listing::new("IDXGIFactory6::EnumAdapterByGpuPreference", by_preference),
    ]
}

fn factory() -> Result<IDXGIFactory1, Unlisted> {
    let library = Library::load("dxgi.dll")?;
    let create: CreateFactory = library.function(s!("CreateDXGIFactory1"))?;
    let mut factory = std::ptr::null_mut();
    // SAFETY: the function has this type; it gets an identifier and room for the object.
    check("CreateDXGIFactory1", unsafe { create(&IDXGIFactory1::IID, &raw mut factory) })?;
    // SAFETY: the call succeeded, so this is a factory, and this code owns the reference.
    Ok(unsafe { IDXGIFactory1::from_raw(factory) })
}

/// The interface of a newer Windows.
fn newer<T: Interface>(factory: &IDXGIFactory1) -> Result<T, Unlisted> {
    factory.cast().map_err(|_| Unlisted::Absent("not in this Windows".to_owned()))
}

/// The adapters of a list, by their numbers.
fn each(get: impl Fn(u32) -> WindowsResult<IDXGIAdapter>) -> Result<Devices, Unlisted> {
    let mut luids = Vec::new();
    for index in 0.. {
        match get(index) {
            Ok(adapter) => luids.push(Some(luid(&adapter)?)),
            Err(error) if error.code() == DXGI_ERROR_NOT_FOUND => break,
            Err(error) => return Err(failed("the call")(error)),
        }
    }
    Ok(luids.into_iter().collect())
}

/// The adapters of `known` that can be opened.
fn opened(
    known: &[i64],
    open: impl Fn(i64) -> WindowsResult<IDXGIAdapter>,
) -> Result<Devices, Unlisted> {
    let found = known.iter().filter_map(|luid| open(*luid).ok());
    found.map(|adapter| luid(&adapter).map(Some)).collect()
}

pub(crate) fn luid(adapter: &IDXGIAdapter) -> Result<i64, Unlisted> {
    // SAFETY: the adapter is a live object.
    let description = unsafe { adapter.GetDesc() }.map_err(failed("GetDesc"))?;
    Ok(number(description.AdapterLuid))
}
