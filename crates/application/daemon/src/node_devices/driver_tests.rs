//! A driver that is replaced while devices are allocated.

use device_plugin::PreferredRequest;
use host::Luid;

use super::tests::{one_gpu, read, two_gpus, with_reads_from_test};
use super::*;
use crate::node_devices::advertised_resource::allocate;
use process::logging::test_log::Log;

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
    let text = log.text();
    let line = |line: &&str| line.contains("the driver of a device was replaced");
    let lines: Vec<&str> = text.lines().filter(line).collect();
    assert_eq!(lines.len(), 2, "{text}");
    for line in lines {
        assert!(line.contains(OLD) && line.contains(NEW) && line.contains("hint="), "{line}");
    }
}
