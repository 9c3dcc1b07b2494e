//! A driver that is replaced on a node whose pods use it.

use kubelet_double::{ContainerView, PodRequest};

use crate::daemon::{DISPLAY, Daemon, display, until};

const OLD: &str = "nvgridsw_aws.inf_amd64_1b50ef32b191cff1";
const NEW: &str = "nvgridsw_aws.inf_amd64_0000000000000002";

/// Whether the container has the driver's files, all of this folder.
fn has_only_files_of(container: &ContainerView, folder: &str) -> bool {
    let mounts = &container.mounts;
    mounts.len() == 17 && mounts.iter().all(|mount| mount.host_path.contains(folder))
}

#[tokio::test]
async fn pods_get_only_files_of_the_driver_that_is_installed() {
    if device_plugin::unix_sockets::skips_test() {
        return;
    }
    let daemon = Daemon::start(&[]);
    let kubelet = daemon.kubelet();
    until(&kubelet, "registered", |v| display(v) == Some((2, 2))).await;
    let before = kubelet.admit(PodRequest::single("before", DISPLAY, 1)).await.unwrap();
    assert!(has_only_files_of(&before, OLD), "{before:?}");

    // What an installation looks like: a device that does not start, then no device, then others.
    daemon.rewrite(|text| text.replace("problemCode: 0", "problemCode: 10"));
    until(&kubelet, "unhealthy", |v| display(v) == Some((2, 0))).await;
    let during = kubelet.admit(PodRequest::single("during", DISPLAY, 1)).await;
    assert!(during.is_err(), "{during:?}");
    let installed = |text: String| {
        let text = text.replace(OLD, NEW).replace("problemCode: 10", "problemCode: 0");
        text.replace("luid: 7048070", "luid: 8048070").replace("luid: 7098126", "luid: 8098126")
    };
    daemon.rewrite(installed);
    until(&kubelet, "healthy again", |v| display(v) == Some((2, 2))).await;
    let after = kubelet.admit(PodRequest::single("after", DISPLAY, 1)).await.unwrap();
    assert!(has_only_files_of(&after, NEW), "{after:?}");

    let (status, log) = daemon.terminate();
    assert_eq!(status, Some(0), "{log}");
    assert_eq!(log.matches("the driver of a device was replaced").count(), 2, "{log}");
}
