//! Whether the container sees the adapters that it was allocated, and only those.

use std::collections::BTreeSet;

use devices::Luid;
use serde::Serialize;
use thiserror::Error;
use visibility::{AllocationError, allocated};

use crate::outcome::{Kind, Outcome};
use crate::verdict::Software;

/// The most adapters that are a number and not a LUID.
const MOST_ADAPTERS: u32 = 64;

/// The adapters that were allocated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Expected {
    /// So many; the user gave no LUIDs.
    Number(u32),
    Luids(BTreeSet<Luid>),
}

/// A value of `--expect` that cannot be read.
#[derive(Error, Debug)]
pub(crate) enum ExpectedError {
    #[error("--expect names no allocated adapter")]
    Empty,
    #[error(
        "--expect has `{0}`, which is neither a LUID nor a number of adapters up to {MOST_ADAPTERS}"
    )]
    Malformed(String),
}

impl Expected {
    /// Reads LUIDs separated by commas, or a number of adapters.
    pub(crate) fn parse(text: &str) -> Result<Expected, ExpectedError> {
        if text.trim().is_empty() {
            return Err(ExpectedError::Empty);
        }
        if let Ok(number) = text.trim().parse::<u32>()
            && number <= MOST_ADAPTERS
        {
            return Ok(Expected::Number(number));
        }
        let luid = |word: &str| {
            let word = word.trim();
            word.parse().map(Luid).map_err(|_| ExpectedError::Malformed(word.to_owned()))
        };
        text.split(',').map(luid).collect::<Result<_, _>>().map(Expected::Luids)
    }

    /// The adapters that the device plugin allocated, of all resources, from the variables
    /// of this container.
    pub(crate) fn of_container<Text: AsRef<str> + Ord>(
        variables: &mut [(Text, Text)],
    ) -> Result<Expected, AllocationError<'_>> {
        let allowed = allocated(variables)?;
        Ok(Expected::Luids(allowed.as_slice().iter().copied().map(Luid).collect()))
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
    software: Software,
) -> Visibility {
    let counts = |kind| kind == Kind::Hardware || software == Software::Allowed;
    let mut luids = BTreeSet::new();
    let mut most = 0;
    for outcome in outcomes {
        let Outcome::Listed { devices, .. } = outcome else { continue };
        let counted = devices.iter().filter(|device| counts(device.info.kind));
        most = most.max(counted.clone().count());
        luids.extend(counted.filter_map(|device| device.info.luid.map(Luid)));
    }
    match expected {
        // An API without LUIDs may list more adapters than the others.
        Expected::Number(number) => {
            let visible = most.max(luids.len());
            Visibility {
                summary: format!("{number} allocated, {visible} visible"),
                missing: Vec::new(),
                extra: Vec::new(),
                is_as_allocated: usize::try_from(*number) == Ok(visible),
            }
        }
        Expected::Luids(allocated) => {
            let difference = |a: &BTreeSet<Luid>, b| a.difference(b).map(|luid| luid.0).collect();
            let (allocated_count, visible) = (allocated.len(), luids.len());
            Visibility {
                summary: format!("{allocated_count} allocated, {visible} visible"),
                missing: difference(allocated, &luids),
                extra: difference(&luids, allocated),
                is_as_allocated: *allocated == luids,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{DeviceInfo, DeviceOutcome, Library};

    fn listed(devices: &[(Kind, Option<i64>)]) -> Outcome {
        let device = |(kind, luid): &(Kind, Option<i64>)| DeviceOutcome {
            info: DeviceInfo { kind: *kind, luid: *luid, ..DeviceInfo::default() },
            fault: None,
            measurements: Vec::new(),
        };
        let library = Library { path: "x".into(), file_version: None, version: None };
        Outcome::Listed { library, devices: devices.iter().map(device).collect() }
    }

    fn visibility(expected: &str, outcomes: &[Outcome]) -> Visibility {
        let expected = Expected::parse(expected).unwrap();
        compare(&expected, outcomes.iter(), Software::Refused)
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
    fn the_adapters_of_all_resources_are_allocated() {
        let variables = [
            ("DIRECTX_VISIBLE_DEVICES", "2"),
            ("DIRECTX_VISIBLE_DEVICES_EXAMPLE_COM_A", "2"),
            ("DIRECTX_VISIBLE_DEVICES_EXAMPLE_COM_B", "-7"),
        ];
        let expected = Expected::of_container(&mut variables.to_vec()).unwrap();
        assert_eq!(expected, Expected::Luids([Luid(2), Luid(-7)].into()));
    }

    #[test]
    fn unreadable_lists_are_named() {
        let error = |text| Expected::parse(text).unwrap_err().to_string();
        assert_eq!(error(" "), "--expect names no allocated adapter");
        assert!(
            error("5,x").starts_with("--expect has `x`, which is neither "),
            "{}",
            error("5,x")
        );
    }
}
