//! The functions of `win32u` that list and open adapters, without the hidden ones.
//!
//! Each takes a pointer to a structure (d3dkmthk.h) and returns an NTSTATUS. The real
//! function runs first; the handles of hidden adapters are closed.

use core::ffi::{CStr, c_void};
use core::mem::transmute;

use windows_sys::Wdk::Graphics::Direct3D::{
    D3DKMT_ADAPTERINFO, D3DKMT_ENUMADAPTERS, D3DKMT_ENUMADAPTERS2, D3DKMT_ENUMADAPTERS3,
    D3DKMT_OPENADAPTERFROMDEVICENAME, D3DKMT_OPENADAPTERFROMLUID, D3DKMT_QUERYADAPTERINFO,
    KMTQAITYPE_ADAPTERTYPE,
};
use windows_sys::Win32::Foundation::LUID;

use crate::allowed::CAPACITY;
use crate::d3dkmt::{is_visible, keep_visible};
use crate::hook::Hook;
use crate::nt::{self, Status};
use crate::state::{self, ADAPTER_FUNCTIONS, State};

const ENUM: usize = 0;
const ENUM2: usize = 1;
const ENUM3: usize = 2;
const OPEN_LUID: usize = 3;
const OPEN_HDC: usize = 4;
const OPEN_NAME: usize = 5;

/// The functions, in the order of [`State::adapters`].
pub(crate) fn hooks() -> [Hook; ADAPTER_FUNCTIONS] {
    [
        hook(c"NtGdiDdDDIEnumAdapters", enum_adapters, true),
        hook(c"NtGdiDdDDIEnumAdapters2", enum_adapters2, true),
        hook(c"NtDxgkEnumAdapters3", enum_adapters3, false),
        hook(c"NtGdiDdDDIOpenAdapterFromLuid", open_from_luid, true),
        hook(c"NtGdiDdDDIOpenAdapterFromHdc", open_from_hdc, false),
        hook(c"NtGdiDdDDIOpenAdapterFromDeviceName", open_from_device_name, false),
    ]
}

fn hook(name: &'static CStr, replacement: Function, is_required: bool) -> Hook {
    Hook { name, replacement: replacement as usize, is_required }
}

type Function = unsafe extern "system" fn(*mut c_void) -> Status;

unsafe extern "system" fn enum_adapters(arguments: *mut c_void) -> Status {
    let Some(state) = state::get() else { return nt::STATUS_INVALID_PARAMETER };
    let status = call(state.adapters[ENUM], arguments);
    // SAFETY: the caller passes this structure, which the kernel has just filled.
    let Some(result) = (unsafe { arguments.cast::<D3DKMT_ENUMADAPTERS>().as_mut() }) else {
        return status;
    };
    if status == nt::STATUS_SUCCESS {
        let all = result.Adapters.get_mut(..result.NumAdapters as usize).unwrap_or_default();
        let visible = keep_visible(all, |info| state.is_visible(info));
        let hidden = all.get_mut(visible..).unwrap_or_default();
        state.close(hidden);
        hidden.fill(D3DKMT_ADAPTERINFO::default());
        result.NumAdapters = u32::try_from(visible).unwrap_or_default();
    }
    status
}

unsafe extern "system" fn enum_adapters2(arguments: *mut c_void) -> Status {
    let Some(state) = state::get() else { return nt::STATUS_INVALID_PARAMETER };
    // SAFETY: the caller passes this structure.
    let Some(caller) = (unsafe { arguments.cast::<D3DKMT_ENUMADAPTERS2>().as_mut() }) else {
        return call(state.adapters[ENUM2], arguments);
    };
    state.list(caller.pAdapters, &mut caller.NumAdapters, &|list, count| {
        let mut structure = D3DKMT_ENUMADAPTERS2 { NumAdapters: *count, pAdapters: list };
        let status = call(state.adapters[ENUM2], (&raw mut structure).cast());
        *count = structure.NumAdapters;
        status
    })
}

unsafe extern "system" fn enum_adapters3(arguments: *mut c_void) -> Status {
    let Some(state) = state::get() else { return nt::STATUS_INVALID_PARAMETER };
    // SAFETY: the caller passes this structure.
    let Some(caller) = (unsafe { arguments.cast::<D3DKMT_ENUMADAPTERS3>().as_mut() }) else {
        return call(state.adapters[ENUM3], arguments);
    };
    let filter = caller.Filter;
    state.list(caller.pAdapters, &mut caller.NumAdapters, &|list, count| {
        let mut structure =
            D3DKMT_ENUMADAPTERS3 { Filter: filter, NumAdapters: *count, pAdapters: list };
        let status = call(state.adapters[ENUM3], (&raw mut structure).cast());
        *count = structure.NumAdapters;
        status
    })
}

unsafe extern "system" fn open_from_luid(arguments: *mut c_void) -> Status {
    let Some(state) = state::get() else { return nt::STATUS_INVALID_PARAMETER };
    let status = call(state.adapters[OPEN_LUID], arguments);
    // SAFETY: the caller passes this structure, which the kernel has just filled.
    let result = unsafe { arguments.cast::<D3DKMT_OPENADAPTERFROMLUID>().as_mut() };
    state.opened(status, result.map(|result| (&mut result.hAdapter, result.AdapterLuid)))
}

