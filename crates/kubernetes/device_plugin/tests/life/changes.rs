//! Resources that are added, removed and replaced while the plugin runs.

use std::sync::Arc;
use std::time::Duration;

use device_plugin::status::query_all;
use device_plugin::{Resource, RunError};
use kubelet_double::{InMemory, KubeletDouble, KubeletOptions, PodRequest, Release};
use tokio::time::{Instant, sleep, timeout};

use crate::plugin::{DIRECTORY, Devices, GPU, Node, Plugin, sockets};

const NPU: &str = "example.com/npu";
const SECOND: Duration = Duration::from_secs(1);

fn serve(plugin: &Plugin, resources: &[&Arc<Devices>]) {
    let resources = resources.iter().map(|r| Arc::clone(r) as Arc<dyn Resource>).collect();
    plugin.served.send_modify(|served| served.resources = resources);
}

/// A node with GPUs that are registered with a kubelet of this release.
async fn started(release: Release) -> (Node, Arc<Devices>, KubeletDouble<InMemory>, Plugin) {
    let mut node = Node::new();
    let gpus = node.add(GPU, "gpu", 2);
    let mut options = KubeletOptions::default();
    options.release = release;
    let kubelet = KubeletDouble::start(node.host.clone(), DIRECTORY, options).unwrap();
    let plugin = node.run();
    kubelet.wait_for_lists(&[GPU]).await;
    plugin.wait_until_ready().await;
    (node, gpus, kubelet, plugin)
}

fn allocatable(kubelet: &KubeletDouble<InMemory>, name: &str) -> Option<usize> {
    let views = kubelet.resources();
    views.iter().find(|view| view.name == name).map(|view| view.allocatable)
}

#[tokio::test(start_paused = true)]
async fn an_added_resource_is_registered_and_a_removed_one_ends() {
    for release in [Release::V1_26, Release::V1_36, Release::V1_37] {
        let (node, gpus, kubelet, plugin) = started(release).await;
        let gpu_socket = sockets(&node.host);
        let npus = Devices::new(NPU, "npu", 3);
        let added = Instant::now();
        serve(&plugin, &[&gpus, &npus]);
        kubelet.wait_for(|views| views.iter().any(|v| v.name == NPU && v.allocatable == 3)).await;
        assert!(added.elapsed() < Duration::from_millis(100), "{:?}", added.elapsed());
        plugin.wait_for(|readiness| readiness.is_ready() && readiness.resources.len() == 2).await;
        kubelet.admit(PodRequest::single("running", NPU, 1)).await.unwrap();

        serve(&plugin, &[&gpus]);
        kubelet.wait_for(|views| views.iter().any(|v| v.name == NPU && v.allocatable == 0)).await;
        plugin.wait_for(|readiness| readiness.resources.len() == 1).await;
        sleep(SECOND * 5).await;
        assert_eq!(npus.streams(), 0);
        assert_eq!(sockets(&node.host), gpu_socket, "{release:?}");
        assert_eq!(kubelet.registrations(GPU), 1, "the stream of the GPUs ended");
        assert_eq!(allocatable(&kubelet, GPU), Some(2));
        plugin.stop().await.unwrap();
    }
}

