//! The adapters that Windows' own interfaces list in this process.

use std::ffi::c_void;
use std::mem::transmute;

use visibility::{AdapterInfo, AdapterType, AllowedLuids, is_visible};
use windows::Win32::Foundation::NTSTATUS;
use windows::Win32::Graphics::Dxgi::{
    DXGI_ADAPTER_FLAG_SOFTWARE, DXGI_ERROR_NOT_FOUND, IDXGIFactory1,
};
use windows::Win32::System::LibraryLoader::{GetProcAddress, LoadLibraryW};
use windows::core::{GUID, HRESULT, Interface as _, PCSTR, PCWSTR, s, w};

/// The hardware adapters that one interface lists.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listing {
    /// The interface's name.
    pub api: &'static str,
    /// The LUIDs of the adapters in its order, or why there are none.
    pub luids: Result<Vec<i64>, String>,
}

/// Asks an interface.
type List = fn() -> Result<Vec<i64>, String>;

/// The lists of all interfaces. Each is asked when its turn comes: DXGI loads many
/// libraries, and a launcher that needs one list should not wait for them.
pub fn listings() -> impl Iterator<Item = Listing> {
    let interfaces: [(_, List); 3] =
        [("D3DKMTEnumAdapters", d3dkmt), ("D3DKMTEnumAdapters2", d3dkmt2), ("DXGI", dxgi)];
    interfaces.into_iter().map(|(api, luids)| Listing { api, luids: luids() })
}

type D3dkmt = unsafe extern "system" fn(*mut c_void) -> NTSTATUS;

/// `D3DKMT_ENUMADAPTERS`.
#[repr(C)]
struct EnumAdapters {
    count: u32,
    list: [AdapterInfo; 16],
}

/// `D3DKMT_ENUMADAPTERS2`.
#[repr(C)]
struct EnumAdapters2 {
    count: u32,
    list: *mut AdapterInfo,
}

fn d3dkmt() -> Result<Vec<i64>, String> {
    let mut call = EnumAdapters { count: 0, list: [AdapterInfo::default(); 16] };
    d3dkmt_call(s!("D3DKMTEnumAdapters"), (&raw mut call).cast())?;
    let list = call.list.get(..call.count as usize).unwrap_or_default();
    Ok(hardware(list))
}

fn d3dkmt2() -> Result<Vec<i64>, String> {
    let mut call = EnumAdapters2 { count: 0, list: std::ptr::null_mut() };
    let name = s!("D3DKMTEnumAdapters2");
    d3dkmt_call(name, (&raw mut call).cast())?;
    let mut list = vec![AdapterInfo::default(); call.count as usize];
    // An empty list has no address that Windows accepts.
    if list.is_empty() {
        return Ok(Vec::new());
    }
    call.list = list.as_mut_ptr();
    d3dkmt_call(name, (&raw mut call).cast())?;
    list.truncate(call.count as usize);
    Ok(hardware(&list))
}

/// `D3DKMT_QUERYADAPTERINFO`.
#[repr(C)]
struct QueryAdapterInfo {
    handle: u32,
    /// 15 is `KMTQAITYPE_ADAPTERTYPE`.
    kind: u32,
    data: *mut u32,
    size: u32,
}

/// The LUIDs of the adapters that can be allocated. Closes all of them.
fn hardware(list: &[AdapterInfo]) -> Vec<i64> {
    let can_be_hidden = |adapter: &&AdapterInfo| {
        !is_visible(&AllowedLuids::NONE, adapter.luid(), kind(adapter.handle))
    };
    let luids = list.iter().filter(can_be_hidden).map(AdapterInfo::luid).collect();
    for adapter in list {
        let mut handle = adapter.handle;
        // Nothing depends on the result.
        let _ = d3dkmt_call(s!("D3DKMTCloseAdapter"), (&raw mut handle).cast());
    }
    luids
}

fn kind(handle: u32) -> Option<AdapterType> {
    let mut kind = 0;
    let mut query = QueryAdapterInfo { handle, kind: 15, data: &raw mut kind, size: 4 };
    d3dkmt_call(s!("D3DKMTQueryAdapterInfo"), (&raw mut query).cast()).ok()?;
    Some(AdapterType(kind))
}

/// Calls a function of gdi32 that takes a structure.
fn d3dkmt_call(name: PCSTR, structure: *mut c_void) -> Result<(), String> {
    let function = function(w!("gdi32.dll"), name)?;
    // SAFETY: the functions named above have this signature.
    let function = unsafe { transmute::<Function, D3dkmt>(function) };
    // SAFETY: the structure is that of the function, and lives until the call returns.
    let status = unsafe { function(structure) };
    if status.is_ok() { Ok(()) } else { Err(format!("status {:08X}", status.0)) }
}

type Function = unsafe extern "system" fn() -> isize;

/// A function of a library, which is loaded now: a program that imports a graphics library
/// does not start on a system without it.
fn function(library: PCWSTR, name: PCSTR) -> Result<Function, String> {
    // SAFETY: the name is null-terminated; the libraries are those of Windows.
    let module = unsafe { LoadLibraryW(library) }.map_err(|error| error.message())?;
    // SAFETY: the library is loaded, and the name is null-terminated.
    unsafe { GetProcAddress(module, name) }.ok_or_else(|| "not in this Windows".to_owned())
}

type CreateFactory = unsafe extern "system" fn(*const GUID, *mut *mut c_void) -> HRESULT;

fn dxgi() -> Result<Vec<i64>, String> {
    let create = function(w!("dxgi.dll"), s!("CreateDXGIFactory1"))?;
    // SAFETY: CreateDXGIFactory1 has this signature.
    let create = unsafe { transmute::<Function, CreateFactory>(create) };
    let mut factory = std::ptr::null_mut();
    // SAFETY: the interface's ID and the place of its pointer are valid.
    let created = unsafe { create(&IDXGIFactory1::IID, &raw mut factory) };
    created.ok().map_err(|_| format!("error {:08X}", created.0))?;
    // SAFETY: a successful call returns an interface with this ID, which this value owns.
    let factory = unsafe { IDXGIFactory1::from_raw(factory) };
    let mut luids = Vec::new();
    for index in 0.. {
        // SAFETY: the factory is a valid interface.
        let adapter = match unsafe { factory.EnumAdapters1(index) } {
            Ok(adapter) => adapter,
            Err(error) if error.code() == DXGI_ERROR_NOT_FOUND => break,
            Err(error) => return Err(error.message()),
        };
        // SAFETY: the adapter is a valid interface.
        let description = unsafe { adapter.GetDesc1() }.map_err(|error| error.message())?;
        if description.Flags & DXGI_ADAPTER_FLAG_SOFTWARE.0.cast_unsigned() == 0 {
            let luid = description.AdapterLuid;
            luids.push((i64::from(luid.HighPart) << 32) | i64::from(luid.LowPart));
        }
    }
    Ok(luids)
}
