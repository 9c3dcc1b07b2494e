//! Devices that disappear, and containers that hold them.

use std::sync::atomic::{AtomicUsize, Ordering};

use device_plugin::pod_resources::FailureReason;

use super::reconfiguration_tests::catalog_of;
use super::tests::{healths, list, one_gpu, read, two_gpus, until, with_reads_from_test};
use super::*;
use crate::logging::test_log::Log;
use crate::node_devices::device_holders::{Answer, attribution};

/// Devices without a grace period, and how often the holders were requested. `answer` gets this
/// number.
fn node(
    answer: impl Fn(usize) -> Answer + Send + Sync + 'static,
) -> (NodeDevices, impl Fn(HostSnapshot), Arc<AtomicUsize>) {
    let (mut devices, send) = with_reads_from_test(two_gpus());
    devices.reconfigure(catalog_of("removalGraceSeconds: 0")).unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    devices.holders = DeviceHolders::new(Box::new(move |_| {
        let asked = count.fetch_add(1, Ordering::SeqCst);
        Box::pin(std::future::ready(answer(asked)))
    }));
    let send = move |snapshot| assert!(send.send(Ok(read(Cause::Change, snapshot))).is_ok());
    (devices, send, asked)
}

/// The second device, held by a container.
fn second_held() -> Arc<Attribution> {
    let id = two_gpus().adapters[1].pnp.as_ref().unwrap().id.to_string() + r"\0";
    Arc::new(attribution(&[("directx.microsoft.com/display", &id)]))
}

#[tokio::test(start_paused = true)]
async fn a_removed_device_stays_listed_while_a_container_holds_it() {
    let log = Log::start();
    let (devices, send, asked) = node(|_| Ok(second_held()));
    let mut list = list(&devices);
    list.borrow_and_update();
    let running = tokio::spawn(devices.run());
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(asked.load(Ordering::SeqCst), 0, "nothing was removed");
    send(one_gpu());
    assert_eq!(healths(&mut list).await, ["Healthy", "Unhealthy"]);
    let text = "a container holds a removed device; it stays listed as unhealthy";
    until("the device is held", || log.text().contains(text)).await;
    // Every snapshot has the same devices, and nobody is asked again so soon.
    send(one_gpu());
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!((list.borrow().devices().len(), asked.load(Ordering::SeqCst)), (2, 1));
    assert!(!list.has_changed().unwrap());
    send(two_gpus());
    assert_eq!(healths(&mut list).await, ["Healthy", "Healthy"]);
    assert_eq!(log.text().matches(text).count(), 1);
    running.abort();
}

#[tokio::test(start_paused = true)]
async fn a_removed_device_that_nobody_holds_is_dropped_after_its_grace_time() {
    let other = Arc::new(attribution(&[("example.com/gpu", "other")]));
    // A kubelet without an endpoint may be restarting, and is asked for a minute.
    for (answer, times) in [(Ok(other), 1), (Err(FailureReason::Missing), 7)] {
        let (devices, send, asked) = node(move |_| answer.clone());
        let mut list = list(&devices);
        list.borrow_and_update();
        let running = tokio::spawn(devices.run());
        send(one_gpu());
        until("the device is dropped", || list.borrow().devices().len() == 1).await;
        assert_eq!(healths(&mut list).await, ["Healthy"]);
        assert_eq!(asked.load(Ordering::SeqCst), times);
        running.abort();
    }
}

/// A busy kubelet answers too late at first.
#[tokio::test(start_paused = true)]
async fn a_held_device_stays_listed_although_the_kubelet_answers_late() {
    let late = |asked| if asked < 3 { Err(FailureReason::Timeout) } else { Ok(second_held()) };
    let (devices, send, asked) = node(late);
    let mut list = list(&devices);
    list.borrow_and_update();
    let running = tokio::spawn(devices.run());
    send(one_gpu());
    assert_eq!(healths(&mut list).await, ["Healthy", "Unhealthy"]);
    until("the kubelet has answered", || asked.load(Ordering::SeqCst) == 4).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(list.borrow().devices().len(), 2);
    running.abort();
}
