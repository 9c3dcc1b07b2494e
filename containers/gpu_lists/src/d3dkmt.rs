//! The kernel's interface below all of Windows' own APIs, which gdi32 exports.

use std::ffi::c_void;

use visibility::{
    ADAPTER_TYPE, AdapterInfo, AdapterType, AllowedLuids, EnumAdapters, EnumAdapters2,
    EnumAdapters3, OpenFromLuid, QueryAdapterInfo, is_visible,
};
use windows::Win32::Foundation::NTSTATUS;
use windows::core::{PCSTR, s};

use crate::library::Library;
use crate::opened;
use crate::{Devices, Listing, Unlisted};

type Call = unsafe extern "system" fn(*mut c_void) -> NTSTATUS;

/// `IncludeComputeOnly` and `IncludeDisplayOnly` of `D3DKMT_ENUMADAPTERS_FILTER`.
const EVERY_ADAPTER: u64 = 0b11;

/// `D3DKMT_OPENADAPTERFROMHDC` and `D3DKMT_OPENADAPTERFROMDEVICENAME`, whose first members
/// are both a pointer.
#[repr(C)]
struct OpenFromPointer {
    pointer: *const c_void,
    adapter: AdapterInfo,
}

pub(crate) fn list(known: &[i64]) -> Vec<Listing> {
    let gdi = match Library::load("gdi32.dll") {
        Ok(gdi) => gdi,
        Err(error) => return vec![Listing::new("D3DKMTEnumAdapters", Err(error))],
    };
    let kernel = Kernel(gdi);
    let lists = kernel.lists().map(|(call, adapters)| {
        let luids = adapters.map(|adapters| kernel.close(&adapters).map(Some).collect());
        Listing::new(call, luids)
    });
    let mut luids = known.to_vec();
    let listed = lists.iter().filter_map(|list| list.devices.as_ref().ok());
    luids.extend(listed.flat_map(|devices| devices.luids.iter().copied()));
    luids.sort_unstable();
    luids.dedup();
    let from_luid = kernel.open_luids(&luids);
    let from_context = kernel.open_with(s!("D3DKMTOpenAdapterFromHdc"), opened::displays(gdi));
    let names = opened::interfaces();
    let from_name = kernel.open_with(s!("D3DKMTOpenAdapterFromDeviceName"), names);
    let opens = [
        Listing::new("D3DKMTOpenAdapterFromLuid", from_luid),
        Listing::new("D3DKMTOpenAdapterFromHdc", from_context),
        Listing::new("D3DKMTOpenAdapterFromDeviceName", from_name),
    ];
    lists.into_iter().chain(opens).collect()
}

/// The LUIDs of the adapters that can be allocated, of all lists of the kernel: neither
/// software adapters nor those that only display. `None` if it lists nothing.
#[must_use]
pub fn allocatable() -> Option<Vec<i64>> {
    let kernel = Kernel(Library::load("gdi32.dll").ok()?);
    let mut found: Option<Vec<i64>> = None;
    for (_, adapters) in kernel.lists() {
        let Ok(adapters) = adapters else { continue };
        let luids = found.get_or_insert_default();
        for adapter in &adapters {
            let hidden = !is_visible(&AllowedLuids::NONE, adapter.luid(), kernel.kind(adapter));
            if hidden && !luids.contains(&adapter.luid()) {
                luids.push(adapter.luid());
            }
        }
        kernel.close(&adapters).for_each(drop);
    }
    found
}

type Adapters = Result<Vec<AdapterInfo>, Unlisted>;

/// The functions of the kernel.
struct Kernel(Library);

