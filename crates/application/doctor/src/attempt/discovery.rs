//! `discovery`: how long reading the adapters takes, and whether every reading is the same.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use command_line::{OnStep, read_live};
use devices::{Criteria, discover};
use host::{Adapter, AdapterSource, HostSnapshot, Luid};

use crate::finding::{Finding, Status, millis};
use crate::step::Step;
use crate::stop::Stop;

const READS: usize = 5;

/// Reads the host. One of the snapshots is returned for the report.
pub(super) async fn run(
    inventory: Option<PathBuf>,
    stop: &Stop,
) -> anyhow::Result<(Finding, HostSnapshot)> {
    let mut reads = read(inventory, READS, stop).await?;
    Ok((finding(&reads), reads.swap_remove(0).1))
}

/// Reads the host or the inventory this often, and measures how long each reading takes.
pub(super) async fn read(
    inventory: Option<PathBuf>,
    times: usize,
    stop: &Stop,
) -> anyhow::Result<Vec<(Duration, HostSnapshot)>> {
    let reads = stop.or_on_thread(move || match &inventory {
        Some(path) => measured_reads(Some(path), times, Arc::new(|_| ())),
        None => read_live(move |on_step| measured_reads(None, times, on_step))?,
    });
    reads.await?.context("the adapters cannot be read")
}

fn measured_reads(
    inventory: Option<&Path>,
    times: usize,
    on_step: OnStep,
) -> anyhow::Result<Vec<(Duration, HostSnapshot)>> {
    let mut source = open(inventory)?;
    source.report_steps(Box::new(move |step| on_step(step.to_string())));
    let mut reads = Vec::new();
    for _ in 0..times {
        let began = Instant::now();
        let read = snapshot(&mut *source)?;
        reads.push((began.elapsed(), read));
    }
    Ok(reads)
}

pub(super) fn open(inventory: Option<&Path>) -> anyhow::Result<Box<dyn AdapterSource>> {
    Ok(command_line::open_host(inventory)?)
}

pub(super) fn snapshot(source: &mut dyn AdapterSource) -> anyhow::Result<HostSnapshot> {
    source.snapshot().map_err(anyhow::Error::from_boxed)
}

fn finding(reads: &[(Duration, HostSnapshot)]) -> Finding {
    let first = &reads[0].1;
    let mut changes = Vec::new();
    for (n, (_, read)) in reads.iter().enumerate().skip(1) {
        let different = differences(first, read).into_iter();
        changes.extend(different.map(|what| format!("reading {}: {what}", n + 1)));
    }
    let unread: Vec<String> = first.warnings.iter().map(|warning| warning.text.clone()).collect();
    let (status, what) = if !changes.is_empty() {
        (Status::Warning, "the readings differ")
    } else if !unread.is_empty() {
        (Status::Warning, "the readings are equal, and some values cannot be read")
    } else {
        (Status::Ok, "the readings are equal")
    };
    let mut times: Vec<Duration> = reads.iter().map(|(time, _)| *time).collect();
    times.sort_unstable();
    Step::Discovery
        .finding(status, what)
        .measured([
            ("readings", reads.len().into()),
            ("adapters", first.adapters.len().into()),
            ("devices", discover(first, Criteria::ALL).devices.len().into()),
            ("warnings", unread.len().into()),
            ("minMs", millis(times[0])),
            ("medianMs", millis(times[times.len() / 2])),
            ("maxMs", millis(times[times.len() - 1])),
        ])
        .detail(changes)
        .detail(unread)
}

/// Each difference from `before` to `after`, in words.
pub(super) fn differences(before: &HostSnapshot, after: &HostSnapshot) -> Vec<String> {
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
        let others = "the order of the adapters, a device without an adapter, the host's facts or \
                      a warning changed";
        found.push(others.to_owned());
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

    fn host() -> HostSnapshot {
        let text = include_str!("../../../../../fixtures/inventories/aws-t4-two.yaml");
        config::inventory::parse("two.yaml", text).unwrap()
    }

    #[test]
    fn readings_that_differ_are_a_warning_that_names_the_difference() {
        let reads = |last: HostSnapshot| {
            [(1, host()), (9, host()), (3, last)]
                .map(|(ms, read)| (Duration::from_millis(ms), read))
        };
        let same = finding(&reads(host()));
        assert_eq!(same.status, Status::Ok);
        let time = |key, ms| (key, millis(Duration::from_millis(ms)));
        assert_eq!(
            same.measurements[4..],
            [time("minMs", 1), time("medianMs", 3), time("maxMs", 9)]
        );
        let mut fewer = host();
        fewer.adapters.remove(1);
        let differing = finding(&reads(fewer));
        assert_eq!(differing.status, Status::Warning);
        assert_eq!(differing.details.len(), 1);
        assert!(differing.details[0].starts_with("reading 3: adapter "), "{differing:?}");
    }

    #[test]
    fn every_kind_of_difference_is_named() {
        let host = host();
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
            let what = "the order of the adapters, a device without an adapter, the host's facts \
                        or a warning changed";
            assert_eq!(changed(change), [what]);
        }
    }
}
