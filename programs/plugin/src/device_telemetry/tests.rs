use std::sync::mpsc::{Sender, channel};

use super::*;
use daemon::test_log::Log;

const LUID: Luid = Luid(7);
/// Longer than a thread takes to start on a slow machine; ends a test that hangs.
const LONG: Duration = Duration::from_secs(120);
const SHORT: Duration = Duration::from_millis(20);

/// What a reading of the driver does.
enum Driver {
    Reports(f64),
    Fails,
    Panics,
}

/// A driver that answers when a test says so, and the number of readings that have begun.
fn driver(
    interval: Duration,
    limit: Duration,
) -> (DeviceTelemetry, Sender<Driver>, Arc<AtomicU64>) {
    let (send, answers) = channel();
    let (answers, begun) = (Mutex::new(answers), Arc::new(AtomicU64::new(0)));
    let count = Arc::clone(&begun);
    let read = move |luids: &[Luid]| {
        count.fetch_add(1, Ordering::SeqCst);
        let answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
        // The test has ended without an answer.
        let answer = answers.recv().unwrap_or(Driver::Fails);
        drop(answers);
        let result = |_| match answer {
            Driver::Reports(celsius) => {
                Ok(Telemetry { temperature_celsius: Some(celsius), ..Telemetry::default() })
            }
            Driver::Fails => Err(io::Error::other("the adapter was removed")),
            Driver::Panics => panic!("on purpose"),
        };
        luids.iter().map(|luid| (*luid, result(luid))).collect()
    };
    (DeviceTelemetry::new(Some(Arc::new(read)), interval, limit), send, begun)
}

fn celsius(reading: &Reading) -> Option<f64> {
    reading.values.get(&LUID)?.temperature_celsius
}

#[tokio::test]
async fn one_reading_serves_every_caller_of_the_interval() {
    let (telemetry, driver, begun) = driver(LONG, LONG);
    let read = || telemetry.read(&[LUID]);
    let (first, second, ()) = tokio::join!(read(), read(), async {
        tokio::task::yield_now().await;
        driver.send(Driver::Reports(50.0)).unwrap();
    });
    let third = read().await;
    for reading in [first, second, third] {
        assert_eq!(celsius(&reading), Some(50.0));
        assert!(reading.age.is_some());
    }
    assert_eq!(begun.load(Ordering::SeqCst), 1);
    assert_eq!(telemetry.counters(), TelemetryCounters { failures: 0, timeouts: 0 });
}

#[tokio::test]
async fn while_the_driver_hangs_callers_get_the_last_values_and_there_is_one_reading() {
    let (telemetry, driver, begun) = driver(Duration::ZERO, SHORT);
    assert!(telemetry.read(&[LUID]).await.age.is_none());
    let timeouts = || telemetry.counters().timeouts;
    assert_eq!(timeouts(), 1);
    driver.send(Driver::Reports(50.0)).unwrap();
    let end = Instant::now() + LONG;
    // The late values count, and the reading after it hangs.
    while celsius(&telemetry.read(&[LUID]).await) != Some(50.0)
        || (begun.load(Ordering::SeqCst), timeouts()) != (2, 2)
    {
        assert!(Instant::now() < end, "{:?}", telemetry.counters());
    }
    let before = telemetry.read(&[LUID]).await;
    for _ in 0..50 {
        assert_eq!(celsius(&telemetry.read(&[LUID]).await), Some(50.0));
    }
    tokio::time::sleep(SHORT).await;
    let after = telemetry.read(&[LUID]).await;
    assert!(after.age.unwrap() >= before.age.unwrap() + SHORT, "{before:?} {after:?}");
    assert_eq!((begun.load(Ordering::SeqCst), timeouts()), (2, 2));
    driver.send(Driver::Reports(60.0)).unwrap();
    while celsius(&telemetry.read(&[LUID]).await) != Some(60.0) {
        assert!(Instant::now() < end, "{:?}", telemetry.counters());
    }
}

#[tokio::test(start_paused = true)]
async fn a_reading_that_hangs_is_reported_in_the_log() {
    let log = Log::start();
    let (telemetry, _driver, _) = driver(INTERVAL, LIMIT);
    telemetry.read(&[LUID]).await;
    for _ in 0..25 {
        tokio::time::advance(Duration::from_secs(1)).await;
        telemetry.read(&[LUID]).await;
    }
    let text = log.text();
    assert_eq!(text.matches("reading device telemetry has not ended").count(), 2, "{text}");
    assert!(text.contains("waited_s=10"), "{text}");
}

#[tokio::test]
async fn adapters_that_fail_and_readings_that_panic_are_counted_and_read_again() {
    let (telemetry, driver, _) = driver(Duration::ZERO, LONG);
    let counters = |failures| TelemetryCounters { failures, timeouts: 0 };
    driver.send(Driver::Reports(50.0)).unwrap();
    assert_eq!(celsius(&telemetry.read(&[LUID]).await), Some(50.0));
    driver.send(Driver::Panics).unwrap();
    assert_eq!(celsius(&telemetry.read(&[LUID]).await), Some(50.0), "the last values");
    assert_eq!(telemetry.counters(), counters(1));
    driver.send(Driver::Fails).unwrap();
    assert_eq!(telemetry.read(&[LUID, Luid(8)]).await.values.len(), 0);
    assert_eq!(telemetry.counters(), counters(3));
    driver.send(Driver::Reports(60.0)).unwrap();
    assert_eq!(celsius(&telemetry.read(&[LUID]).await), Some(60.0));
}

#[tokio::test]
async fn an_inventory_has_no_telemetry() {
    let telemetry = DeviceTelemetry::of(HostKind::Inventory);
    let reading = telemetry.read(&[LUID]).await;
    assert!(reading.values.is_empty() && reading.age.is_none());
}

#[cfg(windows)]
#[tokio::test]
async fn an_adapter_that_this_host_does_not_have_is_a_failure() {
    let telemetry = DeviceTelemetry::of(HostKind::Live);
    let end = Instant::now() + LONG;
    // Loading the libraries may take longer than a caller waits.
    let reading = loop {
        let reading = telemetry.read(&[Luid(i64::MAX)]).await;
        if reading.age.is_some() {
            break reading;
        }
        assert!(Instant::now() < end, "{:?}", telemetry.counters());
    };
    assert!(reading.values.is_empty());
    assert!(telemetry.counters().failures > 0);
}
