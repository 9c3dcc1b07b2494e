//! Which adapters of a list stay visible.

use crate::AllowedLuids;

/// `D3DKMT_ADAPTERINFO` (d3dkmthk.h).
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

/// `D3DKMT_ADAPTERTYPE` (d3dkmthk.h), the answer to `KMTQAITYPE_ADAPTERTYPE`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AdapterType(pub u32);

impl AdapterType {
    const RENDER: u32 = 1 << 0;
    const SOFTWARE: u32 = 1 << 2;
    const COMPUTE_ONLY: u32 = 1 << 11;

    /// The type of an adapter with these `DXGI_ADAPTER_FLAG`s (dxgi.h).
    #[must_use]
    pub fn of_dxgi(flags: u32) -> AdapterType {
        const SOFTWARE: u32 = 2;
        AdapterType(if flags & SOFTWARE == 0 { Self::RENDER } else { Self::SOFTWARE })
    }

    /// Whether it is hardware that a program can use for computing or rendering. Software
    /// adapters, and adapters that only display, belong to every container.
    fn is_allocatable(self) -> bool {
        self.0 & Self::SOFTWARE == 0 && self.0 & (Self::RENDER | Self::COMPUTE_ONLY) != 0
    }
}

/// Whether a process that may see `allowed` sees an adapter. One whose type Windows does
/// not report counts as hardware.
#[must_use]
pub fn is_visible(allowed: &AllowedLuids, luid: i64, kind: Option<AdapterType>) -> bool {
    allowed.contains(luid) || kind.is_some_and(|kind| !kind.is_allocatable())
}

/// Moves the adapters that are visible to the start of `list`, in their order, and returns
/// their number. The others follow, so that their handles can be closed.
pub fn keep_visible(
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
    use super::*;
    use proptest::prelude::*;

    fn adapter(handle: u32, luid_low: u32) -> AdapterInfo {
        AdapterInfo { handle, luid_low, ..AdapterInfo::default() }
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
        let visible = |luid, kind: Option<u32>| is_visible(&allowed, luid, kind.map(AdapterType));
        assert!(visible(1, Some(AdapterType::RENDER)));
        assert!(!visible(2, Some(AdapterType::RENDER)));
        assert!(!visible(2, Some(AdapterType::COMPUTE_ONLY)));
        assert!(visible(2, Some(AdapterType::RENDER | AdapterType::SOFTWARE)));
        assert!(visible(2, Some(0b10)), "only a display");
        assert!(!visible(2, None), "unknown");
        let of_dxgi = |flags| is_visible(&allowed, 2, Some(AdapterType::of_dxgi(flags)));
        assert!(of_dxgi(2) && of_dxgi(6) && !of_dxgi(0) && !of_dxgi(4));
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
