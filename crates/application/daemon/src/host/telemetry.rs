//! What the devices do, for metrics: read at most once a second.
//!
//! A driver that hangs cannot be stopped, so there is at most one reading, and a caller waits for
//! it only for a short time. Until it ends, callers get the values of the reading before.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use devices::{Luid, Telemetry};

use crate::host::adapter_reader::HostKind;
use crate::host::background_query::BackgroundQuery;
use crate::host::latest_answer::{Ask, LatestAnswer};

/// Reads adapters. It blocks, perhaps forever.
type ReadTelemetry = Box<dyn FnMut(&[Luid]) -> Vec<(Luid, io::Result<Telemetry>)> + Send>;

/// The shortest time between the beginnings of two readings.
const INTERVAL: Duration = Duration::from_secs(1);

/// How long a caller waits for a reading. A scrape of Prometheus may take ten seconds.
const LIMIT: Duration = Duration::from_millis(500);

/// The values of the adapters that could be read.
pub(crate) type Values = Arc<BTreeMap<Luid, Telemetry>>;

/// Reads the devices of a host.
pub(crate) type DeviceTelemetry = LatestAnswer<Vec<Luid>, Values>;

/// The devices of this host. An inventory has no telemetry.
pub(crate) fn of(host: HostKind) -> DeviceTelemetry {
    answers(match host {
        #[cfg(windows)]
        HostKind::Live => Some(Box::new(win32::read_telemetry)),
        #[cfg(not(windows))]
        HostKind::Live => None,
        HostKind::Inventory => None,
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

    #[tokio::test]
    async fn an_inventory_has_no_telemetry() {
        let telemetry = of(HostKind::Inventory);
        assert!(telemetry.get(vec![LUID]).await.is_none());
    }

    #[cfg(windows)]
    #[tokio::test]
    async fn an_adapter_that_this_host_does_not_have_has_no_values() {
        let telemetry = of(HostKind::Live);
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
