//! The structures of the kernel's functions for adapters (d3dkmthk.h), and which adapters of a
//! list stay visible.

use core::ffi::c_void;

use crate::AllowedLuids;

/// `D3DKMT_ADAPTERINFO`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AdapterInfo {
    /// A handle of the process, open until it is closed.
    pub handle: u32,
    /// The lower half of the LUID.
    pub luid_low: u32,
    /// The upper half of the LUID.
    pub luid_high: i32,
    /// The number of video present sources.
    pub sources: u32,
    /// Whether present moves are preferred.
    pub present_flags: u32,
}

impl AdapterInfo {
    /// The LUID as one number.
    #[must_use]
    pub fn luid(&self) -> i64 {
        (i64::from(self.luid_high) << 32) | i64::from(self.luid_low)
    }
}

/// `D3DKMT_ENUMADAPTERS`.
#[repr(C)]
pub struct EnumAdapters {
    /// The number of adapters.
    pub count: u32,
    /// The adapters.
    pub list: [AdapterInfo; 16],
}

/// `D3DKMT_ENUMADAPTERS2`.
#[repr(C)]
pub struct EnumAdapters2 {
    /// In: how many adapters the list has room for. Out: the number of adapters.
    pub count: u32,
    /// The list; null to ask for the number.
    pub list: *mut AdapterInfo,
}

/// `D3DKMT_ENUMADAPTERS3`.
#[repr(C)]
pub struct EnumAdapters3 {
    /// `D3DKMT_ENUMADAPTERS_FILTER`.
    pub filter: u64,
    /// The members that [`EnumAdapters2`] has.
    pub rest: EnumAdapters2,
}

/// `D3DKMT_OPENADAPTERFROMLUID`.
#[repr(C)]
pub struct OpenFromLuid {
    /// The lower half of the LUID.
    pub luid_low: u32,
    /// The upper half of the LUID.
    pub luid_high: i32,
    /// Out: a handle of the process.
    pub handle: u32,
}

/// The common start of `D3DKMT_OPENADAPTERFROMHDC` and `D3DKMT_OPENADAPTERFROMDEVICENAME`. In
/// 64-bit processes both end with the padding of this structure.
#[repr(C)]
pub struct OpenFromPointer {
    /// A drawing context or a name.
    pub pointer: *const c_void,
    /// Out: a handle of the process.
    pub handle: u32,
    /// Out: the lower half of the LUID.
    pub luid_low: u32,
    /// Out: the upper half of the LUID.
    pub luid_high: i32,
}

/// `D3DKMT_QUERYADAPTERINFO`.
#[repr(C)]
pub struct QueryAdapterInfo {
    /// The adapter.
    pub handle: u32,
    /// The requested information: a `KMTQUERYADAPTERINFOTYPE`.
    pub kind: u32,
    /// The answer.
    pub data: *mut u32,
    /// The size of the answer in bytes.
    pub size: u32,
}

/// `KMTQAITYPE_ADAPTERTYPE`, which answers with a `D3DKMT_ADAPTERTYPE`.
pub const ADAPTER_TYPE: u32 = 15;

/// Flags of `D3DKMT_ADAPTERTYPE`.
const RENDER: u32 = 1 << 0;
const SOFTWARE: u32 = 1 << 2;
const COMPUTE_ONLY: u32 = 1 << 11;

/// Whether a process that may see `allowed` sees an adapter with this `D3DKMT_ADAPTERTYPE`. Software
/// adapters, and adapters that only display, belong to every container. An adapter whose type
/// Windows does not report counts as hardware that computes or renders.
#[must_use]
pub fn is_visible(allowed: &AllowedLuids, luid: i64, kind: Option<u32>) -> bool {
    allowed.contains(luid) || kind.is_some_and(|kind| !is_allocatable(kind))
}

fn is_allocatable(kind: u32) -> bool {
    kind & SOFTWARE == 0 && kind & (RENDER | COMPUTE_ONLY) != 0
}

/// Moves the adapters that are visible to the start of `list`, in their order, and returns
/// their number. The others follow, so that their handles can be closed.
pub(crate) fn keep_visible(
    list: &mut [AdapterInfo],
    mut is_visible: impl FnMut(&AdapterInfo) -> bool,
) -> usize {
    let mut kept = 0;
    for next in 0..list.len() {
        let visible = list.get(next).is_some_and(&mut is_visible);
        if visible {
            list.swap(kept, next);
            kept += 1;
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use core::mem::offset_of;

    use proptest::prelude::*;

    use super::*;

    fn adapter(handle: u32, luid_low: u32) -> AdapterInfo {
        AdapterInfo { handle, luid_low, ..AdapterInfo::default() }
    }

    #[test]
    fn structures_are_those_of_d3dkmthk_h() {
        let pointer = size_of::<usize>();
        assert_eq!(offset_of!(AdapterInfo, luid_low), 4);
        assert_eq!(size_of::<EnumAdapters>(), 4 + 16 * 20);
        assert_eq!(offset_of!(EnumAdapters2, list), pointer);
        assert_eq!(offset_of!(EnumAdapters3, rest) + offset_of!(EnumAdapters2, count), 8);
        assert_eq!(offset_of!(EnumAdapters3, rest) + offset_of!(EnumAdapters2, list), 8 + pointer);
        assert_eq!((size_of::<OpenFromLuid>(), offset_of!(OpenFromLuid, handle)), (12, 8));
        assert_eq!(offset_of!(OpenFromPointer, luid_low), pointer + 4);
        assert_eq!(offset_of!(QueryAdapterInfo, data), 8);
    }

    #[test]
    fn a_luid_is_a_signed_number_of_both_halves() {
        let info = AdapterInfo { luid_low: 5, luid_high: -1, ..AdapterInfo::default() };
        assert_eq!(info.luid(), -4_294_967_291);
        assert_eq!(adapter(1, u32::MAX).luid(), 4_294_967_295);
    }

    #[test]
    fn software_and_display_only_adapters_stay_visible() {
        let allowed = AllowedLuids::new([1]).unwrap();
        let visible = |luid, kind| is_visible(&allowed, luid, kind);
        assert!(visible(1, Some(RENDER)));
        assert!(!visible(2, Some(RENDER)));
        assert!(!visible(2, Some(COMPUTE_ONLY)));
        assert!(visible(2, Some(RENDER | SOFTWARE)));
        assert!(visible(2, Some(0b10)), "only a display");
        assert!(!visible(2, None), "unknown");
    }

    proptest! {
        #[test]
        fn visible_adapters_keep_their_order_and_none_is_lost(
            luids in proptest::collection::vec(0_u32..4, 0..12),
        ) {
            let all: Vec<AdapterInfo> =
                (1..).zip(&luids).map(|(handle, luid)| adapter(handle, *luid)).collect();
            let mut list = all.clone();
            let kept = keep_visible(&mut list, |info| info.luid() < 2);
            let expected: Vec<_> = all.iter().copied().filter(|info| info.luid() < 2).collect();
            prop_assert_eq!(&list[..kept], &expected[..]);
            list.sort_by_key(|info| info.handle);
            prop_assert_eq!(list, all);
        }
    }
}
