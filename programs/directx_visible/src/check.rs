//! `--check`: what each interface lists with and without the filter.

#![cfg_attr(not(windows), allow(dead_code, reason = "used on Windows"))]

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::allocation::list;

/// What one interface lists in a process; also what `--list` prints.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Listed {
    pub(crate) api: String,
    #[serde(flatten)]
    pub(crate) adapters: Adapters,
}

#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Adapters {
    Luids(Vec<i64>),
    /// Why the interface lists nothing.
    Unavailable(String),
}

/// The comparison.
#[derive(Serialize, Clone, PartialEq, Eq, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report {
    allocated: Vec<i64>,
    apis: Vec<Compared>,
    /// Whether every interface that works lists exactly the container's devices.
    is_as_allocated: bool,
}

#[derive(Serialize, Clone, PartialEq, Eq, Debug)]
#[serde(rename_all = "camelCase")]
struct Compared {
    api: String,
    unfiltered: Adapters,
    filtered: Adapters,
    is_as_allocated: bool,
}

impl Report {
    /// Compares the lists of two processes.
    pub(crate) fn new(allocated: &[i64], unfiltered: Vec<Listed>, filtered: &[Listed]) -> Report {
        let compare = |Listed { api, adapters }: Listed| {
            let missing = || Adapters::Unavailable("not reported".to_owned());
            let same = filtered.iter().find(|other| other.api == api);
            let filtered = same.map_or_else(missing, |other| other.adapters.clone());
            let is_as_allocated = is_as_allocated(allocated, &adapters, &filtered);
            Compared { api, unfiltered: adapters, filtered, is_as_allocated }
        };
        let apis: Vec<Compared> = unfiltered.into_iter().map(compare).collect();
        let works = |compared: &Compared| matches!(compared.filtered, Adapters::Luids(_));
        // Without a single list nothing is known.
        let is_as_allocated =
            apis.iter().any(works) && apis.iter().all(|compared| compared.is_as_allocated);
        Report { allocated: allocated.to_vec(), apis, is_as_allocated }
    }

    /// 0, or 1 for a difference.
    pub(crate) fn exit_code(&self) -> u32 {
        u32::from(!self.is_as_allocated)
    }

    /// For people.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("allocated: {}\n", list(&self.allocated));
        for Compared { api, unfiltered, filtered, is_as_allocated } in &self.apis {
            let verdict = if *is_as_allocated { "ok" } else { "DIFFERENT" };
            let (before, after) = (shown(unfiltered), shown(filtered));
            let _ = writeln!(text, "{verdict:<10}{api}: {before} -> {after}");
        }
        let summary = if self.is_as_allocated {
            "the filter shows exactly the container's devices"
        } else {
            "the filter does not show exactly the container's devices"
        };
        let _ = writeln!(text, "{summary}");
        text
    }
}

/// Whether the filtered list has no adapter that was not allocated, and every allocated
/// one that the unfiltered list has. Neither contains software adapters.
fn is_as_allocated(allocated: &[i64], unfiltered: &Adapters, filtered: &Adapters) -> bool {
    match (unfiltered, filtered) {
        (Adapters::Luids(before), Adapters::Luids(after)) => {
            after.iter().all(|luid| allocated.contains(luid))
                && allocated.iter().all(|luid| !before.contains(luid) || after.contains(luid))
        }
        (Adapters::Unavailable(_), Adapters::Unavailable(_)) => true,
        _ => false,
    }
}

fn shown(adapters: &Adapters) -> String {
    match adapters {
        Adapters::Luids(luids) if luids.is_empty() => "none".to_owned(),
        Adapters::Luids(luids) => list(luids),
        Adapters::Unavailable(why) => format!("unavailable ({why})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(api: &str, luids: &[i64]) -> Listed {
        Listed { api: api.to_owned(), adapters: Adapters::Luids(luids.to_vec()) }
    }

    fn unavailable(api: &str) -> Listed {
        Listed { api: api.to_owned(), adapters: Adapters::Unavailable("no".to_owned()) }
    }

    #[test]
    fn a_filtered_list_has_the_allocated_adapters_and_no_other() {
        let code = |before: &[i64], after: &[i64]| {
            Report::new(&[1], vec![listed("A", before)], &[listed("A", after)]).exit_code()
        };
        assert_eq!(code(&[1, 2], &[1]), 0);
        assert_eq!(code(&[1, 2], &[1, 2]), 1, "nothing hidden");
        assert_eq!(code(&[1, 2], &[]), 1, "too much hidden");
        assert_eq!(code(&[2], &[]), 0, "an interface that does not list the device");
    }

    #[test]
    fn interfaces_that_do_not_work_are_no_evidence() {
        let report = Report::new(&[1], vec![unavailable("A")], &[unavailable("A")]);
        assert_eq!(report.exit_code(), 1);
        let both = vec![listed("A", &[1, 2]), unavailable("B")];
        let report = Report::new(&[1], both.clone(), &[listed("A", &[1]), unavailable("B")]);
        assert_eq!(report.exit_code(), 0);
        assert_eq!(Report::new(&[1], both, &[listed("A", &[1])]).exit_code(), 0);
        let lost = Report::new(&[1], vec![listed("A", &[1])], &[unavailable("A")]);
        assert_eq!(lost.exit_code(), 1);
    }

    #[test]
    fn the_comparison_is_printed_for_people_and_programs() {
        let before = vec![listed("A", &[1, 2]), unavailable("B")];
        let report = Report::new(&[1], before, &[listed("A", &[1]), unavailable("B")]);
        assert_eq!(
            report.text(),
            "allocated: 1\nok        A: 1, 2 -> 1\nok        B: unavailable (no) -> unavailable \
             (no)\nthe filter shows exactly the container's devices\n"
        );
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["apis"][0]["filtered"]["luids"][0], 1);
        assert_eq!(json["apis"][1]["unfiltered"]["unavailable"], "no");
        assert_eq!(json["isAsAllocated"], true);
    }
}