impl Kernel {
    fn lists(&self) -> [(&'static str, Adapters); 3] {
        [
            ("D3DKMTEnumAdapters", self.adapters()),
            ("D3DKMTEnumAdapters2", self.adapters2()),
            ("D3DKMTEnumAdapters3", self.adapters3()),
        ]
    }

    fn adapters(&self) -> Adapters {
        let mut call = EnumAdapters { count: 0, list: [AdapterInfo::default(); 16] };
        self.call(s!("D3DKMTEnumAdapters"), &mut call)?;
        Ok(call.list.into_iter().take(call.count as usize).collect())
    }

    fn adapters2(&self) -> Adapters {
        counted(|list, count| {
            let mut call = EnumAdapters2 { count, list };
            self.call(s!("D3DKMTEnumAdapters2"), &mut call)?;
            Ok(call.count)
        })
    }

    fn adapters3(&self) -> Adapters {
        counted(|list, count| {
            let rest = EnumAdapters2 { count, list };
            let mut call = EnumAdapters3 { filter: EVERY_ADAPTER, rest };
            self.call(s!("D3DKMTEnumAdapters3"), &mut call)?;
            Ok(call.rest.count)
        })
    }

    /// Those of `luids` that can be opened.
    fn open_luids(&self, luids: &[i64]) -> Result<Devices, Unlisted> {
        let name = s!("D3DKMTOpenAdapterFromLuid");
        self.0.function::<Call>(name)?;
        let open = |luid: &&i64| {
            let parts = crate::luid::structure(**luid);
            let mut call =
                OpenFromLuid { luid_low: parts.LowPart, luid_high: parts.HighPart, handle: 0 };
            let opened = self.call(name, &mut call).is_ok();
            self.close_handle(call.handle);
            opened
        };
        Ok(luids.iter().filter(open).map(|luid| Some(*luid)).collect())
    }

    /// The adapters that can be opened with what `objects` lends.
    fn open_with(
        &self,
        name: PCSTR,
        objects: Result<impl Iterator<Item = impl opened::Object>, Unlisted>,
    ) -> Result<Devices, Unlisted> {
        self.0.function::<Call>(name)?;
        let open = |object: &dyn opened::Object| {
            let adapter = AdapterInfo::default();
            let mut call = OpenFromPointer { pointer: object.pointer(), adapter };
            self.call(name, &mut call).ok()?;
            self.close_handle(call.adapter.handle);
            Some(Some(call.adapter.luid()))
        };
        Ok(objects?.filter_map(|object| open(&object)).collect())
    }

    fn kind(&self, adapter: &AdapterInfo) -> Option<AdapterType> {
        let mut kind = 0;
        let handle = adapter.handle;
        let mut query =
            QueryAdapterInfo { handle, kind: ADAPTER_TYPE, data: &raw mut kind, size: 4 };
        self.call(s!("D3DKMTQueryAdapterInfo"), &mut query).ok()?;
        Some(AdapterType(kind))
    }

    /// The LUIDs of adapters, each of which is closed when its LUID is taken.
    fn close<'a>(&'a self, adapters: &'a [AdapterInfo]) -> impl Iterator<Item = i64> + 'a {
        adapters.iter().map(|adapter| {
            self.close_handle(adapter.handle);
            adapter.luid()
        })
    }

    fn close_handle(&self, mut handle: u32) {
        if handle != 0 {
            // Nothing depends on the result.
            let _ = self.call(s!("D3DKMTCloseAdapter"), &mut handle);
        }
    }

    /// Calls a function with its structure.
    fn call<T>(&self, name: PCSTR, structure: &mut T) -> Result<(), Unlisted> {
        let function: Call = self.0.function(name)?;
        // SAFETY: every caller passes the structure of the function, which lives until the
        // call returns.
        let status = unsafe { function((&raw mut *structure).cast()) };
        if status.is_ok() {
            return Ok(());
        }
        Err(Unlisted::Failed(format!("status {:08X}", status.0)))
    }
}

/// A list whose function is called for its length first. It gets the list and its length,
/// and returns the number of adapters.
fn counted(list: impl Fn(*mut AdapterInfo, u32) -> Result<u32, Unlisted>) -> Adapters {
    let count = list(std::ptr::null_mut(), 0)?;
    let mut adapters = vec![AdapterInfo::default(); count as usize];
    // An empty list has no address that Windows accepts.
    if !adapters.is_empty() {
        let count = list(adapters.as_mut_ptr(), count)?;
        adapters.truncate(count as usize);
    }
    Ok(adapters)
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    #[test]
    fn a_handle_and_its_luid_follow_the_pointer() {
        assert_eq!(offset_of!(OpenFromPointer, adapter), 8);
        assert_eq!(offset_of!(AdapterInfo, luid_low), 4);
    }
}
