//! `--check`: what each API lists with and without the filter, compared with the devices of
//! the container.

#![cfg_attr(not(windows), allow(dead_code, reason = "used on Windows"))]

use std::fmt::Write as _;

use gpu_lists::{Api, Scope};
use serde::Serialize;

use crate::allocation::list;

/// What one call lists in a process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Listed {
    pub(crate) call: String,
    pub(crate) adapters: Adapters,
}

#[derive(Serialize, Clone, PartialEq, Eq, Debug)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum Adapters {
    Devices {
        luids: Vec<i64>,
        without_luid: usize,
    },
    /// Why the call does not exist.
    Absent(String),
    /// Its error.
    Failed(String),
    /// How the process ended without a result.
    Stopped(String),
}

impl Adapters {
    fn luids(&self) -> &[i64] {
        match self {
            Adapters::Devices { luids, .. } => luids,
            _ => &[],
        }
    }
}

/// The result of a process that lists with one API.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Run {
    /// At least one list.
    Lists(Vec<Listed>),
    /// How it ended without a result.
    Stopped(String),
}

impl Run {
    /// Removes devices that are not in `known`.
    pub(crate) fn keep(&mut self, known: &[i64]) {
        let Run::Lists(lists) = self else { return };
        for Listed { adapters, .. } in lists {
            if let Adapters::Devices { luids, .. } = adapters {
                luids.retain(|luid| known.contains(luid));
            }
        }
    }

    fn calls(&self) -> Vec<&str> {
        match self {
            Run::Lists(lists) => lists.iter().map(|listed| &*listed.call).collect(),
            Run::Stopped(_) => Vec::new(),
        }
    }

    /// What `call` listed. A step that failed before it is the only one of a process.
    fn of(&self, call: &str) -> Adapters {
        match self {
            Run::Stopped(why) => Adapters::Stopped(why.clone()),
            Run::Lists(lists) => {
                let same = lists.iter().find(|listed| listed.call == call);
                let found = same.or_else(|| lists.first().filter(|_| lists.len() == 1));
                let missing = || Adapters::Absent("not reported".to_owned());
                found.map_or_else(missing, |listed| listed.adapters.clone())
            }
        }
    }
}

/// Lists as one line, which [`read`] reads: a parser of JSON would make the program larger.
pub(crate) fn printed(lists: &[Listed]) -> String {
    let fields = |Listed { call, adapters }: &Listed| {
        let (kind, text, number) = match adapters {
            Adapters::Devices { luids, without_luid } => ("devices", list(luids), *without_luid),
            Adapters::Absent(why) => ("absent", why.clone(), 0),
            Adapters::Failed(why) | Adapters::Stopped(why) => ("failed", why.clone(), 0),
        };
        format!("{call}\t{kind}\t{number}\t{}", text.replace(['\t', '\r', '\n'], " "))
    };
    lists.iter().map(fields).collect::<Vec<_>>().join("\t")
}

/// Reads the line of [`printed`]; `None` if it is not complete.
pub(crate) fn read(line: &str) -> Option<Vec<Listed>> {
    let fields: Vec<&str> = line.split('\t').collect();
    let (lists, rest) = fields.as_chunks::<4>();
    let listed = |[call, kind, number, text]: &[&str; 4]| {
        let adapters = match *kind {
            "devices" => {
                let luids = text.split(", ").filter(|luid| !luid.is_empty());
                let luids = luids.map(|luid| luid.parse().ok()).collect::<Option<_>>()?;
                Adapters::Devices { luids, without_luid: number.parse().ok()? }
            }
            "absent" => Adapters::Absent((*text).to_owned()),
            "failed" => Adapters::Failed((*text).to_owned()),
            _ => return None,
        };
        Some(Listed { call: (*call).to_owned(), adapters })
    };
    if !rest.is_empty() {
        return None;
    }
    lists.iter().map(listed).collect()
}

/// The adapters that are compared: those that can be allocated, and those that were.
pub(crate) fn known(allocated: &[i64], adapters: Option<&[i64]>) -> Vec<i64> {
    let adapters = adapters.unwrap_or_default().iter();
    let others = adapters.filter(|luid| !allocated.contains(luid));
    allocated.iter().chain(others).copied().collect()
}

/// The comparison.
#[derive(Serialize, Clone, PartialEq, Eq, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report {
    allocated: Vec<i64>,
    apis: Vec<Compared>,
    /// Whether every call that works lists exactly the container's devices.
    is_as_allocated: bool,
    /// What DXGI lists without the filter: Direct3D chooses its default among them.
    #[serde(skip)]
    offered: Vec<i64>,
}

