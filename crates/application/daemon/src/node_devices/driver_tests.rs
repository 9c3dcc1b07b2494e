//! A driver that is replaced while devices are allocated.

use device_plugin::PreferredRequest;
use device_plugin::pod_resources::{FailureReason, Holder};
use devices::Luid;

use super::tests::{one_gpu, read, two_gpus, until, with_reads_from_test};
use super::*;
use crate::logging::test_log::Log;
use crate::node_devices::advertised_resource::allocate;
use crate::node_devices::device_holders::Answer;

const OLD: &str = "nvgridsw_aws.inf_amd64_1b50ef32b191cff1";
const NEW: &str = "nvgridsw_aws.inf_amd64_0000000000000002";

/// The host after its driver was replaced: another folder, and other LUIDs.
fn replaced() -> HostSnapshot {
    let mut snapshot = two_gpus();
    for adapter in &mut snapshot.adapters {
        adapter.luid = Luid(adapter.luid.0 + 1_000_000);
        let store = adapter.driver_store.as_mut().unwrap();
        store.path = store.path.replace(OLD, NEW);
    }
    snapshot
}

/// The replica of each device.
fn replicas() -> Vec<String> {
    let snapshot = two_gpus();
    let ids = snapshot.adapters.iter().map(|a| a.pnp.as_ref().unwrap().id.to_string() + r"\0");
    ids.collect()
}

/// The log once it has both devices.
async fn logged(log: &Log) -> String {
    let count = || log.text().matches("the driver of a device was replaced").count();
    until("both drivers are logged", || count() >= 2).await;
    assert_eq!(count(), 2);
    log.text()
}

/// The log of a replacement while the kubelet gives this answer about holders.
async fn log_with(answer: Answer) -> String {
    let log = Log::start();
    let (mut devices, _send) = with_reads_from_test(two_gpus());
    devices.holders =
        DeviceHolders::new(Box::new(move |_| Box::pin(std::future::ready(answer.clone()))));
    devices.apply_read(read(Cause::Change, replaced())).unwrap();
    logged(&log).await
}

/// The kubelet asks for the preferred devices first and allocates later.
#[tokio::test]
async fn an_allocation_has_only_files_of_the_driver_that_the_device_has_then() {
    let log = Log::start();
    let (mut devices, _send) = with_reads_from_test(two_gpus());
    let mut read = |snapshot| {
        devices.apply_read(read(Cause::Change, snapshot)).unwrap();
        devices.served().borrow().resources[0].clone()
    };
    let resource = read(two_gpus());
    let available = replicas();
    let request = PreferredRequest::new(&available, &[], 2);
    let mut preferred = resource.preferred_allocation(request).await.unwrap();
    preferred.sort_by_key(|id| available.iter().position(|other| other == id));
    let of = |id: &String| allocate(&*resource, std::slice::from_ref(id));
    let paths = |id| -> Vec<String> {
        of(id).unwrap().mounts.into_iter().map(|mount| mount.host_path).collect()
    };
    assert!(paths(&preferred[1]).iter().all(|path| path.contains(OLD)));

    read(one_gpu());
    let refusal = of(&preferred[1]).unwrap_err();
    assert!(refusal.message().contains("no longer reports the device"), "{refusal}");
    read(replaced());
    for id in &preferred {
        let paths = paths(id);
        assert!(paths.len() == 17 && paths.iter().all(|path| path.contains(NEW)), "{paths:?}");
    }
    let text = logged(&log).await;
    assert!(text.contains(OLD) && text.contains(NEW) && text.contains("hint="), "{text}");
}

/// A pod that got the device under an earlier name of the resource holds it, too. The kubelet's
/// answer has devices of other plugins as well.
#[tokio::test]
async fn the_log_names_the_pods_that_hold_a_device_whose_driver_was_replaced() {
    let replicas = replicas();
    let mut held = Attribution::default();
    for (resource, replica, pod, container) in [
        ("directx.microsoft.com/display", replicas[0].clone(), "render", "main"),
        ("directx.microsoft.com/display", replicas[0].replace(r"\0", r"\1"), "render", "side"),
        ("example.com/earlier", replicas[0].replace(r"\0", r"\2"), "encode", "main"),
        ("example.com/other", "GPU-1".to_owned(), "other", "main"),
    ] {
        let [namespace, pod, container] = ["team", pod, container].map(str::to_owned);
        held.insert(resource, replica, Arc::new(Holder { namespace, pod, container }));
    }
    let text = log_with(Ok(Arc::new(held))).await;
    let line = |replica: &str| {
        let device = replica.trim_end_matches(r"\0");
        let is_of_device = |line: &&str| line.contains(device) && line.contains("was replaced");
        text.lines().find(is_of_device).unwrap().to_owned()
    };
    let first = line(&replicas[0]);
    let second = line(&replicas[1]);
    assert!(
        first.contains("pods=\"team/encode, team/render\"") && first.contains("hint="),
        "{text}"
    );
    assert!(second.contains("pods=\"\"") && !second.contains("hint="), "{text}");
}

#[tokio::test]
async fn without_an_answer_of_the_kubelet_the_log_names_no_pods() {
    for reason in [FailureReason::Missing, FailureReason::Timeout] {
        let text = log_with(Err(reason)).await;
        assert!(!text.contains("pods=") && text.matches("hint=").count() == 2, "{text}");
    }
}

#[tokio::test]
async fn a_kubelet_that_does_not_answer_delays_no_list() {
    let (mut devices, _send) = with_reads_from_test(two_gpus());
    devices.holders = DeviceHolders::new(Box::new(|_| Box::pin(std::future::pending())));
    devices.apply_read(read(Cause::Change, replaced())).unwrap();
    for entry in devices.set().resources[0].entries() {
        let folder = entry.device.driver_store.as_ref().unwrap().path.clone();
        assert!(folder.contains(NEW), "{folder}");
    }
}
