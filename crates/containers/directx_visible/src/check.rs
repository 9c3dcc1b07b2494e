//! `--check`: what each API lists with and without the filter, compared with the devices of
//! the container.

use std::fmt::Write as _;

use gpu_probe::Api;
use gpu_probe::lists::{Adapters, Listed};
use serde::Serialize;

use crate::allocation::list;

/// The lists of a process without lists: `adapters` stands for every call.
pub(crate) fn one(adapters: Adapters) -> Vec<Listed> {
    vec![Listed { call: EVERY_CALL.to_owned(), adapters }]
}

const EVERY_CALL: &str = "every call";

/// The call whose list of a child process is compared. Every Windows has it.
const CALL_OF_CHILDREN: &str = "D3DKMTEnumAdapters2";

/// Removes devices that are not in `known`.
pub(crate) fn keep(lists: &mut [Listed], known: &[i64]) {
    for Listed { adapters, .. } in lists {
        if let Adapters::Devices { luids, .. } = adapters {
            luids.retain(|luid| known.contains(luid));
        }
    }
}

/// The adapters that `call` listed. If an earlier step failed, it is the only entry of `lists`.
fn of(lists: &[Listed], call: &str) -> Adapters {
    let same = lists.iter().find(|listed| listed.call == call);
    let found = same.or_else(|| lists.first().filter(|_| lists.len() == 1));
    match found {
        Some(listed) => listed.adapters.clone(),
        None => Adapters::Absent("not reported".to_owned()),
    }
}

fn luids(adapters: &Adapters) -> &[i64] {
    match adapters {
        Adapters::Devices { luids, .. } => luids,
        _ => &[],
    }
}

/// The adapters that are compared: all that can be allocated, and all that were allocated.
pub(crate) fn known(allocated: &[i64], adapters: Option<&[i64]>) -> Vec<i64> {
    let others = adapters.unwrap_or_default().iter().filter(|luid| !allocated.contains(luid));
    allocated.iter().chain(others).copied().collect()
}

/// The result of the comparison.
#[derive(Serialize, Clone, PartialEq, Eq, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report {
    allocated: Vec<i64>,
    apis: Vec<Compared>,
    /// Whether every call that works lists exactly the container's devices.
    is_as_allocated: bool,
    /// The adapters that DXGI lists without the filter. Direct3D chooses its default from them.
    #[serde(skip)]
    offered: Vec<i64>,
}

/// What a call lists without and with the filter.
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
    /// The call lists the devices of the container, and no others.
    Ok,
    /// The call lists other devices, or the filter hides devices of the container.
    Different,
    /// The version of Windows or the container does not have the call.
    Absent,
    /// The call does not work without the filter either.
    Failed,
}

impl Report {
    pub(crate) fn new(allocated: &[i64]) -> Report {
        let allocated = allocated.to_vec();
        Report { allocated, apis: Vec::new(), is_as_allocated: false, offered: Vec::new() }
    }

    /// Compares the lists of two processes.
    pub(crate) fn add(&mut self, api: Api, unfiltered: &[Listed], filtered: &[Listed]) {
        // A process whose first step fails has fewer calls.
        let is_longer = filtered.len() > unfiltered.len();
        let is_stopped = unfiltered.iter().any(|listed| listed.call == EVERY_CALL);
        for Listed { call, .. } in if is_longer || is_stopped { filtered } else { unfiltered } {
            let before = of(unfiltered, call);
            let after = of(filtered, call);
            if api == Api::Dxgi {
                self.offered.extend(luids(&before));
            }
            // Direct3D lists only the device that it uses if a program names none.
            let is_default = matches!(api, Api::D3d11 | Api::D3d12);
            let offered = if is_default { &self.offered } else { luids(&before) };
            let verdict = self.verdict(offered, is_default, &before, &after);
            self.push(api.name(), call, verdict, before, after);
        }
    }

    /// Compares what the child processes of the program `parent` list.
    pub(crate) fn add_child(&mut self, parent: &str, unfiltered: &[Listed], filtered: &[Listed]) {
        let before = of(unfiltered, CALL_OF_CHILDREN);
        let after = of(filtered, CALL_OF_CHILDREN);
        let verdict = self.verdict(luids(&before), false, &before, &after);
        self.push("child", parent, verdict, before, after);
    }

    fn push(
        &mut self,
        api: &'static str,
        call: &str,
        verdict: Verdict,
        unfiltered: Adapters,
        filtered: Adapters,
    ) {
        let call = call.to_owned();
        self.apis.push(Compared { api, call, verdict, unfiltered, filtered });
        // Without a single list nothing is known.
        self.is_as_allocated = self.has(Verdict::Ok) && !self.has(Verdict::Different);
    }

    fn has(&self, verdict: Verdict) -> bool {
        self.apis.iter().any(|compared| compared.verdict == verdict)
    }

    /// Judges a call that can list the devices `offered`, or only one of them, the default.
    fn verdict(
        &self,
        offered: &[i64],
        is_default: bool,
        before: &Adapters,
        after: &Adapters,
    ) -> Verdict {
        let mut own = offered.iter().filter(|luid| self.allocated.contains(luid));
        let should_list_more = if is_default {
            own.next().is_some() && luids(after).is_empty()
        } else {
            own.any(|luid| !luids(after).contains(luid))
        };
        let has_lost = !luids(before).is_empty() && should_list_more;
        let has_others = !luids(after).iter().all(|luid| self.allocated.contains(luid));
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

    /// The exit code of the program: 0, or 1 for a difference.
    pub(crate) fn exit_code(&self) -> u32 {
        u32::from(!self.is_as_allocated)
    }

    /// The human-readable report.
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
