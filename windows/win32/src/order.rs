//! The order of a host's adapters, from the lists it gives of them.
//!
//! `DXCore` never lists every adapter: each list holds those with one attribute, in
//! the host's order. Out goes one order that agrees with all the lists.

/// Every item of `lists` once, before and after the same neighbours as in each list.
/// Where the lists leave it open, or contradict each other, the item that is met
/// first comes first.
pub(crate) fn merged<T: Copy + Eq>(lists: &[Vec<T>]) -> Vec<T> {
    let mut waiting: Vec<T> = Vec::new();
    for item in lists.iter().flatten() {
        if !waiting.contains(item) {
            waiting.push(*item);
        }
    }
    let mut order = Vec::with_capacity(waiting.len());
    while !waiting.is_empty() {
        let free = |item: &T| lists.iter().all(|list| first_waiting(list, &waiting, *item));
        let next = waiting.iter().position(free).unwrap_or(0);
        order.push(waiting.remove(next));
    }
    order
}

/// Whether `item` is the first of `list` that still waits, or not in it.
fn first_waiting<T: Copy + Eq>(list: &[T], waiting: &[T], item: T) -> bool {
    !list.contains(&item) || list.iter().find(|other| waiting.contains(other)) == Some(&item)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_adapter_of_a_later_list_takes_its_place_between_earlier_ones() {
        assert_eq!(merged(&[vec![1, 3], vec![1, 2, 3]]), [1, 2, 3]);
        assert_eq!(merged(&[vec![3], vec![1], vec![1, 2, 3]]), [1, 2, 3]);
    }

    #[test]
    fn lists_that_share_nothing_follow_each_other() {
        assert_eq!(merged(&[vec![7, 8], vec![], vec![5]]), [7, 8, 5]);
        assert!(merged::<u8>(&[]).is_empty());
    }

    #[test]
    fn lists_that_contradict_each_other_still_give_each_adapter_once() {
        assert_eq!(merged(&[vec![1, 2], vec![2, 1], vec![1, 1]]), [1, 2]);
    }

    proptest! {
        #[test]
        fn one_list_of_all_decides(
            order in Just((0..24u8).collect::<Vec<_>>()).prop_shuffle(),
            attributes in proptest::collection::vec(any::<u32>(), 0..8),
        ) {
            let part = |mask: &u32| {
                order.iter().copied().filter(|i| mask >> i & 1 == 1).collect::<Vec<u8>>()
            };
            let mut lists: Vec<Vec<u8>> = attributes.iter().map(part).collect();
            lists.push(order.clone());
            prop_assert_eq!(merged(&lists), order);
        }

        #[test]
        fn every_list_is_found_in_its_order(
            order in Just((0..24u8).collect::<Vec<_>>()).prop_shuffle(),
            attributes in proptest::collection::vec(any::<u32>(), 0..8),
        ) {
            let part = |mask: &u32| {
                order.iter().copied().filter(|i| mask >> i & 1 == 1).collect::<Vec<u8>>()
            };
            let lists: Vec<Vec<u8>> = attributes.iter().map(part).collect();
            let merged = merged(&lists);
            for list in &lists {
                let found: Vec<u8> =
                    merged.iter().copied().filter(|i| list.contains(i)).collect();
                prop_assert_eq!(&found, list);
            }
        }
    }
}
