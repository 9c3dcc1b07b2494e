//! The order of the adapters of a host.
//!
//! `DXCore` has no list of all adapters: each list contains the adapters with one attribute,
//! in the order of the host. This module merges the lists into one order.

use host::{Attribute, Attributes, Luid};

/// Every adapter of `lists` once, with the attributes of the lists that contain it.
#[must_use]
pub fn by_adapter(lists: &[(Attribute, Vec<Luid>)]) -> Vec<(Luid, Attributes)> {
    let luids: Vec<Vec<Luid>> = lists.iter().map(|(_, luids)| luids.clone()).collect();
    merge(&luids).into_iter().map(|luid| (luid, attributes(lists, luid))).collect()
}

fn attributes(lists: &[(Attribute, Vec<Luid>)], luid: Luid) -> Attributes {
    lists.iter().filter(|(_, luids)| luids.contains(&luid)).map(|(a, _)| *a).collect()
}

/// Every item of `lists` once, in an order that agrees with each list. If the lists do not
/// define the order of two items, or contradict each other, the order of first occurrence
/// applies.
fn merge<T: Copy + Eq>(lists: &[Vec<T>]) -> Vec<T> {
    let mut remaining: Vec<T> = Vec::new();
    for item in lists.iter().flatten() {
        if !remaining.contains(item) {
            remaining.push(*item);
        }
    }
    let mut order = Vec::with_capacity(remaining.len());
    while !remaining.is_empty() {
        let can_follow =
            |item: &T| lists.iter().all(|list| is_first_remaining(list, &remaining, *item));
        let next = remaining.iter().position(can_follow).unwrap_or(0);
        order.push(remaining.remove(next));
    }
    order
}

/// Whether `list` does not contain `item`, or `item` is its first remaining item.
fn is_first_remaining<T: Copy + Eq>(list: &[T], remaining: &[T], item: T) -> bool {
    !list.contains(&item) || list.iter().find(|other| remaining.contains(other)) == Some(&item)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_item_of_a_later_list_is_inserted_between_earlier_ones() {
        assert_eq!(merge(&[vec![1, 3], vec![1, 2, 3]]), [1, 2, 3]);
        assert_eq!(merge(&[vec![3], vec![1], vec![1, 2, 3]]), [1, 2, 3]);
    }

    #[test]
    fn lists_without_common_items_are_concatenated() {
        assert_eq!(merge(&[vec![7, 8], vec![], vec![5]]), [7, 8, 5]);
        assert!(merge::<u8>(&[]).is_empty());
    }

    #[test]
    fn contradicting_lists_still_return_each_item_once() {
        assert_eq!(merge(&[vec![1, 2], vec![2, 1], vec![1, 1]]), [1, 2]);
    }

    proptest! {
        #[test]
        fn a_complete_list_defines_the_order(
            order in Just((0..24u8).collect::<Vec<_>>()).prop_shuffle(),
            attributes in proptest::collection::vec(any::<u32>(), 0..8),
        ) {
            let part = |mask: &u32| {
                order.iter().copied().filter(|i| mask >> i & 1 == 1).collect::<Vec<u8>>()
            };
            let mut lists: Vec<Vec<u8>> = attributes.iter().map(part).collect();
            lists.push(order.clone());
            prop_assert_eq!(merge(&lists), order);
        }

        #[test]
        fn the_order_of_every_list_is_kept(
            order in Just((0..24u8).collect::<Vec<_>>()).prop_shuffle(),
            attributes in proptest::collection::vec(any::<u32>(), 0..8),
        ) {
            let part = |mask: &u32| {
                order.iter().copied().filter(|i| mask >> i & 1 == 1).collect::<Vec<u8>>()
            };
            let lists: Vec<Vec<u8>> = attributes.iter().map(part).collect();
            let merged = merge(&lists);
            for list in &lists {
                let found: Vec<u8> =
                    merged.iter().copied().filter(|i| list.contains(i)).collect();
                prop_assert_eq!(&found, list);
            }
        }
    }
}
