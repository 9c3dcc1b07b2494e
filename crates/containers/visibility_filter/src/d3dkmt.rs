//! Which adapters of the kernel's lists stay visible.

use crate::AllowedLuids;

/// Flags of `D3DKMT_ADAPTERTYPE` (d3dkmthk.h).
const RENDER: u32 = 1 << 0;
const SOFTWARE: u32 = 1 << 2;
const COMPUTE_ONLY: u32 = 1 << 11;

/// Whether a process that may see `allowed` sees an adapter with this `D3DKMT_ADAPTERTYPE`.
///
/// Software adapters, and adapters that only display, belong to every container. Without a type
/// from Windows, an adapter counts as hardware that computes or renders.
#[must_use]
pub fn is_visible(allowed: &AllowedLuids, luid: i64, kind: Option<u32>) -> bool {
    allowed.contains(luid)
        || kind.is_some_and(|kind| kind & SOFTWARE != 0 || kind & (RENDER | COMPUTE_ONLY) == 0)
}

/// Moves the adapters that are visible to the start of `list`, in their order, and returns
/// their number. The others follow, so that their handles can be closed.
pub(crate) fn keep_visible<T>(list: &mut [T], mut is_visible: impl FnMut(&T) -> bool) -> usize {
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
    use proptest::prelude::*;

    use super::*;

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
            let all: Vec<(u32, u32)> = (1..).zip(luids).collect();
            let mut list = all.clone();
            let kept = keep_visible(&mut list, |(_, luid)| *luid < 2);
            let expected: Vec<_> = all.iter().copied().filter(|(_, luid)| *luid < 2).collect();
            prop_assert_eq!(&list[..kept], &expected[..]);
            list.sort_unstable();
            prop_assert_eq!(list, all);
        }
    }
}
