//! What differs between two readings of the same host.

use std::collections::{BTreeMap, BTreeSet};

use devices::{Adapter, HostSnapshot, Luid};

/// Each difference from `before` to `after`, in words.
pub(crate) fn differences(before: &HostSnapshot, after: &HostSnapshot) -> Vec<String> {
    let (old, new) = (by_luid(before), by_luid(after));
    let luids: BTreeSet<Luid> = old.keys().chain(new.keys()).copied().collect();
    let mut found: Vec<String> = luids
        .into_iter()
        .filter_map(|luid| match (old.get(&luid), new.get(&luid)) {
            (Some(old), Some(new)) if old == new => None,
            (Some(_), Some(new)) => Some(format!("{} changed", name(new))),
            (None, Some(new)) => Some(format!("{} appeared", name(new))),
            (Some(old), None) => Some(format!("{} disappeared", name(old))),
            (None, None) => None,
        })
        .collect();
    let order = |snapshot: &HostSnapshot| -> Vec<Luid> {
        snapshot.adapters.iter().map(|adapter| adapter.luid).collect()
    };
    if found.is_empty() && order(before) != order(after) {
        found.push("the order of the adapters changed".to_owned());
    }
    if before.host != after.host {
        found.push("the facts of the host changed".to_owned());
    }
    if before.warnings != after.warnings {
        found.push("the warnings changed".to_owned());
    }
    found
}

fn by_luid(snapshot: &HostSnapshot) -> BTreeMap<Luid, &Adapter> {
    snapshot.adapters.iter().map(|adapter| (adapter.luid, adapter)).collect()
}

fn name(adapter: &Adapter) -> String {
    format!("adapter {} (LUID {})", adapter.driver_description, adapter.luid)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: &str = include_str!("../../../fixtures/inventories/aws-t4-two.yaml");

    #[test]
    fn every_kind_of_difference_is_named() {
        let host = inventory::parse("two.yaml", HOST).unwrap();
        assert!(differences(&host, &host).is_empty());
        let changed = |change: fn(&mut HostSnapshot)| {
            let mut after = host.clone();
            change(&mut after);
            differences(&host, &after)
        };
        let first = format!("LUID {}", host.adapters[0].luid);
        let gone = changed(|after| drop(after.adapters.remove(0)));
        assert!(gone[0].ends_with(&format!("({first}) disappeared")), "{gone:?}");
        let new = changed(|after| after.adapters[0].luid = Luid(1));
        assert!(
            new[0].ends_with("(LUID 1) appeared") && new[1].ends_with("disappeared"),
            "{new:?}"
        );
        let other = changed(|after| after.adapters[0].dedicated_memory_mib = Some(1));
        assert!(other[0].ends_with(&format!("({first}) changed")), "{other:?}");
        let order = changed(|after| after.adapters.reverse());
        assert_eq!(order, ["the order of the adapters changed"]);
        let host_changed = changed(|after| after.host.build = None);
        assert_eq!(host_changed, ["the facts of the host changed"]);
    }
}
