//! The functions of `win32u` that list and open adapters, without the hidden ones.
//!
//! Each takes a pointer to a structure (d3dkmthk.h) and returns an NTSTATUS. The real
//! function runs first; the handles of hidden adapters are closed.

use core::ffi::{CStr, c_void};
use core::mem::transmute;

use crate::d3dkmt::{
    ADAPTER_TYPE, AdapterInfo, EnumAdapters, EnumAdapters2, EnumAdapters3, OpenFromLuid,
    OpenFromPointer, QueryAdapterInfo, is_visible, keep_visible,
};
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
        hook(c"NtGdiDdDDIEnumAdapters", enum_adapters),
        hook(c"NtGdiDdDDIEnumAdapters2", enum_adapters2),
        hook(c"NtDxgkEnumAdapters3", enum_adapters3),
        hook(c"NtGdiDdDDIOpenAdapterFromLuid", open_from_luid),
        hook(c"NtGdiDdDDIOpenAdapterFromHdc", open_from_hdc),
        hook(c"NtGdiDdDDIOpenAdapterFromDeviceName", open_from_device_name),
    ]
}

fn hook(name: &'static CStr, replacement: Function) -> Hook {
    Hook { name, replacement: replacement as usize }
}

/// The functions of [`hooks`] that every Windows has.
pub(crate) const REQUIRED: [usize; 3] = [ENUM, ENUM2, OPEN_LUID];

type Function = unsafe extern "system" fn(*mut c_void) -> Status;

unsafe extern "system" fn enum_adapters(arguments: *mut c_void) -> Status {
    let Some(state) = state::get() else { return nt::STATUS_INVALID_PARAMETER };
    let status = state.call(ENUM, arguments);
    // SAFETY: the caller passes this structure, which the kernel has just filled.
    let Some(result) = (unsafe { arguments.cast::<EnumAdapters>().as_mut() }) else {
        return status;
    };
    if status == nt::STATUS_SUCCESS {
        let all = result.list.get_mut(..result.count as usize).unwrap_or_default();
        let visible = keep_visible(all, |info| state.is_visible(info));
        let hidden = all.get_mut(visible..).unwrap_or_default();
        state.close(hidden);
        hidden.fill(AdapterInfo::default());
        result.count = u32::try_from(visible).unwrap_or_default();
    }
    status
}

unsafe extern "system" fn enum_adapters2(arguments: *mut c_void) -> Status {
    let Some(state) = state::get() else { return nt::STATUS_INVALID_PARAMETER };
    // SAFETY: the caller passes this structure.
    let Some(caller) = (unsafe { arguments.cast::<EnumAdapters2>().as_mut() }) else {
        return state.call(ENUM2, arguments);
    };
    state.list(caller.list, &mut caller.count, &|list, count| {
        let mut call = EnumAdapters2 { count: *count, list };
        let status = state.call(ENUM2, (&raw mut call).cast());
        *count = call.count;
        status
    })
}

unsafe extern "system" fn enum_adapters3(arguments: *mut c_void) -> Status {
    let Some(state) = state::get() else { return nt::STATUS_INVALID_PARAMETER };
    // SAFETY: the caller passes this structure.
    let Some(caller) = (unsafe { arguments.cast::<EnumAdapters3>().as_mut() }) else {
        return state.call(ENUM3, arguments);
    };
    let filter = caller.filter;
    state.list(caller.rest.list, &mut caller.rest.count, &|list, count| {
        let rest = EnumAdapters2 { count: *count, list };
        let mut call = EnumAdapters3 { filter, rest };
        let status = state.call(ENUM3, (&raw mut call).cast());
        *count = call.rest.count;
        status
    })
}

unsafe extern "system" fn open_from_luid(arguments: *mut c_void) -> Status {
    let Some(state) = state::get() else { return nt::STATUS_INVALID_PARAMETER };
    let status = state.call(OPEN_LUID, arguments);
    // SAFETY: the caller passes this structure, which the kernel has just filled.
    match unsafe { arguments.cast::<OpenFromLuid>().as_mut() } {
        Some(result) if status == nt::STATUS_SUCCESS => {
            state.opened(&mut result.handle, result.luid_low, result.luid_high)
        }
        _ => status,
    }
}

unsafe extern "system" fn open_from_hdc(arguments: *mut c_void) -> Status {
    open_from_pointer(OPEN_HDC, arguments)
}

unsafe extern "system" fn open_from_device_name(arguments: *mut c_void) -> Status {
    open_from_pointer(OPEN_NAME, arguments)
}

