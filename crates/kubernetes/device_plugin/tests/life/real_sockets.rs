//! Tests with the host's own sockets and clock, for what depends on files.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use device_plugin::{KUBELET_SOCKET, Resource, UnixSockets};
use kubelet_double::{Cleanup, KubeletDouble, KubeletOptions, PodRequest};
use tokio::time::{sleep, timeout};

use crate::plugin::{Devices, GPU, Plugin};

/// Ends a test that hangs.
const LIMIT: Duration = Duration::from_mins(2);

fn sockets(directory: &Path) -> Vec<PathBuf> {
    let mut sockets: Vec<PathBuf> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    sockets.retain(|path| {
        path.extension().is_some_and(|e| e == "sock") && !path.ends_with(KUBELET_SOCKET)
    });
    sockets
}

async fn start(directory: &Path, cleanup: Cleanup) -> (KubeletDouble<UnixSockets>, Plugin) {
    let mut options = KubeletOptions::default();
    options.cleanup = cleanup;
    let kubelet = KubeletDouble::start(UnixSockets, directory, options).unwrap();
    let resource: Arc<dyn Resource> = Devices::new(GPU, "gpu", 4);
    let plugin = Plugin::run(UnixSockets, directory, vec![resource]);
    timeout(LIMIT, kubelet.wait_for_lists(&[GPU])).await.unwrap();
    (kubelet, plugin)
}

#[tokio::test]
async fn registers_again_after_restarts_with_every_cleanup() {
    if device_plugin::unix_sockets::skips_test() {
        return;
    }
    for cleanup in [Cleanup::Sockets, Cleanup::EverythingButCheckpoint, Cleanup::OwnSocket] {
        let directory = tempfile::tempdir().unwrap();
        let (mut kubelet, plugin) = start(directory.path(), cleanup).await;
        for round in 0..4 {
            if round % 2 == 0 {
                kubelet.stop().await;
            } else {
                kubelet.kill();
            }
            sleep(Duration::from_millis(30 * round)).await;
            kubelet.start_again().unwrap();
            timeout(LIMIT, kubelet.wait_for_lists(&[GPU])).await.unwrap();
            let pod = PodRequest::single(format!("{cleanup:?}-{round}"), GPU, 1);
            assert!(kubelet.admit(pod).await.is_ok());
        }
        plugin.stop().await.unwrap();
        assert_eq!(sockets(directory.path()), Vec::<PathBuf>::new());
    }
}

#[tokio::test]
async fn recovers_from_deleted_sockets_and_directories() {
    if device_plugin::unix_sockets::skips_test() {
        return;
    }
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("device-plugins");
    let (mut kubelet, plugin) = start(&directory, Cleanup::Sockets).await;
    for round in 0..2 {
        let before = sockets(&directory);
        std::fs::remove_file(&before[0]).unwrap();
        let again = timeout(LIMIT, async {
            while kubelet.registrations(GPU) < round + 2 || sockets(&directory) == before {
                sleep(Duration::from_millis(20)).await;
            }
        });
        again.await.unwrap();
        timeout(LIMIT, kubelet.wait_for_lists(&[GPU])).await.unwrap();
    }
    std::fs::remove_dir_all(&directory).unwrap();
    // Two seconds are enough to notice that the directory is missing. On a busy host, what would go
    // wrong may not happen until then.
    sleep(Duration::from_secs(2)).await;
    assert_eq!(kubelet.resources()[0].allocatable, 4);
    kubelet.restart().await.unwrap();
    timeout(LIMIT, kubelet.wait_for_lists(&[GPU])).await.unwrap();
    plugin.stop().await.unwrap();
}

/// On Windows a socket has no mode.
#[cfg(unix)]
#[tokio::test]
async fn the_socket_is_accessible_only_to_its_owner() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let (_kubelet, _plugin) = start(directory.path(), Cleanup::Sockets).await;
    let socket = sockets(directory.path()).remove(0);
    assert_eq!(std::fs::metadata(socket).unwrap().permissions().mode() & 0o777, 0o600);
}
