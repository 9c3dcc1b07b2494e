//! The adapters that the graphics kernel lists.
#![allow(unsafe_code, reason = "calls gdi32.dll")]

use windows::Wdk::Graphics::Direct3D::{
    D3DKMT_ADAPTERINFO, D3DKMT_ADAPTERREGISTRYINFO, D3DKMT_ADAPTERTYPE, D3DKMT_ENUMADAPTERS2,
    D3DKMT_QUERYADAPTERINFO, KMTQAITYPE_ADAPTERREGISTRYINFO, KMTQAITYPE_ADAPTERTYPE,
    KMTQUERYADAPTERINFOTYPE,
};
use windows::Win32::Foundation::NTSTATUS;

use super::com::{number, until_null};
use crate::api::Api;
use crate::library::{Loaded, functions};
use crate::outcome::{DeviceInfo, Fault, Kind};
use crate::session::{Candidate, Refusal, Session, Work};

/// `SoftwareDevice` of `D3DKMT_ADAPTERTYPE`.
const SOFTWARE_DEVICE: u32 = 1 << 2;

functions! {
    /// The functions of `d3dkmthk.h`.
    Functions {
        enumerate = "D3DKMTEnumAdapters2" fn(*mut D3DKMT_ENUMADAPTERS2) -> NTSTATUS;
        query = "D3DKMTQueryAdapterInfo" fn(*mut D3DKMT_QUERYADAPTERINFO) -> NTSTATUS;
    }
}

/// Lists the adapters.
pub(super) fn open() -> Result<Session, Refusal> {
    let library = Loaded::open(Api::D3dkmt, &["gdi32.dll"])?;
    let functions = Functions::load(&library).map_err(|fault| library.broken(fault))?;
    let adapters = list(functions).map_err(|fault| library.broken(fault))?;
    let candidates = adapters.iter().map(|adapter| Candidate {
        info: describe(functions, adapter),
        work: Work::Listed(Vec::new()),
    });
    Ok(Session { library: library.describe(None), candidates: candidates.collect() })
}

fn list(functions: Functions) -> Result<Vec<D3DKMT_ADAPTERINFO>, Fault> {
    let check = |status: NTSTATUS| {
        let message = format!("D3DKMTEnumAdapters2 failed: {:#010x}", status.0);
        if status.is_ok() { Ok(()) } else { Err(Fault::new(message)) }
    };
    let mut request = D3DKMT_ENUMADAPTERS2::default();
    // SAFETY: a request without a buffer only counts.
    check(unsafe { (functions.enumerate)(&raw mut request) })?;
    let mut found = vec![D3DKMT_ADAPTERINFO::default(); request.NumAdapters as usize];
    request.pAdapters = found.as_mut_ptr();
    // SAFETY: the request points to `NumAdapters` elements.
    check(unsafe { (functions.enumerate)(&raw mut request) })?;
    found.truncate(request.NumAdapters as usize);
    Ok(found)
}

fn describe(functions: Functions, adapter: &D3DKMT_ADAPTERINFO) -> DeviceInfo {
    let mut kind = D3DKMT_ADAPTERTYPE::default();
    query(functions, adapter, KMTQAITYPE_ADAPTERTYPE, &mut kind);
    // SAFETY: both fields of the union are 32-bit numbers, and zeros without an answer.
    let is_software = unsafe { kind.Anonymous.Value } & SOFTWARE_DEVICE != 0;
    let mut names = D3DKMT_ADAPTERREGISTRYINFO::default();
    query(functions, adapter, KMTQAITYPE_ADAPTERREGISTRYINFO, &mut names);
    let name = until_null(&names.AdapterString);
    DeviceInfo {
        name: if name.is_empty() { "adapter without a name".to_owned() } else { name },
        kind: if is_software { Kind::Software } else { Kind::Hardware },
        luid: Some(number(adapter.AdapterLuid)),
        driver: None,
        memory_bytes: None,
    }
}

/// Fills `value`, a structure of numbers, unless the kernel refuses.
fn query<T>(
    functions: Functions,
    adapter: &D3DKMT_ADAPTERINFO,
    kind: KMTQUERYADAPTERINFOTYPE,
    value: &mut T,
) {
    let mut request = D3DKMT_QUERYADAPTERINFO {
        hAdapter: adapter.hAdapter,
        Type: kind,
        pPrivateDriverData: (&raw mut *value).cast(),
        PrivateDriverDataSize: u32::try_from(size_of::<T>()).unwrap_or(0),
    };
    // SAFETY: the request describes `value`, which any bytes may fill.
    let _ = unsafe { (functions.query)(&raw mut request) };
}