fn open_from_pointer(function: usize, arguments: *mut c_void) -> Status {
    let Some(state) = state::get() else { return nt::STATUS_INVALID_PARAMETER };
    let status = state.call(function, arguments);
    // SAFETY: the caller passes a structure that begins like this one, which the kernel has
    // just filled.
    match unsafe { arguments.cast::<OpenFromPointer>().as_mut() } {
        Some(result) if status == nt::STATUS_SUCCESS => {
            state.opened(&mut result.handle, result.luid_low, result.luid_high)
        }
        _ => status,
    }
}

impl State {
    /// Calls the real function with this index.
    fn call(&self, function: usize, arguments: *mut c_void) -> Status {
        let address = self.adapters.get(function).copied().unwrap_or_default();
        call(address, arguments)
    }

    /// Answers a list function. `real` fills a list with room for the count that it is
    /// given, and sets the count. Without a list, it sets only the count to the maximum number of
    /// adapters, which reveals nothing about hidden ones.
    fn list(
        &self,
        list: *mut AdapterInfo,
        count: &mut u32,
        real: &dyn Fn(*mut AdapterInfo, &mut u32) -> Status,
    ) -> Status {
        if list.is_null() {
            return real(list, count);
        }
        let mut most = 0;
        let status = real(core::ptr::null_mut(), &mut most);
        if status != nt::STATUS_SUCCESS {
            return status;
        }
        let Some(mut all) = List::allocate(most) else { return nt::STATUS_NO_MEMORY };
        let mut found = most;
        let status = real(all.memory, &mut found);
        if status != nt::STATUS_SUCCESS {
            return status;
        }
        let all = all.filled(found);
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

    /// Answers a function that has opened an adapter.
    fn opened(&self, handle: &mut u32, luid_low: u32, luid_high: i32) -> Status {
        let info = AdapterInfo { handle: *handle, luid_low, luid_high, ..AdapterInfo::default() };
        if self.is_visible(&info) {
            return nt::STATUS_SUCCESS;
        }
        self.close(&[info]);
        *handle = 0;
        nt::STATUS_INVALID_PARAMETER
    }

    fn is_visible(&self, info: &AdapterInfo) -> bool {
        let (allowed, luid) = (&self.payload.allowed, info.luid());
        allowed.contains(luid) || is_visible(allowed, luid, self.kind(info.handle))
    }

    /// The type of an open adapter, if Windows reports it.
    fn kind(&self, handle: u32) -> Option<u32> {
        let mut kind = 0;
        let mut query =
            QueryAdapterInfo { handle, kind: ADAPTER_TYPE, data: &raw mut kind, size: 4 };
        let status = call(self.query_adapter, (&raw mut query).cast());
        (status == nt::STATUS_SUCCESS).then_some(kind)
    }

    fn close(&self, adapters: &[AdapterInfo]) {
        for adapter in adapters {
            let mut handle = adapter.handle;
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

/// A list of adapters in the process's heap.
struct List {
    memory: *mut AdapterInfo,
    capacity: u32,
}

impl List {
    /// Room for `capacity` adapters, and for one if that is 0.
    fn allocate(capacity: u32) -> Option<List> {
        // `HEAP_ZERO_MEMORY`: the memory is zeroed, so that every element is a valid one.
        const ZERO: u32 = 8;
        let size = size_of::<AdapterInfo>() * (capacity.max(1) as usize);
        // SAFETY: the heap of the process is never destroyed.
        let memory = unsafe { nt::RtlAllocateHeap(heap()?, ZERO, size) };
        (!memory.is_null()).then_some(List { memory: memory.cast(), capacity })
    }

    /// The first `count` elements.
    fn filled(&mut self, count: u32) -> &mut [AdapterInfo] {
        let count = count.min(self.capacity) as usize;
        // SAFETY: the memory has room for `capacity` elements, all of them initialized, and
        // belongs to this value.
        unsafe { core::slice::from_raw_parts_mut(self.memory, count) }
    }
}

impl Drop for List {
    fn drop(&mut self) {
        if let Some(heap) = heap() {
            // SAFETY: the memory is from this heap, and is freed once.
            unsafe { nt::RtlFreeHeap(heap, 0, self.memory.cast()) };
        }
    }
}

fn heap() -> Option<nt::Handle> {
    // SAFETY: every process has a process environment block, which is never freed.
    unsafe { nt::RtlGetCurrentPeb().as_ref() }.map(|peb| peb.heap)
}
