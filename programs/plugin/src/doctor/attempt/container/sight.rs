//! Which devices a container sees, compared with those that it got.

use std::collections::BTreeSet;

use devices::HostSnapshot;
use serde::Deserialize;

use crate::doctor::finding::Status;

/// What `directx-device-plugin devices --output json` prints, as far as it matters here.
#[derive(Deserialize)]
struct Listed {
    devices: Vec<Adapter>,
    skipped: Vec<Adapter>,
}

#[derive(Deserialize)]
struct Adapter {
    luid: i64,
}

/// The LUIDs of all adapters that a container listed; `None` if the text is not such a list.
pub(super) fn seen_luids(text: &str) -> Option<BTreeSet<i64>> {
    let listed: Listed = serde_json::from_str(text).ok()?;
    Some(listed.devices.iter().chain(&listed.skipped).map(|adapter| adapter.luid).collect())
}

/// The LUIDs of the hardware of a host.
pub(super) fn host_luids(host: &HostSnapshot) -> BTreeSet<i64> {
    let hardware = host.adapters.iter().filter(|adapter| adapter.hardware);
    hardware.map(|adapter| adapter.luid.0).collect()
}

/// Judges what a container sees.
pub(super) fn judge(
    seen: &BTreeSet<i64>,
    allocated: &BTreeSet<i64>,
    host: &BTreeSet<i64>,
) -> (Status, String) {
    let of_host = seen.intersection(host).count();
    let sight = format!("the container sees {of_host} of {} devices of the host", host.len());
    let which = match allocated.len() {
        1 => "the allocated device is".to_owned(),
        several => format!("the {several} allocated devices are"),
    };
    let among = allocated.intersection(seen).count();
    if among < allocated.len() {
        let not = if among == 0 { "not" } else { "not all" };
        return (Status::Failed, format!("{sight}; {which} {not} among them"));
    }
    let status = if of_host > allocated.len() { Status::Warning } else { Status::Ok };
    (status, format!("{sight}; {which} among them"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn set(luids: &[i64]) -> BTreeSet<i64> {
        luids.iter().copied().collect()
    }

    #[test]
    fn a_container_must_see_its_devices_and_should_see_no_other() {
        let host = set(&[1, 2, 3]);
        for (seen, allocated, status, what) in [
            (
                &[1, 9][..],
                &[1][..],
                Status::Ok,
                "1 of 3 devices of the host; the allocated device is among them",
            ),
            (
                &[1, 2, 3],
                &[2],
                Status::Warning,
                "3 of 3 devices of the host; the allocated device is among them",
            ),
            (
                &[1, 3],
                &[2],
                Status::Failed,
                "2 of 3 devices of the host; the allocated device is not among them",
            ),
            (
                &[],
                &[1, 2],
                Status::Failed,
                "0 of 3 devices of the host; the 2 allocated devices are not among them",
            ),
            (
                &[1],
                &[1, 2],
                Status::Failed,
                "1 of 3 devices of the host; the 2 allocated devices are not all among them",
            ),
            (
                &[1, 2],
                &[1, 2],
                Status::Ok,
                "2 of 3 devices of the host; the 2 allocated devices are among them",
            ),
        ] {
            let judged = judge(&set(seen), &set(allocated), &host);
            assert_eq!(judged, (status, format!("the container sees {what}")));
        }
    }

    #[test]
    fn only_the_list_of_the_program_is_a_list() {
        let list = r#"{"devices":[{"luid":5,"id":"x"}],"skipped":[{"luid":-2,"reason":"y"}]}"#;
        assert_eq!(seen_luids(list), Some(set(&[5, -2])));
        for other in ["", "[]", "{}", "no devices", r#"{"devices":[{"id":1}],"skipped":[]}"#] {
            assert_eq!(seen_luids(other), None, "{other}");
        }
    }

    proptest! {
        #[test]
        fn a_container_that_sees_exactly_its_devices_is_ok(
            host in prop::collection::btree_set(any::<i64>(), 1..6),
            take in 1_usize..6,
        ) {
            let allocated: BTreeSet<i64> = host.iter().copied().take(take).collect();
            prop_assert_eq!(judge(&allocated, &allocated, &host).0, Status::Ok);
        }
    }
}
