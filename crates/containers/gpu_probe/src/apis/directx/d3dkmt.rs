//! The graphics kernel's functions, which gdi32 exports, and the adapters that it lists.
#![allow(unsafe_code, reason = "calls gdi32.dll")]

use std::ffi::c_void;

use visibility_filter::{AllowedLuids, is_visible};
use windows::Wdk::Graphics::Direct3D::{
    D3DKMT_ADAPTERINFO, D3DKMT_ADAPTERREGISTRYINFO, D3DKMT_ENUMADAPTERS2,
    D3DKMT_OPENADAPTERFROMLUID, D3DKMT_QUERYADAPTERINFO, KMTQAITYPE_ADAPTERREGISTRYINFO,
    KMTQAITYPE_ADAPTERTYPE, KMTQUERYADAPTERINFOTYPE,
};
use windows::Win32::Foundation::NTSTATUS;

use super::com::{number, structure, until_null};
use crate::api::Api;
use crate::library::{Loaded, Symbols as _, structure_size};
use crate::outcome::{DeviceInfo, Fault, Kind};
use crate::session::{Candidate, Devices, Refusal, Work};

pub(crate) const NAMES: &[&str] = &["gdi32.dll"];

type Call = unsafe extern "system" fn(*mut c_void) -> NTSTATUS;

pub(in super::super) fn list(library: Loaded) -> Result<Devices, Refusal> {
    let kernel = Kernel(library);
    let adapters = kernel.adapters2()?;
    let candidates = adapters
        .iter()
        .map(|adapter| Candidate { info: kernel.describe(adapter), work: Work::Known(Ok(())) });
    Ok((None, candidates.collect()))
}

/// The kind of an adapter that another API lists. DXGI and `DXCore` do not say that an adapter is
/// an indirect display, such as the display of a remote session: it has the name of the GPU that
/// renders for it. An adapter about which the kernel says nothing is hardware.
pub(super) fn kind_of(luid: i64) -> Kind {
    let Ok(gdi) = Loaded::open(Api::D3dkmt, NAMES) else { return Kind::Hardware };
    let kernel = Kernel(gdi);
    let mut opened = D3DKMT_OPENADAPTERFROMLUID { AdapterLuid: structure(luid), hAdapter: 0 };
    if kernel.call("D3DKMTOpenAdapterFromLuid", &mut opened).is_err() {
        return Kind::Hardware;
    }
    let adapter = D3DKMT_ADAPTERINFO {
        hAdapter: opened.hAdapter,
        AdapterLuid: opened.AdapterLuid,
        ..D3DKMT_ADAPTERINFO::default()
    };
    let kind = kernel.kind_of(&adapter);
    // Nothing depends on the result.
    let _ = kernel.call("D3DKMTCloseAdapter", &mut opened.hAdapter);
    kind
}

/// The functions of the kernel.
pub(crate) struct Kernel(pub(crate) Loaded);

impl Kernel {
    pub(crate) fn adapters2(&self) -> Result<Vec<D3DKMT_ADAPTERINFO>, Refusal> {
        counted(|list, count| {
            let mut call = D3DKMT_ENUMADAPTERS2 { NumAdapters: count, pAdapters: list };
            self.call("D3DKMTEnumAdapters2", &mut call)?;
            Ok(call.NumAdapters)
        })
    }

    /// The `D3DKMT_ADAPTERTYPE` of an adapter, unless the kernel refuses.
    pub(crate) fn kind(&self, adapter: &D3DKMT_ADAPTERINFO) -> Option<u32> {
        self.query(adapter, KMTQAITYPE_ADAPTERTYPE)
    }

    /// The adapters that no container is allocated are software or displays.
    fn kind_of(&self, adapter: &D3DKMT_ADAPTERINFO) -> Kind {
        let luid = number(adapter.AdapterLuid);
        let is_for_all = is_visible(&AllowedLuids::NONE, luid, self.kind(adapter));
        if is_for_all { Kind::Software } else { Kind::Hardware }
    }

    fn describe(&self, adapter: &D3DKMT_ADAPTERINFO) -> DeviceInfo {
        let texts: Option<D3DKMT_ADAPTERREGISTRYINFO> =
            self.query(adapter, KMTQAITYPE_ADAPTERREGISTRYINFO);
        let name = texts.map(|texts| until_null(&texts.AdapterString));
        DeviceInfo {
            name: name
                .filter(|name| !name.is_empty())
                .unwrap_or_else(|| "adapter without a name".to_owned()),
            kind: self.kind_of(adapter),
            luid: Some(number(adapter.AdapterLuid)),
            driver: None,
            memory_bytes: None,
            license: None,
        }
    }

    /// Asks about an adapter. The answer consists of numbers.
    fn query<T: Default>(
        &self,
        adapter: &D3DKMT_ADAPTERINFO,
        kind: KMTQUERYADAPTERINFOTYPE,
    ) -> Option<T> {
        let mut answer = T::default();
        let mut query = D3DKMT_QUERYADAPTERINFO {
            hAdapter: adapter.hAdapter,
            Type: kind,
            pPrivateDriverData: (&raw mut answer).cast(),
            PrivateDriverDataSize: structure_size::<T>(),
        };
        self.call("D3DKMTQueryAdapterInfo", &mut query).ok()?;
        Some(answer)
    }

    /// Calls a function with its structure.
    pub(crate) fn call<T>(&self, name: &'static str, structure: &mut T) -> Result<(), Refusal> {
        let function = self.function(name)?;
        // SAFETY: every caller passes the structure of the function, which lives until the
        // call returns.
        let status = unsafe { function((&raw mut *structure).cast()) };
        if status.is_ok() {
            return Ok(());
        }
        Err(Fault::new(format!("{name} failed: {:#010x}", status.0)).into())
    }

    pub(crate) fn function(&self, name: &'static str) -> Result<Call, Refusal> {
        let address = self.0.function(name).map_err(Refusal::Absent)?;
        // SAFETY: every function that this program uses has this type (d3dkmthk.h).
        Ok(unsafe { std::mem::transmute::<*mut (), Call>(address) })
    }
}

/// The adapters of a function that gets a list and its length, and returns the number of adapters.
/// It is called without a list first.
pub(crate) fn counted(
    list: impl Fn(*mut D3DKMT_ADAPTERINFO, u32) -> Result<u32, Refusal>,
) -> Result<Vec<D3DKMT_ADAPTERINFO>, Refusal> {
    let count = list(std::ptr::null_mut(), 0)?;
    let mut adapters = vec![D3DKMT_ADAPTERINFO::default(); count as usize];
    // An empty list has no address that Windows accepts.
    if !adapters.is_empty() {
        let count = list(adapters.as_mut_ptr(), count)?;
        adapters.truncate(count as usize);
    }
    Ok(adapters)
}
