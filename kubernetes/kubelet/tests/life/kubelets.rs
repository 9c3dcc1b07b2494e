//! The double itself: the admission of pods.

use std::collections::BTreeMap;
use std::time::Duration;

use kubelet::testing::{
    ContainerKind, ContainerRequest, InMemory, Iteration, KubeletDouble, Options, PodRequest,
    Verdict,
};
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

fn verdict_text(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Admitted => "admitted".to_owned(),
        Verdict::Refused(refused) => refused.to_string(),
    }
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
async fn a_restarted_container_gets_the_stored_answer() {
    let (_node, devices, plugin, mut kubelet) = node_with(2).await;
    let first = kubelet.admit(PodRequest::single("a", GPU, 1)).await;
    assert!(first.is_admitted());
    plugin.stop().await.unwrap();
    devices.change(Vec::clear);
    kubelet.restart().await.unwrap();
    let again = kubelet.restart_container("a", "a").await.unwrap();
    assert_eq!(again, first.containers[0]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_without_its_device_runs_until_it_is_readmitted() {
    let (_node, devices, _plugin, mut kubelet) = node_with(2).await;
    assert!(kubelet.admit(PodRequest::single("a", GPU, 1)).await.is_admitted());
    devices.change(|devices| drop(devices.remove(0)));
    kubelet.wait_for(|resources| resources[0].capacity == 1).await;
    assert!(kubelet.restart_container("a", "a").await.is_ok());
    let again = kubelet.readmit("a").await.unwrap();
    assert_eq!(
        verdict_text(&again.verdict),
        "UnexpectedAdmissionError: Allocate failed due to previously allocated devices are no \
         longer healthy; cannot allocate unhealthy devices example.com/gpu, which is unexpected"
    );
    kubelet.terminate_pod("a");
    assert!(kubelet.admit(PodRequest::single("b", GPU, 1)).await.is_admitted());
}

#[tokio::test(start_paused = true)]
async fn frees_the_devices_of_a_terminated_pod() {
    let (_node, _devices, _plugin, mut kubelet) = node_with(1).await;
    for name in ["a", "b", "c"] {
        assert_eq!(kubelet.schedule(&PodRequest::single(name, GPU, 1)), Ok(()));
        assert!(kubelet.admit(PodRequest::single(name, GPU, 1)).await.is_admitted());
        let error = kubelet.schedule(&PodRequest::single("x", GPU, 1)).unwrap_err();
        assert_eq!(error, "0/1 nodes are available: 1 Insufficient example.com/gpu.");
        kubelet.terminate_pod(name);
    }
}

#[tokio::test(start_paused = true)]
async fn containers_reuse_the_devices_of_init_containers() {
    let (_node, _devices, _plugin, kubelet) = node_with(3).await;
    let container = |name: &str, kind, count| ContainerRequest {
        name: name.to_owned(),
        kind,
        resources: BTreeMap::from([(GPU.to_owned(), count)]),
    };
    let pod = PodRequest {
        name: "pod".to_owned(),
        containers: vec![
            container("init", ContainerKind::Init, 2),
            container("sidecar", ContainerKind::RestartableInit, 1),
            container("main", ContainerKind::App, 2),
        ],
    };
    let pod = kubelet.admit(pod).await;
    let ids: Vec<&[String]> = pod.containers.iter().map(|c| &c.device_ids[GPU][..]).collect();
    assert_eq!(ids, [&["gpu-0", "gpu-1"][..], &["gpu-0"], &["gpu-1", "gpu-2"]]);
}

#[tokio::test(start_paused = true)]
async fn does_not_allocate_unhealthy_devices() {
    let (_node, devices, plugin, kubelet) = node_with(1).await;
    devices.set_unhealthy("gpu-0");
    kubelet.wait_for(|resources| resources[0].allocatable == 0).await;
    let pod = kubelet.admit(PodRequest::single("a", GPU, 1)).await;
    assert_eq!(
        verdict_text(&pod.verdict),
        "UnexpectedAdmissionError: Allocate failed due to no healthy devices present; cannot \
         allocate unhealthy devices example.com/gpu, which is unexpected"
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
    let pod = kubelet.admit(PodRequest::single("a", GPU, 1)).await;
    assert_eq!(
        verdict_text(&pod.verdict),
        "UnexpectedAdmissionError: Allocate failed due to rpc error: code = NotFound desc = no \
         device `gpu-0`, which is unexpected"
    );
}

#[tokio::test(start_paused = true)]
async fn keeps_one_device_per_container_on_windows() {
    let (_node, _devices, _plugin, kubelet) = node_with(2).await;
    let pod = kubelet.admit(PodRequest::single("a", GPU, 2)).await;
    let container = &pod.containers[0];
    assert_eq!(container.device_ids[GPU].len(), 2);
    assert_eq!(container.devices.len(), 1);
    assert_eq!(
        container.dropped[0].to_string(),
        "device host://gpu-1 (container path `` is already in use)"
    );
}

#[tokio::test(start_paused = true)]
async fn which_of_two_resources_keeps_its_device_is_undefined() {
    let mut winners = std::collections::BTreeSet::new();
    for seed in 0..20 {
        let mut node = Node::new();
        node.add("example.com/a", "a", 1);
        node.add("example.com/b", "b", 1);
        let options = Options { iteration: Iteration::Shuffled(seed), ..Options::default() };
        let kubelet = KubeletDouble::start(node.host.clone(), DIRECTORY, options).unwrap();
        let _plugin = node.run();
        kubelet.wait_for_lists(&["example.com/a", "example.com/b"]).await;
        let mut pod = PodRequest::single("pod", "example.com/a", 1);
        pod.containers[0].resources.insert("example.com/b".to_owned(), 1);
        let pod = kubelet.admit(pod).await;
        winners.insert(pod.containers[0].devices[0].host_path.clone());
    }
    assert_eq!(winners.into_iter().collect::<Vec<_>>(), ["host://a-0", "host://b-0"]);
}
