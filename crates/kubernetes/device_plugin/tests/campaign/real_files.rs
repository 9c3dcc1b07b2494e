//! The part of the campaign that concerns files, with the host's own sockets and clock.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use device_plugin::{KUBELET_SOCKET, Resource, Transport, UnixSockets};
use fastrand::Rng;
use kubelet_double::{Cleanup, KubeletDouble, KubeletOptions, Release};
use tokio::time::{sleep, timeout};

use crate::plugin::{Devices, Plugin};
use crate::{SEED, SERIAL, number};

const NAMES: [&str; 2] = ["example.com/a", "example.com/b"];

/// The default number of rounds.
const ROUNDS: u64 = 25;

/// Far longer than a registration takes on a busy host.
const LIMIT: Duration = Duration::from_mins(2);

#[test]
fn recovers_from_random_deletions() {
    if device_plugin::unix_sockets::skips_test() {
        return;
    }
    let _serial = SERIAL.lock().unwrap_or_else(PoisonError::into_inner);
    let rounds = number("CAMPAIGN_ROUNDS").unwrap_or(ROUNDS);
    let seed = number("CAMPAIGN_SEED").unwrap_or(SEED);
    println!("CAMPAIGN_SEED={seed} CAMPAIGN_ROUNDS={rounds}");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(run(seed, rounds));
}

async fn run(seed: u64, rounds: u64) {
    let mut rng = Rng::with_seed(seed);
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("device-plugins");
    let releases = [Release::V1_26, Release::V1_36, Release::V1_37];
    let cleanups = [Cleanup::Sockets, Cleanup::EverythingButCheckpoint, Cleanup::OwnSocket];
    let mut options = KubeletOptions::default();
    options.release = *rng.choice(&releases).unwrap();
    options.cleanup = *rng.choice(&cleanups).unwrap();
    let mut kubelet = KubeletDouble::start(UnixSockets, &directory, options).unwrap();
    let resources: Vec<Arc<dyn Resource>> =
        vec![Devices::new(NAMES[0], "a", 3), Devices::new(NAMES[1], "b", 3)];
    let plugin = Plugin::run(UnixSockets, &directory, resources);
    for round in 0..rounds {
        for _ in 0..4 {
            inject_fault(&mut rng, &directory, &mut kubelet).await;
            sleep(Duration::from_millis(rng.u64(0..40))).await;
        }
        if UnixSockets.identity(&directory.join(KUBELET_SOCKET)).unwrap().is_none() {
            kubelet.kill();
        }
        kubelet.start_again().unwrap();
        let context = format!("CAMPAIGN_SEED={seed}, round {round}, {options:?}");
        let settled = timeout(LIMIT, async {
            kubelet
                .wait_for(|views| views.iter().filter(|v| v.allocatable == 3).count() == 2)
                .await;
            plugin.wait_until_ready().await;
            while own_sockets(&directory).len() != NAMES.len() {
                sleep(Duration::from_millis(20)).await;
            }
        });
        assert!(settled.await.is_ok(), "{:?}: {context}", kubelet.resources());
    }
    plugin.stop().await.unwrap();
    assert_eq!(own_sockets(&directory), Vec::<PathBuf>::new());
}

fn own_sockets(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    let mut sockets: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    sockets.retain(|path| {
        path.extension().is_some_and(|e| e == "sock") && !path.ends_with(KUBELET_SOCKET)
    });
    sockets
}

async fn inject_fault(rng: &mut Rng, directory: &Path, kubelet: &mut KubeletDouble<UnixSockets>) {
    match rng.u64(0..6) {
        0 | 1 => {
            if rng.u64(0..2) == 0 {
                kubelet.stop().await;
            } else {
                kubelet.kill();
            }
            sleep(Duration::from_millis(rng.u64(0..100))).await;
            kubelet.start_again().unwrap();
        }
        2 | 3 => {
            if let Some(socket) = rng.choice(own_sockets(directory)) {
                // The plugin may have replaced the socket in the meantime.
                let _ = std::fs::remove_file(&socket);
            }
        }
        4 => {
            let _ = std::fs::remove_file(directory.join(KUBELET_SOCKET));
        }
        _ => {
            let _ = std::fs::remove_dir_all(directory);
        }
    }
}
