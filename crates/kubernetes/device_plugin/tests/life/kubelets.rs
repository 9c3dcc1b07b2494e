//! The double itself: the admission of pods.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use kubelet_double::{InMemory, KubeletDouble, KubeletOptions, KubeletPlatform, PodRequest};
use tokio::time::sleep;

use crate::plugin::{DIRECTORY, Devices, GPU, Node, Plugin};

async fn node_with(count: usize) -> (Node, Arc<Devices>, Plugin, KubeletDouble<InMemory>) {
    node_on(KubeletPlatform::Windows, count).await
}

async fn node_on(
    platform: KubeletPlatform,
    count: usize,
) -> (Node, Arc<Devices>, Plugin, KubeletDouble<InMemory>) {
    let mut node = Node::new();
    let devices = node.add(GPU, "gpu", count);
    let mut options = KubeletOptions::default();
    options.platform = platform;
    let kubelet = KubeletDouble::start(node.host.clone(), DIRECTORY, options).unwrap();
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
    let mut options = KubeletOptions::default();
    options.platform = KubeletPlatform::Linux;
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
    let kubelet =
        KubeletDouble::start(node.host.clone(), DIRECTORY, KubeletOptions::default()).unwrap();
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
        let mut options = KubeletOptions::default();
        options.shuffled = Some(seed);
        let kubelet = KubeletDouble::start(node.host.clone(), DIRECTORY, options).unwrap();
        let _plugin = node.run();
        kubelet.wait_for_lists(&["example.com/a", "example.com/b"]).await;
        let resources = [("example.com/a".to_owned(), 1), ("example.com/b".to_owned(), 1)];
        let pod = PodRequest::new("pod", resources.into());
        let container = kubelet.admit(pod).await.unwrap();
        winners.insert(container.devices[0].host_path.clone());
    }
    assert_eq!(winners.into_iter().collect::<Vec<_>>(), ["host://a-0", "host://b-0"]);
}

#[tokio::test(start_paused = true)]
async fn a_container_on_linux_keeps_several_devices_and_cdi_names() {
    let (_node, devices, _plugin, kubelet) = node_on(KubeletPlatform::Linux, 2).await;
    devices.device_files.store(true, Ordering::Relaxed);
    let container = kubelet.admit(PodRequest::single("a", GPU, 2)).await.unwrap();
    let paths: Vec<_> = container.devices.iter().map(|device| &*device.container_path).collect();
    assert_eq!(paths, ["/dev/gpu-0", "/dev/gpu-1"]);
    assert_eq!(container.cdi_devices, ["v/c=gpu-0", "v/c=gpu-1"]);
}

#[tokio::test(start_paused = true)]
async fn a_container_that_takes_over_devices_must_include_them() {
    for platform in [KubeletPlatform::Linux, KubeletPlatform::Windows] {
        let (_node, devices, _plugin, mut kubelet) = node_on(platform, 4).await;
        kubelet.admit(PodRequest::single("first", GPU, 1)).await.unwrap();
        let pod = PodRequest::single("pod", GPU, 2).with_init_container("init", GPU, 1);
        assert_eq!(kubelet.schedule(&pod), Ok(()));
        let main = kubelet.admit(pod.clone()).await.unwrap();
        assert_eq!(*devices.included.lock().unwrap(), ["gpu-1"]);
        assert_eq!(main.device_ids[GPU], ["gpu-1", "gpu-2"]);
        let init = kubelet.restart_container("pod", "init").await.unwrap();
        assert_eq!(init.device_ids[GPU], ["gpu-1"]);
        // Two containers that run at the same time share no device.
        kubelet.terminate_pod("pod");
        let pod = PodRequest::single("pair", GPU, 1).with_container("side", GPU, 2);
        let side = kubelet.admit(pod).await.unwrap();
        let main = kubelet.restart_container("pair", "main").await.unwrap();
        assert_eq!(main.device_ids[GPU], ["gpu-1"], "{platform:?}");
        assert_eq!(side.device_ids[GPU], ["gpu-2", "gpu-3"], "{platform:?}");
        let more = PodRequest::single("more", GPU, 1).with_container("side", GPU, 1);
        kubelet.schedule(&more).unwrap_err();
    }
}

#[tokio::test(start_paused = true)]
async fn a_container_that_restarts_gets_the_same_answer_until_its_resource_is_removed() {
    for platform in [KubeletPlatform::Linux, KubeletPlatform::Windows] {
        let (_node, devices, plugin, mut kubelet) = node_on(platform, 2).await;
        let first = kubelet.admit(PodRequest::single("a", GPU, 1)).await.unwrap();
        let answered = devices.answered.load(Ordering::Relaxed);
        devices.set_unhealthy("gpu-0");
        kubelet.restart().await.unwrap();
        plugin.stop().await.unwrap();
        let again = kubelet.restart_container("a", "main").await;
        assert_eq!(again.as_ref(), Ok(&first), "{platform:?}");
        assert_eq!(devices.answered.load(Ordering::Relaxed), answered);
        sleep(Duration::from_secs(301)).await;
        assert_eq!(kubelet.resources(), []);
        let refused = kubelet.restart_container("a", "main").await.unwrap_err();
        assert_eq!(
            refused,
            "CreateContainerConfigError: endpoint not found in cache for a registered resource: \
             example.com/gpu"
        );
    }
}
