//! `discovery`: how long reading the adapters takes, and whether every reading is the same.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use devices::{AdapterSource, Criteria, DeviceScope, Filter, HostSnapshot, discover};

use crate::differences::differences;
use crate::step::{Finding, Measurement, Outcome, Step};
use crate::stop::Stop;

/// How often the adapters are read.
const READS: usize = 5;

/// Reads the host. The last snapshot is returned for the report.
pub(crate) async fn run(
    inventory: Option<PathBuf>,
    stop: &Stop,
) -> (Finding, Option<HostSnapshot>) {
    match stop.or_on_thread(move || read(inventory.as_deref())).await {
        Ok(Ok(reads)) => (finding(&reads), reads.into_iter().map(|(_, read)| read).next_back()),
        Ok(Err(error)) => {
            let failed = Finding::failed(Step::Discovery, "the adapters cannot be read");
            (failed.detail([error]), None)
        }
        Err(reason) => (Finding::unfinished(Step::Discovery, reason), None),
    }
}

fn read(inventory: Option<&Path>) -> Result<Vec<(Duration, HostSnapshot)>, String> {
    let mut source = open(inventory)?;
    let mut reads = Vec::new();
    for _ in 0..READS {
        let began = Instant::now();
        let snapshot = source.snapshot().map_err(|error| cli::error_chain(&*error))?;
        reads.push((began.elapsed(), snapshot));
    }
    Ok(reads)
}

/// Opens the host or the inventory.
pub(crate) fn open(inventory: Option<&Path>) -> Result<Box<dyn AdapterSource>, String> {
    cli::open_host(inventory).map_err(|failure| failure.chain())
}

fn finding(reads: &[(Duration, HostSnapshot)]) -> Finding {
    let first = &reads[0].1;
    let changes: Vec<String> = reads[1..]
        .iter()
        .enumerate()
        .flat_map(|(n, (_, read))| {
            differences(first, read)
                .into_iter()
                .map(move |what| format!("reading {}: {what}", n + 2))
        })
        .collect();
    let unread: Vec<String> = first.warnings.iter().map(|warning| warning.text.clone()).collect();
    let (outcome, what) = if !changes.is_empty() {
        (Outcome::Warning, "the readings differ")
    } else if !unread.is_empty() {
        (Outcome::Warning, "the readings are equal, and some values cannot be read")
    } else {
        (Outcome::Ok, "the readings are equal")
    };
    let everything = Criteria {
        filter: Filter::All,
        integrated: DeviceScope::Include,
        detachable: DeviceScope::Include,
    };
    let devices = discover(first, everything).devices.len();
    Finding::new(Step::Discovery, outcome, what)
        .measured([
            Measurement::count("readings", reads.len()),
            Measurement::count("adapters", first.adapters.len()),
            Measurement::count("devices", devices),
            Measurement::count("warnings", unread.len()),
        ])
        .measured(times(reads.iter().map(|(time, _)| *time).collect()))
        .detail(changes)
        .detail(unread)
}

/// Minimum, median and maximum of at least one time.
fn times(mut times: Vec<Duration>) -> [Measurement; 3] {
    times.sort_unstable();
    [
        Measurement::time("minMs", times[0]),
        Measurement::time("medianMs", times[times.len() / 2]),
        Measurement::time("maxMs", times[times.len() - 1]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> HostSnapshot {
        let text = include_str!("../../../../fixtures/inventories/aws-t4-two.yaml");
        inventory::parse("two.yaml", text).unwrap()
    }

    #[test]
    fn readings_that_differ_are_a_warning_that_names_the_difference() {
        let reads = |last: HostSnapshot| {
            [(1, host()), (9, host()), (3, last)]
                .map(|(ms, read)| (Duration::from_millis(ms), read))
        };
        let same = finding(&reads(host()));
        assert_eq!(same.outcome, Outcome::Ok);
        let time = |key, ms| Measurement::time(key, Duration::from_millis(ms));
        assert_eq!(
            same.measurements[4..],
            [time("minMs", 1), time("medianMs", 3), time("maxMs", 9)]
        );
        let mut fewer = host();
        fewer.adapters.remove(1);
        let differing = finding(&reads(fewer));
        assert_eq!(differing.outcome, Outcome::Warning);
        assert_eq!(differing.details.len(), 1);
        assert!(differing.details[0].starts_with("reading 3: adapter "), "{differing:?}");
    }
}
