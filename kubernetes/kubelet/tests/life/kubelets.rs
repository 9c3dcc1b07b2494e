//! The double itself: the admission of pods.

use std::sync::atomic::Ordering;
use std::time::Duration;

use kubelet::testing::{AllocationTime, InMemory, KubeletDouble, Options, PodRequest};
use tokio::time::sleep;

use crate::plugin::{DIRECTORY, Devices, GPU, Node, Plugin};

async fn node_with(
    count: usize,
) -> (Node, std::sync::Arc<Devices>, Plugin, KubeletDouble<InMemory>) {
    let mut node = Node::new();
    let devices = node.add(GPU, "gpu", count);
    let kubelet = KubeletDouble::start(node.host.clone(), DIRECTORY, Options::default()).unwrap();
    let plugin = node.run();
    kubelet.wait_for_lists(&[GPU]).await;
    (node, devices, plugin, kubelet)
}

#[tokio::test(start_paused = true)]
async fn capacity_is_zero_after_a_restart_until_the_plugin_registers() {
    let (_node, _devices, plugin, mut kubelet) = node_with(2).await;
    kubelet.stop().await;
    assert_eq!(kubelet.resources(), []);
    kubelet.start_again().unwrap();
    let resources = kubelet.resources();
    assert_eq!((resources[0].name.as_str(), resources[0].capacity), (GPU, 0));
    kubelet.wait_for(|resources| resources[0].capacity == 2).await;
    drop(plugin);
}

#[tokio::test(start_paused = true)]
async fn frees_the_devices_of_a_terminated_pod() {
    let (_node, _devices, _plugin, mut kubelet) = node_with(1).await;
    for name in ["a", "b", "c"] {
        assert_eq!(kubelet.schedule(&PodRequest::single(name, GPU, 1)), Ok(()));
        assert!(kubelet.admit(PodRequest::single(name, GPU, 1)).await.is_ok());
        let error = kubelet.schedule(&PodRequest::single("x", GPU, 1)).unwrap_err();
        assert_eq!(error, "0/1 nodes are available: 1 Insufficient example.com/gpu.");
        kubelet.terminate_pod(name);
    }
}

#[tokio::test(start_paused = true)]
async fn does_not_allocate_unhealthy_devices() {
    let (_node, devices, plugin, kubelet) = node_with(1).await;
    devices.set_unhealthy("gpu-0");
    kubelet.wait_for(|resources| resources[0].allocatable == 0).await;
    let refused = kubelet.admit(PodRequest::single("a", GPU, 1)).await.unwrap_err();
    assert_eq!(
        refused,
        "CreateContainerConfigError: no healthy devices present; cannot allocate unhealthy devices \
         example.com/gpu"
    );
    plugin.stop().await.unwrap();
    sleep(Duration::from_secs(299)).await;
    assert_eq!(kubelet.resources()[0].capacity, 1);
    sleep(Duration::from_secs(2)).await;
    assert_eq!(kubelet.resources(), []);
}

#[tokio::test(start_paused = true)]
async fn the_pod_status_shows_the_plugins_refusal() {
    let (_node, devices, _plugin, kubelet) = node_with(2).await;
    // The kubelet has not received the new list when it calls Allocate.
    devices.change(Vec::clear);
    let refused = kubelet.admit(PodRequest::single("a", GPU, 1)).await.unwrap_err();
    assert_eq!(refused, "CreateContainerConfigError: no device `gpu-0`");
}

#[tokio::test]
async fn a_container_starts_only_if_the_plugin_has_prepared_its_devices() {
    let mut node = Node::new();
    let devices = node.add(GPU, "gpu", 1);
    devices.requires_start.store(true, Ordering::Relaxed);
    devices.refuses_start.store(true, Ordering::Relaxed);
    let options = Options { allocation: AllocationTime::PodAdmission, ..Options::default() };
    let kubelet = KubeletDouble::start(node.host.clone(), DIRECTORY, options).unwrap();
    let _plugin = node.run();
    kubelet.wait_for_lists(&[GPU]).await;
    let refused = kubelet.admit(PodRequest::single("a", GPU, 1)).await.unwrap_err();
    assert_eq!(
        refused,
        "CreateContainerConfigError: device plugin PreStartContainer rpc failed with err: rpc \
         error: code = FailedPrecondition desc = cannot reset [\"gpu-0\"]"
    );
    devices.refuses_start.store(false, Ordering::Relaxed);
    kubelet.admit(PodRequest::single("b", GPU, 1)).await.unwrap();
    let refused = kubelet.admit(PodRequest::single("c", GPU, 1)).await.unwrap_err();
    assert_eq!(
        refused,
        "UnexpectedAdmissionError: Allocate failed due to requested number of devices unavailable \
         for example.com/gpu. Requested: 1, Available: 0, which is unexpected"
    );
}

/// A kubelet on Windows asks the plugin to prepare devices before it allocates them.
#[tokio::test(start_paused = true)]
async fn no_container_starts_on_windows_if_the_plugin_must_prepare_its_devices() {
    let mut node = Node::new();
    let devices = node.add(GPU, "gpu", 1);
    devices.requires_start.store(true, Ordering::Relaxed);
    let kubelet = KubeletDouble::start(node.host.clone(), DIRECTORY, Options::default()).unwrap();
    let _plugin = node.run();
    kubelet.wait_for_lists(&[GPU]).await;
    for _attempt in 0..2 {
        let refused = kubelet.admit(PodRequest::single("a", GPU, 1)).await.unwrap_err();
        assert_eq!(
            refused,
            "CreateContainerConfigError: no devices found allocated in local cache for pod a, \
             container main, resource example.com/gpu"
        );
    }
    assert_eq!(devices.answered.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn keeps_one_device_per_container_on_windows() {
    let (_node, _devices, _plugin, kubelet) = node_with(2).await;
    let container = kubelet.admit(PodRequest::single("a", GPU, 2)).await.unwrap();
    assert_eq!(container.device_ids[GPU].len(), 2);
    assert_eq!(container.devices.len(), 1);
    assert_eq!(container.dropped[0], "device host://gpu-1 (container path `` is already in use)");
}

#[tokio::test(start_paused = true)]
async fn which_of_two_resources_keeps_its_device_is_undefined() {
    let mut winners = std::collections::BTreeSet::new();
    for seed in 0..20 {
        let mut node = Node::new();
        node.add("example.com/a", "a", 1);
        node.add("example.com/b", "b", 1);
        let options = Options { shuffled: Some(seed), ..Options::default() };
        let kubelet = KubeletDouble::start(node.host.clone(), DIRECTORY, options).unwrap();
        let _plugin = node.run();
        kubelet.wait_for_lists(&["example.com/a", "example.com/b"]).await;
        let mut pod = PodRequest::single("pod", "example.com/a", 1);
        pod.resources.insert("example.com/b".to_owned(), 1);
        let container = kubelet.admit(pod).await.unwrap();
        winners.insert(container.devices[0].host_path.clone());
    }
    assert_eq!(winners.into_iter().collect::<Vec<_>>(), ["host://a-0", "host://b-0"]);
}