/// Up to 1.36, the end of a stream removes whatever is registered under the same name by then, and
/// a kubelet may handle the end late.
#[tokio::test(start_paused = true)]
async fn a_resource_that_returns_is_registered_some_time_after_its_old_stream_ended() {
    for release in [Release::V1_26, Release::V1_36, Release::V1_37] {
        for pause_ms in [1, 20, 3000] {
            let (_node, gpus, kubelet, plugin) = started(release).await;
            let npus = Devices::new(NPU, "npu", 3);
            serve(&plugin, &[&gpus, &npus]);
            kubelet
                .wait_for(|views| views.iter().any(|v| v.name == NPU && v.allocatable == 3))
                .await;
            serve(&plugin, &[&gpus]);
            sleep(Duration::from_millis(pause_ms)).await;
            serve(&plugin, &[&npus, &gpus]);
            sleep(Duration::from_millis(20)).await;
            let registered_again = kubelet.registrations(NPU) == 2;
            assert_eq!(registered_again, pause_ms == 3000, "{release:?} {pause_ms}");
            sleep(SECOND * 10).await;
            assert!(plugin.readiness.borrow().is_ready());
            let state = (release, pause_ms, allocatable(&kubelet, NPU));
            assert_eq!(state, (release, pause_ms, Some(3)));
            assert_eq!(kubelet.registrations(GPU), 1);
            plugin.stop().await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn another_object_under_the_same_name_is_registered_instead() {
    for release in [Release::V1_26, Release::V1_36, Release::V1_37] {
        let (node, gpus, kubelet, plugin) = started(release).await;
        let other = Devices::new(GPU, "other", 5);
        serve(&plugin, &[&other]);
        let seen = timeout(SECOND * 10, kubelet.wait_for(|views| views[0].allocatable == 5)).await;
        assert!(seen.is_ok(), "{release:?}");
        sleep(SECOND * 5).await;
        assert_eq!((gpus.streams(), sockets(&node.host).len()), (0, 1));
        assert_eq!(allocatable(&kubelet, GPU), Some(5));
        plugin.stop().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn the_document_is_reported_and_changes_no_stream() {
    let (node, gpus, kubelet, plugin) = started(Release::V1_36).await;
    let npus = Devices::new(NPU, "npu", 3);
    serve(&plugin, &[&gpus, &npus]);
    plugin.wait_for(|readiness| readiness.is_ready() && readiness.resources.len() == 2).await;
    let document = b"two lines\nof text, \xFF";
    plugin.served.send_modify(|served| served.document = document.to_vec());
    plugin.wait_for(|readiness| readiness.document == document).await;
    assert!(plugin.readiness.borrow().is_ready());
    let answers = query_all(&node.host, &sockets(&node.host)).await;
    let [Ok(gpu), Ok(npu)] = &answers[..] else { panic!("{answers:?}") };
    assert_eq!((gpu, gpu.document.as_slice()), (npu, document.as_slice()));
    assert_eq!(gpu.instance, plugin.readiness.borrow().instance);
    assert_eq!(kubelet.registrations(GPU), 1);
    let readiness = plugin.readiness.clone();
    plugin.stop().await.unwrap();
    assert_eq!(readiness.borrow().instance, 0);
}

#[tokio::test(start_paused = true)]
async fn another_plugin_has_another_instance() {
    let mut instances = Vec::new();
    for _ in 0..2 {
        let (.., plugin) = started(Release::V1_36).await;
        instances.push(plugin.readiness.borrow().instance);
        plugin.stop().await.unwrap();
    }
    assert!(instances[0] != instances[1] && !instances.contains(&0), "{instances:?}");
}

/// Neither a kubelet nor an operating system would accept these names later.
#[tokio::test(start_paused = true)]
async fn invalid_names_end_the_plugin() {
    let path = format!("{DIRECTORY}/{}-9999999999999.sock", "x".repeat(57));
    for (name, prefix, error) in [
        ("gpu", "gpu", RunError::InvalidName("gpu".to_owned())),
        ("", "gpu", RunError::InvalidName(String::new())),
        ("kubernetes.io/gpu", "gpu", RunError::InvalidName("kubernetes.io/gpu".to_owned())),
        (GPU, "", RunError::InvalidSocketPrefix(String::new())),
        (GPU, "../gpu", RunError::InvalidSocketPrefix("../gpu".to_owned())),
        (GPU, &"x".repeat(57), RunError::SocketPathTooLong(path.into())),
    ] {
        let mut node = Node::new();
        node.add(name, prefix, 1);
        let ended = timeout(SECOND * 5, node.run().task).await.unwrap().unwrap();
        assert_eq!(ended, Err(error));
    }
    for lock in ["", GPU, "Gpus"] {
        let mut node = Node::new();
        node.add(GPU, "gpu", 1).require(lock);
        let ended = timeout(SECOND * 5, node.run().task).await.unwrap().unwrap();
        assert_eq!(ended, Err(RunError::InvalidLock(lock.to_owned())));
    }
    let mut node = Node::new();
    node.add(&format!("example.com/{}", "x".repeat(63)), &"x".repeat(56), 1);
    let plugin = node.run();
    timeout(SECOND * 5, plugin.task).await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_is_served_twice_ends_the_plugin() {
    let (_node, gpus, _kubelet, plugin) = started(Release::V1_36).await;
    serve(&plugin, &[&gpus, &gpus]);
    let ended = timeout(SECOND * 5, plugin.task).await.unwrap().unwrap();
    assert!(matches!(ended, Err(RunError::Duplicate(name)) if name == GPU));
}

#[tokio::test(start_paused = true)]
async fn a_plugin_without_resources_waits_for_some() {
    let (node, gpus, kubelet, plugin) = started(Release::V1_37).await;
    serve(&plugin, &[]);
    kubelet.wait_for(|views| views[0].allocatable == 0).await;
    sleep(SECOND * 10).await;
    assert_eq!(sockets(&node.host), [""; 0].map(std::path::PathBuf::from));
    assert!(!plugin.readiness.borrow().is_ready());
    serve(&plugin, &[&gpus]);
    kubelet.wait_for(|views| views[0].allocatable == 2).await;
    plugin.wait_until_ready().await;
    plugin.stop().await.unwrap();
}
