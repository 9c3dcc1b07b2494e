//! The LUIDs that a process may see.

/// The most LUIDs in a list. Windows lists at most 34 adapters.
const CAPACITY: usize = 64;

/// The LUIDs of the adapters that a process may see; at most 64.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AllowedLuids {
    count: usize,
    /// Zero after `count`, so that equal lists are equal.
    luids: [i64; CAPACITY],
}

/// A list would have more than 64 LUIDs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooManyLuids;

impl AllowedLuids {
    /// The size of a list in a payload, without its count.
    pub(crate) const BYTES: usize = CAPACITY * 8;

    /// No adapter.
    pub const NONE: AllowedLuids = AllowedLuids { count: 0, luids: [0; CAPACITY] };

    /// The distinct LUIDs of `luids`, in their order.
    pub fn new(luids: impl IntoIterator<Item = i64>) -> Result<AllowedLuids, TooManyLuids> {
        let mut list = AllowedLuids::NONE;
        for luid in luids {
            list.insert(luid)?;
        }
        Ok(list)
    }

    /// Adds `luid` unless the list contains it.
    pub(crate) fn insert(&mut self, luid: i64) -> Result<(), TooManyLuids> {
        if !self.contains(luid) {
            *self.luids.get_mut(self.count).ok_or(TooManyLuids)? = luid;
            self.count += 1;
        }
        Ok(())
    }

    /// Whether the list contains `luid`.
    #[must_use]
    pub fn contains(&self, luid: i64) -> bool {
        self.as_slice().contains(&luid)
    }

    /// The LUIDs.
    #[must_use]
    pub fn as_slice(&self) -> &[i64] {
        self.luids.get(..self.count).unwrap_or_default()
    }

    /// The LUIDs that both lists contain.
    #[must_use]
    pub fn and(&self, other: &AllowedLuids) -> AllowedLuids {
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
        assert_eq!(AllowedLuids::new(0..65), Err(TooManyLuids));
    }

    #[test]
    fn nested_lists_allow_what_both_allow() {
        let outer = AllowedLuids::new([1, 2]).unwrap();
        let inner = AllowedLuids::new([2, 3]).unwrap();
        assert_eq!(outer.and(&inner).as_slice(), [2]);
        assert_eq!(outer.and(&AllowedLuids::NONE), AllowedLuids::NONE);
    }
}