/// One call.
#[derive(Serialize, Clone, PartialEq, Eq, Debug)]
#[serde(rename_all = "camelCase")]
struct Compared {
    api: &'static str,
    call: String,
    verdict: Verdict,
    unfiltered: Adapters,
    filtered: Adapters,
}

#[derive(Serialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "camelCase")]
enum Verdict {
    /// It lists the devices of the container, and no others.
    Ok,
    /// It lists others, or lost devices of the container.
    Different,
    /// This Windows or container does not have it.
    Absent,
    /// It does not work without the filter either.
    Failed,
}

impl Report {
    pub(crate) fn new(allocated: &[i64]) -> Report {
        let allocated = allocated.to_vec();
        Report { allocated, apis: Vec::new(), is_as_allocated: false, offered: Vec::new() }
    }

    /// Compares the lists of two processes.
    pub(crate) fn add(&mut self, api: Api, unfiltered: &Run, filtered: &Run) {
        // A process whose first step fails has fewer calls.
        let (before, after) = (unfiltered.calls(), filtered.calls());
        let calls = match if after.len() > before.len() { after } else { before } {
            none if none.is_empty() => vec!["every call"],
            calls => calls,
        };
        for call in calls {
            let (before, after) = (unfiltered.of(call), filtered.of(call));
            if api == Api::Dxgi {
                self.offered.extend(before.luids());
            }
            let verdict = match api.scope() {
                Scope::Every => self.verdict(before.luids(), &before, &after, Self::lost_any),
                Scope::Default => self.verdict(&self.offered, &before, &after, Self::lost_all),
            };
            let (api, call) = (api.name(), call.to_owned());
            self.apis.push(Compared { api, call, verdict, unfiltered: before, filtered: after });
        }
        let has = |verdict| self.apis.iter().any(|compared| compared.verdict == verdict);
        // Without a single list nothing is known.
        self.is_as_allocated = has(Verdict::Ok) && !has(Verdict::Different);
    }

    /// Judges a call that can list the devices `offered`. `lost` says whether it should list
    /// more of those of the container.
    fn verdict(
        &self,
        offered: &[i64],
        before: &Adapters,
        after: &Adapters,
        lost: fn(own: &[i64], after: &[i64]) -> bool,
    ) -> Verdict {
        let is_own = |luid: &&i64| self.allocated.contains(luid);
        let own: Vec<i64> = offered.iter().filter(is_own).copied().collect();
        let has_lost = !before.luids().is_empty() && lost(&own, after.luids());
        let has_others = !after.luids().iter().all(|luid| self.allocated.contains(luid));
        match (before, after) {
            _ if has_others || has_lost => Verdict::Different,
            (Adapters::Stopped(_), Adapters::Stopped(_)) => Verdict::Failed,
            (_, Adapters::Stopped(_)) => Verdict::Different,
            // Only other devices were listed, so a refusal hides them as well.
            (_, Adapters::Devices { .. }) | (Adapters::Devices { .. }, _) => Verdict::Ok,
            (_, Adapters::Absent(_)) => Verdict::Absent,
            (_, Adapters::Failed(_)) => Verdict::Failed,
        }
    }

    fn lost_any(own: &[i64], after: &[i64]) -> bool {
        !own.iter().all(|luid| after.contains(luid))
    }

    fn lost_all(own: &[i64], after: &[i64]) -> bool {
        !own.is_empty() && after.is_empty()
    }

    /// 0, or 1 for a difference.
    pub(crate) fn exit_code(&self) -> u32 {
        u32::from(!self.is_as_allocated)
    }

    /// For people.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("allocated: {}\n", list(&self.allocated));
        for Compared { api, call, verdict, unfiltered, filtered } in &self.apis {
            let verdict = match verdict {
                Verdict::Ok => "ok",
                Verdict::Different => "DIFFERENT",
                Verdict::Absent => "absent",
                Verdict::Failed => "failed",
            };
            let change = match (shown(unfiltered), shown(filtered)) {
                (before, after) if before == after => before,
                (before, after) => format!("{before} -> {after}"),
            };
            let _ = writeln!(text, "{verdict:<10}{api:<8}{call}: {change}");
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

fn shown(adapters: &Adapters) -> String {
    match adapters {
        Adapters::Devices { luids, without_luid } => {
            let unknown = (*without_luid > 0).then(|| format!("{without_luid} without LUID"));
            let known = (!luids.is_empty()).then(|| list(luids));
            let parts: Vec<String> = known.into_iter().chain(unknown).collect();
            if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
        }
        Adapters::Absent(why) => why.clone(),
        Adapters::Failed(why) | Adapters::Stopped(why) => format!("failed ({why})"),
    }
}

#[cfg(test)]
mod tests;
