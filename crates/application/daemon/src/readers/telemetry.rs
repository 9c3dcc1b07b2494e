//! What the devices do, for metrics: read at most once a second.
//!
//! A driver that hangs cannot be stopped, so there is at most one reading, and a caller waits for
//! it only for a short time. Until it ends, callers get the values of the reading before.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use host::{EngineKind, EngineTelemetry, Luid, MemoryUse, Telemetry};
use tokio::time::Instant;

use crate::readers::background_query::BackgroundQuery;
use crate::readers::latest_answer::{Ask, LatestAnswer};

/// Reads adapters. It blocks, perhaps forever.
type ReadTelemetry = Box<dyn FnMut(&[Luid]) -> Vec<(Luid, io::Result<Telemetry>)> + Send>;

/// The shortest time between the beginnings of two readings.
const INTERVAL: Duration = Duration::from_secs(1);

/// How long a caller waits for a reading. A scrape of Prometheus may take ten seconds.
const LIMIT: Duration = Duration::from_millis(500);

/// One MiB, in bytes.
const MIB: u64 = 1024 * 1024;

/// The values of the adapters that could be read.
pub(crate) type Values = Arc<BTreeMap<Luid, Telemetry>>;

/// Reads the devices of a host.
pub(crate) type DeviceTelemetry = LatestAnswer<Vec<Luid>, Values>;

/// The devices of the inventory at this path, or of this host.
pub(crate) fn of(inventory: Option<PathBuf>) -> DeviceTelemetry {
    answers(match inventory {
        Some(path) => Some(constant_loads(path)),
        #[cfg(windows)]
        None => Some(Box::new(win32::read_telemetry)),
        #[cfg(not(windows))]
        None => None,
    })
}

/// Reads the loads in the inventory at this path. An engine is busy for its part of the time
/// between two readings. An adapter without a load reports nothing.
fn constant_loads(path: PathBuf) -> ReadTelemetry {
    let mut busy: BTreeMap<Luid, Duration> = BTreeMap::new();
    let mut last = Instant::now();
    Box::new(move |luids| {
        let now = Instant::now();
        let elapsed = now - std::mem::replace(&mut last, now);
        // A file that cannot be read is an error of the snapshot.
        let adapters = config::inventory::read(&path).unwrap_or_default().adapters;
        let mut values = Vec::new();
        for adapter in adapters.iter().filter(|adapter| luids.contains(&adapter.luid)) {
            let Some(load) = adapter.load else { continue };
            let running_time = busy.entry(adapter.luid).or_default();
            *running_time += elapsed * load.utilization_percent / 100;
            let engine = EngineTelemetry {
                index: 0,
                kind: EngineKind::ThreeD,
                name: None,
                running_time: *running_time,
            };
            let dedicated = MemoryUse {
                used_bytes: load.used_memory_mib.saturating_mul(MIB),
                budget_bytes: adapter.dedicated_memory_mib.map(|memory| memory.saturating_mul(MIB)),
            };
            let telemetry = Telemetry {
                engines: vec![engine],
                dedicated: Some(dedicated),
                ..Telemetry::default()
            };
            values.push((adapter.luid, Ok(telemetry)));
        }
        values
    })
}

fn answers(read: Option<ReadTelemetry>) -> DeviceTelemetry {
    let ask = read.map(|mut read| -> Ask<Vec<Luid>, Values> {
        Box::new(move |luids| {
            let mut values = BTreeMap::new();
            let mut failures = 0;
            for (luid, result) in read(&luids) {
                match result {
                    Ok(telemetry) => _ = values.insert(luid, telemetry),
                    Err(error) => {
                        tracing::debug!(luid = luid.0, %error, "cannot read device telemetry");
                        failures += 1;
                    }
                }
            }
            (Some(Arc::new(values)), failures)
        })
    });
    let query = BackgroundQuery::new("telemetry", "metrics have the last known values");
    LatestAnswer::new(query, INTERVAL, LIMIT, ask)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LUID: Luid = Luid(7);

    #[tokio::test]
    async fn adapters_that_fail_are_counted() {
        let telemetry = answers(Some(Box::new(|luids| {
            let result = |luid: &Luid| match *luid {
                LUID => Ok(Telemetry { temperature_celsius: Some(50.0), ..Telemetry::default() }),
                _ => Err(io::Error::other("the adapter was removed")),
            };
            luids.iter().map(|luid| (*luid, result(luid))).collect()
        })));
        let (values, _age) = telemetry.get(vec![LUID, Luid(8)]).await.unwrap();
        let celsius: Vec<_> = values.values().map(|t| t.temperature_celsius).collect();
        assert_eq!(celsius, [Some(50.0)]);
        assert_eq!(telemetry.failures(), [("timeout", 0), ("other", 1)]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_load_of_an_inventory_is_a_counter_that_follows_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("host.yaml");
        let write = |percent: u32| {
            let adapter = |luid: i64, load: &str| {
                format!(
                    "- {{luid: {luid}, attributes: [], hardware: true, dedicatedMemoryMiB: 1024, \
                     hardwareId: {{vendor: 1, device: 1}}, {load}}}\n"
                )
            };
            let load = format!("load: {{utilizationPercent: {percent}, usedMemoryMiB: 256}}");
            let adapters = adapter(7, &load) + &adapter(8, "");
            std::fs::write(&path, format!("schema: directx-inventory/v1\nadapters:\n{adapters}"))
                .unwrap();
        };
        let mut read = constant_loads(path.clone());
        let mut busy = Vec::new();
        for percent in [40, 100, 0] {
            write(percent);
            tokio::time::advance(Duration::from_secs(10)).await;
            let values = read(&[LUID, Luid(8), Luid(9)]);
            let [(LUID, Ok(telemetry))] = values.as_slice() else { panic!("{values:?}") };
            busy.push(telemetry.engines[0].running_time.as_secs());
            let memory = MemoryUse { used_bytes: 256 * MIB, budget_bytes: Some(1024 * MIB) };
            assert_eq!(telemetry.dedicated, Some(memory));
        }
        assert_eq!(busy, [4, 14, 14]);
    }

    #[cfg(windows)]
    #[tokio::test]
    async fn an_adapter_that_this_host_does_not_have_has_no_values() {
        let telemetry = of(None);
        let end = std::time::Instant::now() + Duration::from_mins(2);
        // Loading the libraries may take longer than a caller waits.
        loop {
            let read = telemetry.get(vec![Luid(i64::MAX)]).await;
            let values = read.map(|(values, _age)| values).unwrap_or_default();
            assert!(values.values().all(|values| *values == Telemetry::default()));
            // Windows refuses to open the adapter. Wine opens it, and reports nothing about it.
            if telemetry.failures()[1].1 > 0 || !values.is_empty() {
                return;
            }
            assert!(std::time::Instant::now() < end, "{:?}", telemetry.failures());
        }
    }
}
