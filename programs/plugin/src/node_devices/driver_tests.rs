//! A driver that is replaced while devices are allocated.

use super::tests::{one_gpu, two_gpus, with_reads_from_test};
use super::*;

use devices::Luid;
use kubelet::PreferredRequest;

use daemon::test_log::Log;

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

/// The kubelet asks for the preferred devices first and allocates later.
#[tokio::test]
async fn an_allocation_has_only_files_of_the_driver_that_the_device_has_then() {
    let log = Log::start();
    let (mut devices, _send) = with_reads_from_test(two_gpus());
    let mut read = |snapshot| {
        let read = Read { cause: Cause::Change, result: Ok(snapshot), duration: Duration::ZERO };
        devices.apply_read(read).unwrap();
        devices.served().borrow().resources[0].clone()
    };
    let resource = read(two_gpus());
    let available: Vec<String> = two_gpus()
        .adapters
        .iter()
        .map(|adapter| adapter.pnp.as_ref().unwrap().id.to_string() + r"\0")
        .collect();
    let request = PreferredRequest { available: &available, must_include: &[], size: 2 };
    let mut preferred = resource.prefer(request).unwrap();
    preferred.sort_by_key(|id| available.iter().position(|other| other == id));
    let allocate = |id: &String| resource.allocate(std::slice::from_ref(id));
    let paths = |id| -> Vec<String> {
        allocate(id).unwrap().mounts.into_iter().map(|mount| mount.host_path).collect()
    };
    assert!(paths(&preferred[1]).iter().all(|path| path.contains(OLD)));

    read(one_gpu());
    let refusal = allocate(&preferred[1]).unwrap_err();
    assert!(refusal.message.contains("no longer reports the device"), "{refusal}");
    read(replaced());
    for id in &preferred {
        let paths = paths(id);
        assert!(paths.len() == 17 && paths.iter().all(|path| path.contains(NEW)), "{paths:?}");
    }
    let text = log.text();
    assert_eq!(text.matches("the driver of a device was replaced").count(), 2, "{text}");
    assert!(text.contains(OLD) && text.contains(NEW) && text.contains("hint="), "{text}");
}

#[tokio::test]
async fn slots_that_were_allocated_before_the_driver_was_replaced_are_outdated() {
    let (mut devices, _send) = with_reads_from_test(two_gpus());
    let resource = devices.served().borrow().resources[0].clone();
    let id = two_gpus().adapters[0].pnp.as_ref().unwrap().id.to_string() + r"\0";
    let name = "directx.microsoft.com/display".parse().unwrap();
    let published = devices.published();
    let is_outdated = || published.is_outdated(&published.set(), &name, &id);
    resource.allocate(std::slice::from_ref(&id)).unwrap();
    assert!(!is_outdated());
    let read = Read { cause: Cause::Change, result: Ok(replaced()), duration: Duration::ZERO };
    devices.apply_read(read).unwrap();
    assert!(is_outdated());
    resource.allocate(std::slice::from_ref(&id)).unwrap();
    assert!(!is_outdated());
}
