//! What the devices do, for metrics: read at most once a second.
//!
//! A driver that hangs cannot be stopped, so there is at most one reading, and a caller waits for
//! it only for a short time. Until it ends, callers get the values of the reading before.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use devices::{Luid, Telemetry};

use node::daemon::background_query::BackgroundQuery;
use node::daemon::latest_answer::LatestAnswer;
use node::daemon::read_schedule::HostKind;

/// Reads adapters. It blocks, perhaps forever.
type ReadTelemetry = Box<dyn FnMut(&[Luid]) -> Vec<(Luid, io::Result<Telemetry>)> + Send>;

/// The shortest time between the beginnings of two readings.
const INTERVAL: Duration = Duration::from_secs(1);

/// How long a caller waits for a reading. A scrape of Prometheus may take ten seconds.
const LIMIT: Duration = Duration::from_millis(500);

/// The values of the adapters that could be read.
pub(crate) type Values = Arc<BTreeMap<Luid, Telemetry>>;

/// Reads the devices of a host.
pub(crate) struct DeviceTelemetry {
    /// `None`: the host has no telemetry.
    answers: Option<LatestAnswer<Vec<Luid>, Values>>,
    failures: Arc<AtomicU64>,
}

impl DeviceTelemetry {
    /// The devices of this host. An inventory has no telemetry, and it is not read through `/dev/dxg`.
    pub(crate) fn of(host: HostKind) -> DeviceTelemetry {
        DeviceTelemetry::new(match host {
            #[cfg(windows)]
            HostKind::Live => Some(live()),
            #[cfg(not(windows))]
            HostKind::Live => None,
            HostKind::Inventory => None,
        })
    }

    fn new(read: Option<ReadTelemetry>) -> DeviceTelemetry {
        let failures = Arc::<AtomicU64>::default();
        let counter = Arc::clone(&failures);
        let answers = read.map(|mut read| {
            let ask = move |luids: Vec<Luid>| {
                let value = |(luid, result): (Luid, io::Result<Telemetry>)| match result {
                    Ok(telemetry) => Some((luid, telemetry)),
                    Err(error) => {
                        tracing::debug!(luid = luid.0, %error, "cannot read device telemetry");
                        counter.fetch_add(1, Ordering::Relaxed);
                        None
                    }
                };
                Some(Arc::new(read(&luids).into_iter().filter_map(value).collect()))
            };
            let query = BackgroundQuery::new("telemetry", "metrics have the last known values");
            LatestAnswer::new(query, INTERVAL, LIMIT, Box::new(ask))
        });
        DeviceTelemetry { answers, failures }
    }

    /// Reads these adapters, if the last reading is old enough and has ended. Returns the values of
    /// the last reading that has ended, and how long ago it began, which grows while a driver hangs.
    pub(crate) async fn read(&self, luids: Vec<Luid>) -> Option<(Values, Duration)> {
        self.answers.as_ref()?.get(luids).await
    }

    /// How many adapters could not be read, and how many readings took longer than a caller waits.
    pub(crate) fn failures(&self) -> [(&'static str, u64); 2] {
        let timeouts = self.answers.as_ref().map_or(0, LatestAnswer::timeouts);
        [("other", self.failures.load(Ordering::Relaxed)), ("timeout", timeouts)]
    }
}

#[cfg(windows)]
fn live() -> ReadTelemetry {
    Box::new(win32::read_telemetry)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LUID: Luid = Luid(7);

    #[tokio::test]
    async fn adapters_that_fail_are_counted() {
        let telemetry = DeviceTelemetry::new(Some(Box::new(|luids| {
            let result = |luid: &Luid| match *luid {
                LUID => Ok(Telemetry { temperature_celsius: Some(50.0), ..Telemetry::default() }),
                _ => Err(io::Error::other("the adapter was removed")),
            };
            luids.iter().map(|luid| (*luid, result(luid))).collect()
        })));
        let (values, _age) = telemetry.read(vec![LUID, Luid(8)]).await.unwrap();
        let celsius: Vec<_> = values.values().map(|t| t.temperature_celsius).collect();
        assert_eq!(celsius, [Some(50.0)]);
        assert_eq!(telemetry.failures(), [("other", 1), ("timeout", 0)]);
    }

    #[tokio::test]
    async fn an_inventory_has_no_telemetry() {
        let telemetry = DeviceTelemetry::of(HostKind::Inventory);
        assert!(telemetry.read(vec![LUID]).await.is_none());
    }

    #[cfg(windows)]
    #[tokio::test]
    async fn an_adapter_that_this_host_does_not_have_has_no_values() {
        let telemetry = DeviceTelemetry::of(HostKind::Live);
        let end = std::time::Instant::now() + Duration::from_secs(120);
        // Loading the libraries may take longer than a caller waits.
        loop {
            let read = telemetry.read(vec![Luid(i64::MAX)]).await;
            let values = read.map(|(values, _age)| values).unwrap_or_default();
            assert!(values.values().all(|values| *values == Telemetry::default()));
            // Windows refuses to open it. Wine opens it, and knows nothing about it.
            if telemetry.failures()[0].1 > 0 || !values.is_empty() {
                return;
            }
            assert!(std::time::Instant::now() < end, "{:?}", telemetry.failures());
        }
    }
}
