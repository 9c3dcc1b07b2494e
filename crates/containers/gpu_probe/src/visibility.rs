//! Whether the container sees the adapters that it was allocated, and only those.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::outcome::Outcome;

/// The largest number that is a number of adapters and not a LUID.
const MOST_ADAPTERS: u32 = 64;

/// The adapters that were allocated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Expected {
    /// The number of adapters; the user gave no LUIDs.
    Number(u32),
    Luids(BTreeSet<i64>),
}

impl Expected {
    /// Reads LUIDs separated by commas, or a number of adapters. An error is a message.
    pub(crate) fn parse(text: &str) -> Result<Expected, String> {
        if text.trim().is_empty() {
            return Err("--expect names no allocated adapter".to_owned());
        }
        if let Ok(number) = text.trim().parse::<u32>()
            && number <= MOST_ADAPTERS
        {
            return Ok(Expected::Number(number));
        }
        let mut luids = BTreeSet::new();
        for word in text.split(',').map(str::trim) {
            luids.insert(word.parse().map_err(|_| {
                format!(
                    "--expect has `{word}`, which is neither a LUID nor a number of adapters up to \
                     {MOST_ADAPTERS}"
                )
            })?);
        }
        Ok(Expected::Luids(luids))
    }
}

/// The result of the comparison.
#[derive(Serialize, Clone, PartialEq, Eq, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Visibility {
    /// The allocated and the visible adapters, for people.
    pub(crate) summary: String,
    /// Allocated adapters that no API lists.
    pub(crate) missing: Vec<i64>,
    /// Adapters that an API lists although they were not allocated.
    pub(crate) extra: Vec<i64>,
    pub(crate) is_as_allocated: bool,
}

/// Compares what the APIs list with what was allocated.
pub(crate) fn compare<'a>(
    expected: &Expected,
    outcomes: impl Iterator<Item = &'a Outcome>,
    allow_software: bool,
) -> Visibility {
    let mut luids = BTreeSet::new();
    let mut most = 0;
    for outcome in outcomes {
        let Outcome::Listed { devices, .. } = outcome else { continue };
        let counted = devices.iter().filter(|device| device.info.kind.counts(allow_software));
        most = most.max(counted.clone().count());
        luids.extend(counted.filter_map(|device| device.info.luid));
    }
    let (allocated, visible, missing, extra) = match expected {
        // An API without LUIDs may list more adapters than the others.
        Expected::Number(number) => (*number as usize, most.max(luids.len()), vec![], vec![]),
        Expected::Luids(allocated) => {
            let missing = allocated.difference(&luids).copied().collect();
            let extra = luids.difference(allocated).copied().collect();
            (allocated.len(), luids.len(), missing, extra)
        }
    };
    Visibility {
        summary: format!("{allocated} allocated, {visible} visible"),
        is_as_allocated: allocated == visible && missing.is_empty() && extra.is_empty(),
        missing,
        extra,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{DeviceInfo, DeviceOutcome, Kind, Library};

    fn listed(devices: &[(Kind, Option<i64>)]) -> Outcome {
        let devices = devices.iter().map(|(kind, luid)| DeviceOutcome {
            info: DeviceInfo { kind: *kind, luid: *luid, ..DeviceInfo::default() },
            fault: None,
            first_run_milliseconds: None,
        });
        Outcome::Listed { library: Library::new("x"), devices: devices.collect() }
    }

    fn visibility(expected: &str, outcomes: &[Outcome]) -> Visibility {
        let expected = Expected::parse(expected).unwrap();
        compare(&expected, outcomes.iter(), false)
    }

    #[test]
    fn an_adapter_that_several_apis_list_counts_once() {
        let hardware = listed(&[(Kind::Hardware, Some(70_000)), (Kind::Software, Some(9))]);
        let found = visibility("70000", &[hardware.clone(), hardware.clone()]);
        assert!(found.is_as_allocated, "{found:?}");
        assert!(visibility("1", &[hardware.clone(), hardware]).is_as_allocated);
    }

    #[test]
    fn missing_and_extra_adapters_are_named() {
        let outcomes = [listed(&[(Kind::Hardware, Some(70_000)), (Kind::Hardware, Some(80_000))])];
        let found = visibility("70000,-5", &outcomes);
        assert_eq!((found.missing, found.extra), (vec![-5], vec![80_000]));
        assert!(!found.is_as_allocated);
        assert!(!visibility("1", &outcomes).is_as_allocated);
    }

    #[test]
    fn adapters_without_luids_count_by_number() {
        let outcomes = [listed(&[(Kind::Hardware, None), (Kind::Hardware, None)])];
        assert!(visibility("2", &outcomes).is_as_allocated);
        assert_eq!(visibility("1", &outcomes).summary, "1 allocated, 2 visible");
    }

    #[test]
    fn unreadable_lists_are_named() {
        let empty = Expected::parse(" ").unwrap_err();
        assert_eq!(empty, "--expect names no allocated adapter");
        let malformed = Expected::parse("5,x").unwrap_err();
        assert!(malformed.starts_with("--expect has `x`, which is neither "), "{malformed}");
    }
}
