//! Tests of the plugin's code with the kubelet double, over sockets in memory and with a paused
//! clock.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod changes;
mod ends;
mod logs;
mod other_daemons;
#[allow(dead_code, reason = "shared with the fault campaign")]
mod plugin;
mod registration;
mod service;
mod socket_files;
mod status;

use std::time::Duration;

use kubelet_double::{KubeletDouble, KubeletOptions, PodRequest};

use plugin::{DIRECTORY, GPU, Node};

#[tokio::test(start_paused = true)]
async fn a_plugin_registers_lists_and_allocates() {
    let mut node = Node::new();
    let gpus = node.add(GPU, "gpu", 3);
    let kubelet =
        KubeletDouble::start(node.host.clone(), DIRECTORY, KubeletOptions::default()).unwrap();
    let plugin = node.run();
    let resources = kubelet.wait_for_lists(&[GPU]).await;
    assert_eq!(resources[0].capacity, 3);
    assert_eq!(resources[0].allocatable, 3);
    plugin.wait_until_ready().await;

    gpus.set_unhealthy("gpu-1");
    let resources = kubelet.wait_for(|r| r[0].allocatable == 2).await;
    assert_eq!(resources[0].capacity, 3);

    let container = kubelet.admit(PodRequest::single("a", GPU, 2)).await.unwrap();
    assert_eq!(container.device_ids[GPU], ["gpu-0", "gpu-2"]);
    assert_eq!(container.devices[0].host_path, "host://gpu-0");
    let refused = kubelet.admit(PodRequest::single("b", GPU, 1)).await.unwrap_err();
    assert_eq!(
        refused,
        "CreateContainerConfigError: requested number of devices unavailable for example.com/gpu. \
         Requested: 1, Available: 0"
    );
    plugin.stop().await.unwrap();
    let resources = kubelet.wait_for(|r| r[0].allocatable == 0).await;
    assert_eq!(resources[0].capacity, 3);
    tokio::time::sleep(Duration::from_secs(301)).await;
    assert_eq!(kubelet.resources(), []);
}
