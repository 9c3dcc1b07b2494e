//! The LUIDs that a process may see.

/// The most LUIDs in a list. Windows lists at most 34 adapters.
pub(crate) const CAPACITY: usize = 64;

/// The LUIDs of the adapters that a process may see; at most 64.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AllowedLuids {
    count: u64,
    /// Zero after `count`, so that equal lists are equal.
    luids: [i64; CAPACITY],
}

impl AllowedLuids {
    /// No adapter.
    pub const NONE: AllowedLuids = AllowedLuids { count: 0, luids: [0; CAPACITY] };

    /// The distinct LUIDs of `luids`, in their order; `None` if there are more than 64.
    pub fn new(luids: impl IntoIterator<Item = i64>) -> Option<AllowedLuids> {
        let mut list = AllowedLuids::NONE;
        for luid in luids {
            if !list.contains(luid) {
                *list.luids.get_mut(usize::try_from(list.count).ok()?)? = luid;
                list.count += 1;
            }
        }
        Some(list)
    }

    /// Whether the list contains `luid`.
    #[must_use]
    pub fn contains(&self, luid: i64) -> bool {
        self.as_slice().contains(&luid)
    }

    #[must_use]
    pub fn as_slice(&self) -> &[i64] {
        let count = usize::try_from(self.count).unwrap_or_default();
        self.luids.get(..count).unwrap_or_default()
    }

    /// The LUIDs that both lists contain.
    pub(crate) fn and(&self, other: &AllowedLuids) -> AllowedLuids {
        let common = self.as_slice().iter().copied().filter(|luid| other.contains(*luid));
        AllowedLuids::new(common).unwrap_or(AllowedLuids::NONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_each_luid_once_and_at_most_64() {
        let list = AllowedLuids::new([7, -1, 7]).unwrap();
        assert_eq!(list.as_slice(), [7, -1]);
        assert!(!AllowedLuids::NONE.contains(0));
        assert_eq!(AllowedLuids::new(0..64).unwrap().as_slice().len(), 64);
        assert_eq!(AllowedLuids::new(0..65), None);
    }

    #[test]
    fn nested_lists_allow_what_both_allow() {
        let outer = AllowedLuids::new([1, 2]).unwrap();
        let inner = AllowedLuids::new([2, 3]).unwrap();
        assert_eq!(outer.and(&inner).as_slice(), [2]);
        assert_eq!(outer.and(&AllowedLuids::NONE), AllowedLuids::NONE);
    }
}
