//! A driver that is replaced while devices are allocated.

use device_plugin::PreferredRequest;
use devices::Luid;

use super::tests::{one_gpu, two_gpus, with_reads_from_test};
use super::*;
use crate::logging::test_log::Log;
use crate::node_devices::advertised_resource::allocate;
use crate::node_devices::device_holders::attribution;

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
    let text = log.text();
    assert_eq!(text.matches("the driver of a device was replaced").count(), 2, "{text}");
    assert!(text.contains(OLD) && text.contains(NEW) && text.contains("hint="), "{text}");
}

/// The log names each container once, until it has ended.
#[tokio::test]
async fn containers_that_use_a_driver_which_was_replaced_are_reported() {
    let log = Log::start();
    let (mut devices, _send) = with_reads_from_test(two_gpus());
    let resource = devices.served().borrow().resources[0].clone();
    let ids = replicas();
    for id in &ids {
        allocate(&*resource, std::slice::from_ref(id)).unwrap();
    }
    assert_eq!(devices.outdated.due, None);
    let read = Read { cause: Cause::Change, result: Ok(replaced()), duration: Duration::ZERO };
    devices.apply_read(read).unwrap();
    let settled = devices.outdated.due.unwrap();
    devices.review(None);
    let settled = devices.outdated.due.filter(|due| *due > settled).unwrap();
    assert_eq!(devices.published.outdated_replicas().len(), 2, "nobody reports the holders");
    // The container with the second device has ended.
    let holders = attribution(&[("directx.microsoft.com/display", &ids[0])]);
    for _ in 0..2 {
        devices.review(Some(&holders));
    }
    let text = log.text();
    assert_eq!(text.matches("a container uses a driver that was replaced").count(), 1, "{text}");
    assert!(text.contains("pod=\"render\"") && text.contains("hint="), "{text}");
    assert_eq!(devices.published.outdated_replicas().len(), 1);
    devices.serve_notes();
    let outdated = || StatusNotes::of(&devices.served().borrow().notes).outdated.unwrap();
    let names = outdated().into_iter().map(|o| (o.pod, o.before, o.now)).collect::<Vec<_>>();
    assert_eq!(names, [("render".to_owned(), OLD.to_owned(), NEW.to_owned())]);
    assert!(devices.outdated.due.unwrap() > settled, "the kubelet is asked again");
    devices.review(Some(&Attribution::default()));
    assert_eq!(devices.published.outdated_replicas(), []);
    devices.serve_notes();
    let notes = StatusNotes::of(&devices.served().borrow().notes);
    assert_eq!(notes.outdated, Some(vec![]));
    assert_eq!(devices.outdated.due, None);
}

#[tokio::test]
async fn slots_that_were_allocated_before_the_driver_was_replaced_are_outdated() {
    let (mut devices, _send) = with_reads_from_test(two_gpus());
    let resource = devices.served().borrow().resources[0].clone();
    let id = two_gpus().adapters[0].pnp.as_ref().unwrap().id.to_string() + r"\0";
    let name = "directx.microsoft.com/display".parse().unwrap();
    let published = devices.published();
    let is_outdated = || published.is_outdated(&published.set(), &name, &id);
    allocate(&*resource, std::slice::from_ref(&id)).unwrap();
    assert!(!is_outdated());
    let read = Read { cause: Cause::Change, result: Ok(replaced()), duration: Duration::ZERO };
    devices.apply_read(read).unwrap();
    assert!(is_outdated());
    allocate(&*resource, std::slice::from_ref(&id)).unwrap();
    assert!(!is_outdated());
}
