//! `discovery`: how long reading the adapters takes, and whether every reading is the same.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use devices::{AdapterSource, Criteria, HostSnapshot, discover};

use super::differences::differences;
use crate::doctor::finding::{Finding, Status, Subject, Value};
use crate::doctor::stop::Stop;

pub(super) const SUBJECT: Subject = Subject("discovery");

/// How often the adapters are read.
const READS: usize = 5;

/// Reads the host. The last snapshot is returned for the report.
pub(super) async fn run(
    inventory: Option<PathBuf>,
    stop: &Stop,
) -> (Finding, Option<HostSnapshot>) {
    match stop.or_on_thread(move || read(inventory.as_deref())).await {
        Ok(Ok(reads)) => (finding(&reads), reads.into_iter().map(|(_, read)| read).next_back()),
        Ok(Err(error)) => {
            let failed = SUBJECT.finding(Status::Failed, "the adapters cannot be read");
            (failed.detail([error]), None)
        }
        Err(reason) => (SUBJECT.unfinished(reason), None),
    }
}

fn read(inventory: Option<&Path>) -> Result<Vec<(Duration, HostSnapshot)>, String> {
    let mut source = open(inventory)?;
    let read = |_| {
        let began = Instant::now();
        snapshot(&mut *source).map(|read| (began.elapsed(), read))
    };
    (0..READS).map(read).collect()
}

/// Opens the host or the inventory.
pub(super) fn open(inventory: Option<&Path>) -> Result<Box<dyn AdapterSource>, String> {
    node::cli::open_host(inventory).map_err(|failure| failure.chain())
}

/// Reads the host or the inventory.
pub(super) fn snapshot(source: &mut dyn AdapterSource) -> Result<HostSnapshot, String> {
    source.snapshot().map_err(|error| node::cli::error_chain(&*error))
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
    SUBJECT
        .finding(status, what)
        .measured([
            ("readings", Value::Count(reads.len())),
            ("adapters", Value::Count(first.adapters.len())),
            ("devices", Value::Count(discover(first, Criteria::ALL).devices.len())),
            ("warnings", Value::Count(unread.len())),
            ("minMs", Value::Time(times[0])),
            ("medianMs", Value::Time(times[times.len() / 2])),
            ("maxMs", Value::Time(times[times.len() - 1])),
        ])
        .detail(changes)
        .detail(unread)
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
        let time = |key, ms| (key, Value::Time(Duration::from_millis(ms)));
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
}
