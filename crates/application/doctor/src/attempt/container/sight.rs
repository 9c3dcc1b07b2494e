//! Which devices a container sees, compared with those that it got.

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::finding::{Finding, Status, number_of};
use crate::step::Step;

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

/// Judges the list that a container printed; `None` if the text is not such a list.
pub(super) fn judge(
    text: &str,
    allocated: &BTreeSet<i64>,
    host: &BTreeSet<i64>,
) -> Option<Finding> {
    let listed: Listed = serde_json::from_str(text).ok()?;
    let seen: BTreeSet<i64> =
        listed.devices.iter().chain(&listed.skipped).map(|adapter| adapter.luid).collect();
    let of_host = seen.intersection(host).count();
    let all = number_of(host.len(), "device");
    let sight = format!("the container sees {of_host} of {all} of the host");
    let which = match allocated.len() {
        1 => "the allocated device is".to_owned(),
        several => format!("the {several} allocated devices are"),
    };
    let among = allocated.intersection(&seen).count();
    let (status, not) = match among {
        all if all == allocated.len() && of_host > all => (Status::Warning, ""),
        all if all == allocated.len() => (Status::Ok, ""),
        0 => (Status::Failed, "not "),
        _ => (Status::Failed, "not all "),
    };
    let finding = Step::Container.finding(status, format!("{sight}; {which} {not}among them"));
    Some(finding.measured([("allocated", allocated.len().into()), ("seen", seen.len().into())]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn set(luids: &[i64]) -> BTreeSet<i64> {
        luids.iter().copied().collect()
    }

    fn list(luids: &[i64]) -> String {
        let devices: Vec<_> = luids.iter().map(|luid| json!({"luid": luid, "id": "x"})).collect();
        json!({"devices": devices, "skipped": [{"luid": -2, "reason": "y"}]}).to_string()
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
            let judged = judge(&list(seen), &set(allocated), &host).unwrap();
            assert_eq!(
                (judged.status, judged.what),
                (status, format!("the container sees {what}"))
            );
        }
    }

    #[test]
    fn only_the_list_of_the_program_is_a_list() {
        let skipped = judge(&list(&[5]), &set(&[5, -2]), &set(&[5, -2])).unwrap();
        assert_eq!(skipped.status, Status::Ok);
        for other in ["", "[]", "{}", "no devices", r#"{"devices":[{"id":1}],"skipped":[]}"#] {
            assert_eq!(judge(other, &set(&[1]), &set(&[1])), None, "{other}");
        }
    }

    proptest! {
        #[test]
        fn a_container_that_sees_exactly_its_devices_is_ok(
            host in prop::collection::btree_set(0..i64::MAX, 1..6),
            take in 1_usize..6,
        ) {
            let allocated: BTreeSet<i64> = host.iter().copied().take(take).collect();
            let seen: Vec<i64> = allocated.iter().copied().collect();
            prop_assert_eq!(judge(&list(&seen), &allocated, &host).unwrap().status, Status::Ok);
        }
    }
}
