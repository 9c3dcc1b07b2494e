//! What differs between two readings of the same host.

use devices::{Adapter, HostSnapshot, Luid};

/// Each difference from `before` to `after`, in words.
pub(crate) fn differences(before: &HostSnapshot, after: &HostSnapshot) -> Vec<String> {
    let mut found = Vec::new();
    for old in &before.adapters {
        match with_luid(after, old.luid) {
            None => found.push(format!("{} disappeared", name(old))),
            Some(new) if new != old => found.push(format!("{} changed", name(new))),
            Some(_) => {}
        }
    }
    let new = after.adapters.iter().filter(|new| with_luid(before, new.luid).is_none());
    found.extend(new.map(|new| format!("{} appeared", name(new))));
    if found.is_empty() && before != after {
        found.push("the order of the adapters, the host's facts or a warning changed".to_owned());
    }
    found
}

fn with_luid(snapshot: &HostSnapshot, luid: Luid) -> Option<&Adapter> {
    snapshot.adapters.iter().find(|adapter| adapter.luid == luid)
}

fn name(adapter: &Adapter) -> String {
    format!("adapter {} (LUID {})", adapter.driver_description, adapter.luid)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: &str = include_str!("../../../../fixtures/inventories/aws-t4-two.yaml");

    #[test]
    fn every_kind_of_difference_is_named() {
        let host = config::inventory::parse("two.yaml", HOST).unwrap();
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
            new[0].ends_with("disappeared") && new[1].ends_with("(LUID 1) appeared"),
            "{new:?}"
        );
        let other = changed(|after| after.adapters[0].dedicated_memory_mib = Some(1));
        assert!(other[0].ends_with(&format!("({first}) changed")), "{other:?}");
        for change in [
            |after: &mut HostSnapshot| after.adapters.reverse(),
            |after: &mut HostSnapshot| after.host.build = None,
        ] {
            let what = "the order of the adapters, the host's facts or a warning changed";
            assert_eq!(changed(change), [what]);
        }
    }
}
