//! The graphics kernel's interface, which all graphics APIs of Windows use.

use std::ffi::c_void;

use visibility_filter::{AllowedLuids, is_visible};
use windows::Wdk::Graphics::Direct3D::{
    D3DKMT_ADAPTERINFO, D3DKMT_ENUMADAPTERS, D3DKMT_ENUMADAPTERS_FILTER, D3DKMT_ENUMADAPTERS3,
    D3DKMT_OPENADAPTERFROMDEVICENAME, D3DKMT_OPENADAPTERFROMLUID,
};
use windows::core::PCWSTR;

use super::opened::{with_displays, with_interfaces};
use super::{Adapters, Listed, Luids, listed};
use crate::api::Api;
use crate::apis::directx::com::{number, structure};
use crate::apis::directx::d3dkmt::{Kernel, NAMES, counted};
use crate::library::Loaded;
use crate::session::Refusal;

/// `IncludeComputeOnly` and `IncludeDisplayOnly` of `D3DKMT_ENUMADAPTERS_FILTER`.
const EVERY_ADAPTER: u64 = 0b11;

pub(super) fn list(known: &[i64]) -> Result<Vec<Listed>, Refusal> {
    let gdi = Loaded::open(Api::D3dkmt, NAMES)?;
    let kernel = Kernel(gdi);
    let mut found = Vec::new();
    let mut luids = known.to_vec();
    for (call, adapters) in lists(&kernel) {
        let adapters = adapters.map(|adapters| close(&kernel, &adapters).map(Some).collect());
        found.push(listed(call, adapters));
        if let Some(Listed { adapters: Adapters::Devices { luids: own, .. }, .. }) = found.last() {
            luids.extend(own);
        }
    }
    luids.sort_unstable();
    luids.dedup();
    let [hdc, name] = ["D3DKMTOpenAdapterFromHdc", "D3DKMTOpenAdapterFromDeviceName"];
    let from_hdc = opener(&kernel, hdc).and_then(|open| with_displays(gdi, open));
    let from_name = opener(&kernel, name).and_then(with_interfaces);
    let from_luid = listed("D3DKMTOpenAdapterFromLuid", open_luids(&kernel, &luids));
    found.extend([from_luid, listed(hdc, from_hdc), listed(name, from_name)]);
    Ok(found)
}

/// The LUIDs of the adapters that can be allocated, of all lists of the kernel: neither
/// software adapters nor those that only display. `None` if it lists nothing.
#[must_use]
pub fn allocatable() -> Option<Vec<i64>> {
    let kernel = Kernel(Loaded::open(Api::D3dkmt, NAMES).ok()?);
    let mut found: Option<Vec<i64>> = None;
    for (_, adapters) in lists(&kernel) {
        let Ok(adapters) = adapters else { continue };
        let luids = found.get_or_insert_default();
        for adapter in &adapters {
            let luid = number(adapter.AdapterLuid);
            let hidden = !is_visible(&AllowedLuids::NONE, luid, kernel.kind(adapter));
            if hidden && !luids.contains(&luid) {
                luids.push(luid);
            }
        }
        close(&kernel, &adapters).for_each(drop);
    }
    found
}

type Found = Result<Vec<D3DKMT_ADAPTERINFO>, Refusal>;

fn lists(kernel: &Kernel) -> [(&'static str, Found); 3] {
    let adapters3 = counted(|list, count| {
        let mut call = D3DKMT_ENUMADAPTERS3 {
            Filter: D3DKMT_ENUMADAPTERS_FILTER { Value: EVERY_ADAPTER },
            NumAdapters: count,
            pAdapters: list,
        };
        kernel.call("D3DKMTEnumAdapters3", &mut call)?;
        Ok(call.NumAdapters)
    });
    [
        ("D3DKMTEnumAdapters", first_adapters(kernel)),
        ("D3DKMTEnumAdapters2", kernel.adapters2()),
        ("D3DKMTEnumAdapters3", adapters3),
    ]
}

/// The adapters that the oldest function lists, at most 16.
fn first_adapters(kernel: &Kernel) -> Found {
    let mut call = D3DKMT_ENUMADAPTERS::default();
    kernel.call("D3DKMTEnumAdapters", &mut call)?;
    Ok(call.Adapters.into_iter().take(call.NumAdapters as usize).collect())
}

/// The adapters of `luids` that can be opened.
fn open_luids(kernel: &Kernel, luids: &[i64]) -> Luids {
    let name = "D3DKMTOpenAdapterFromLuid";
    kernel.function(name)?;
    let mut opened = Vec::new();
    for luid in luids {
        let mut call = D3DKMT_OPENADAPTERFROMLUID { AdapterLuid: structure(*luid), hAdapter: 0 };
        if kernel.call(name, &mut call).is_ok() {
            opened.push(Some(*luid));
        }
        close_handle(kernel, call.hAdapter);
    }
    Ok(opened)
}

/// A function that opens an adapter with the function `name` and a pointer, closes it, and returns
/// its LUID. The structures of a drawing context and of a name are the same in 64-bit processes.
fn opener(
    kernel: &Kernel,
    name: &'static str,
) -> Result<impl Fn(*const c_void) -> Option<i64>, Refusal> {
    kernel.function(name)?;
    Ok(move |pointer: *const c_void| {
        let mut call = D3DKMT_OPENADAPTERFROMDEVICENAME {
            pDeviceName: PCWSTR(pointer.cast()),
            ..Default::default()
        };
        kernel.call(name, &mut call).ok()?;
        close_handle(kernel, call.hAdapter);
        Some(number(call.AdapterLuid))
    })
}

/// The LUIDs of adapters. The iterator closes each adapter when it returns its LUID.
fn close<'a>(kernel: &'a Kernel, list: &'a [D3DKMT_ADAPTERINFO]) -> impl Iterator<Item = i64> + 'a {
    list.iter().map(|adapter| {
        close_handle(kernel, adapter.hAdapter);
        number(adapter.AdapterLuid)
    })
}

fn close_handle(kernel: &Kernel, mut handle: u32) {
    if handle != 0 {
        // Nothing depends on the result.
        let _ = kernel.call("D3DKMTCloseAdapter", &mut handle);
    }
}
