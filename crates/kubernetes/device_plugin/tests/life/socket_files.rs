//! The files of sockets on hosts on which they cannot be inspected.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;

use kubelet_double::{InMemory, Inspection, KubeletDouble, KubeletOptions};
use tokio::time::{sleep, timeout};

use crate::plugin::{DIRECTORY, GPU, Node, Plugin, sockets};

/// Longer than the plugin takes to notice that a socket was replaced.
const CHECKED: Duration = Duration::from_secs(2);

fn start() -> (Node, KubeletDouble<InMemory>) {
    let mut node = Node::new();
    node.add(GPU, "gpu", 2);
    let kubelet =
        KubeletDouble::start(node.host.clone(), DIRECTORY, KubeletOptions::default()).unwrap();
    (node, kubelet)
}

async fn ready(plugin: &Plugin) {
    timeout(CHECKED, plugin.wait_until_ready()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_host_that_cannot_inspect_files_keeps_one_socket_until_it_can() {
    let (node, kubelet) = start();
    node.host.set_inspection(Inspection::Fails(ErrorKind::PermissionDenied));
    let plugin = node.run();
    sleep(Duration::from_mins(1)).await;
    assert_eq!((sockets(&node.host).len(), kubelet.registrations(GPU)), (1, 0));
    let error = plugin.last_error().unwrap();
    assert!(error.starts_with("cannot inspect kubelet socket"), "{error}");
    node.host.set_inspection(Inspection::Lists);
    ready(&plugin).await;
    assert_eq!(sockets(&node.host).len(), 1);
    plugin.stop().await.unwrap();
    assert_eq!(sockets(&node.host), Vec::<PathBuf>::new());
}

#[tokio::test(start_paused = true)]
async fn sockets_that_can_be_opened_only_sometimes_are_not_replaced() {
    for first in [Inspection::Opens, Inspection::Lists] {
        let (node, kubelet) = start();
        node.host.set_inspection(first);
        let plugin = node.run();
        ready(&plugin).await;
        let before = sockets(&node.host);
        let failing = Inspection::Fails(ErrorKind::PermissionDenied);
        for inspection in [Inspection::Lists, Inspection::Opens, failing, Inspection::Lists, first]
        {
            node.host.set_inspection(inspection);
            sleep(CHECKED).await;
            assert_eq!(sockets(&node.host), before, "{first:?}, then {inspection:?}");
            assert_eq!(kubelet.registrations(GPU), 1, "{first:?}, then {inspection:?}");
        }
        ready(&plugin).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_replaced_kubelet_is_noticed_by_the_entry_in_the_directory() {
    let (node, mut kubelet) = start();
    node.host.set_inspection(Inspection::Lists);
    let plugin = node.run();
    ready(&plugin).await;
    for round in 0..5 {
        kubelet.kill();
        kubelet.start_again().unwrap();
        timeout(CHECKED, kubelet.wait_for_lists(&[GPU])).await.unwrap();
        assert_eq!(kubelet.registrations(GPU), round + 2);
    }
}