unsafe extern "system" fn open_from_hdc(arguments: *mut c_void) -> Status {
    open_from_pointer::<OPEN_HDC>(arguments)
}

unsafe extern "system" fn open_from_device_name(arguments: *mut c_void) -> Status {
    open_from_pointer::<OPEN_NAME>(arguments)
}

/// Opens an adapter with the function that has this index in [`State::adapters`].
fn open_from_pointer<const FUNCTION: usize>(arguments: *mut c_void) -> Status {
    let Some(state) = state::get() else { return nt::STATUS_INVALID_PARAMETER };
    let status = call(state.adapters[FUNCTION], arguments);
    // SAFETY: the caller passes a structure that begins like this one, which the kernel has
    // just filled.
    let result = unsafe { arguments.cast::<D3DKMT_OPENADAPTERFROMDEVICENAME>().as_mut() };
    state.opened(status, result.map(|result| (&mut result.hAdapter, result.AdapterLuid)))
}

impl State {
    /// Answers a call that lists adapters. `real` calls the real function: it fills a list with
    /// room for the given count, and sets the count. Without a list, it sets the count to the
    /// maximum number of adapters. That number reveals nothing about hidden adapters.
    fn list(
        &self,
        list: *mut D3DKMT_ADAPTERINFO,
        count: &mut u32,
        real: &dyn Fn(*mut D3DKMT_ADAPTERINFO, &mut u32) -> Status,
    ) -> Status {
        if list.is_null() {
            return real(list, count);
        }
        let mut most = 0;
        let status = real(core::ptr::null_mut(), &mut most);
        if status != nt::STATUS_SUCCESS {
            return status;
        }
        let mut all = [D3DKMT_ADAPTERINFO::default(); CAPACITY];
        // The kernel refuses a list that is too short.
        let mut found = most.min(u32::try_from(CAPACITY).unwrap_or_default());
        let status = real(all.as_mut_ptr(), &mut found);
        if status != nt::STATUS_SUCCESS {
            return status;
        }
        let all = all.get_mut(..found as usize).unwrap_or_default();
        let visible = keep_visible(all, |info| self.is_visible(info));
        let (shown, hidden) = all.split_at_mut(visible);
        self.close(hidden);
        if visible > *count as usize {
            self.close(shown);
            return nt::STATUS_BUFFER_TOO_SMALL;
        }
        // SAFETY: the caller's list has room for `count` elements, and no more than that are shown.
        unsafe { core::ptr::copy_nonoverlapping(shown.as_ptr(), list, visible) };
        *count = u32::try_from(visible).unwrap_or_default();
        nt::STATUS_SUCCESS
    }

    /// Answers a call that opens an adapter. `status` is the answer of the real function.
    fn opened(&self, status: Status, adapter: Option<(&mut u32, LUID)>) -> Status {
        let Some((handle, luid)) = adapter.filter(|_| status == nt::STATUS_SUCCESS) else {
            return status;
        };
        let info = D3DKMT_ADAPTERINFO {
            hAdapter: *handle,
            AdapterLuid: luid,
            ..D3DKMT_ADAPTERINFO::default()
        };
        if self.is_visible(&info) {
            return nt::STATUS_SUCCESS;
        }
        self.close(&[info]);
        *handle = 0;
        nt::STATUS_INVALID_PARAMETER
    }

    fn is_visible(&self, info: &D3DKMT_ADAPTERINFO) -> bool {
        let LUID { LowPart, HighPart } = info.AdapterLuid;
        let allowed = &self.payload.allowed;
        let luid = i64::from(HighPart) << 32 | i64::from(LowPart);
        allowed.contains(luid) || is_visible(allowed, luid, self.kind(info.hAdapter))
    }

    /// The type of an open adapter, if Windows reports it.
    fn kind(&self, handle: u32) -> Option<u32> {
        let mut kind = 0_u32;
        let mut query = D3DKMT_QUERYADAPTERINFO {
            hAdapter: handle,
            Type: KMTQAITYPE_ADAPTERTYPE,
            pPrivateDriverData: (&raw mut kind).cast(),
            PrivateDriverDataSize: 4,
        };
        let status = call(self.query_adapter, (&raw mut query).cast());
        (status == nt::STATUS_SUCCESS).then_some(kind)
    }

    fn close(&self, adapters: &[D3DKMT_ADAPTERINFO]) {
        for adapter in adapters {
            let mut handle = adapter.hAdapter;
            call(self.close_adapter, (&raw mut handle).cast());
        }
    }
}

/// Calls a function of `win32u`; an error if this Windows does not have it.
fn call(address: usize, arguments: *mut c_void) -> Status {
    if address == 0 {
        return nt::STATUS_INVALID_PARAMETER;
    }
    // SAFETY: the addresses in the state belong to functions with this signature.
    let function = unsafe { transmute::<usize, Function>(address) };
    // SAFETY: the arguments are the caller's, or a structure of the same layout.
    unsafe { function(arguments) }
}
