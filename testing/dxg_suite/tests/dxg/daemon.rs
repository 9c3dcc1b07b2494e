//! `serve`, with a kubelet.

use std::time::Duration;

use device_plugin::UnixSockets;
use kubelet_double::{KubeletDouble, KubeletOptions, KubeletPlatform, ResourceView};
use tokio::time::timeout;

use super::machine::{DEVICE_PLUGINS, Machine, Running};

const RESOURCE: &str = "directx.microsoft.com/display";

/// Ends a test whose list never arrives.
const LIMIT: Duration = Duration::from_mins(3);

fn start(machine: &Machine) -> (KubeletDouble<UnixSockets>, Running) {
    let mut options = KubeletOptions::default();
    options.platform = KubeletPlatform::Linux;
    let directory = machine.path(DEVICE_PLUGINS);
    let kubelet = KubeletDouble::start(UnixSockets, directory, options).unwrap();
    (kubelet, machine.start(&["serve", "--device-plugin-dir", DEVICE_PLUGINS]))
}

/// Waits until the kubelet has a list with so many healthy devices, and returns their IDs.
async fn healthy(kubelet: &KubeletDouble<UnixSockets>, count: usize) -> Vec<String> {
    let has_list = |resources: &[ResourceView]| {
        resources.iter().any(|resource| resource.name == RESOURCE && resource.allocatable == count)
    };
    let resources = timeout(LIMIT, kubelet.wait_for(has_list)).await.unwrap();
    let devices = resources.into_iter().filter(|r| r.name == RESOURCE).flat_map(|r| r.devices);
    devices.filter(|device| device.health == "Healthy").map(|device| device.id).collect()
}

#[tokio::test]
#[ignore = "needs root and musl: cargo xtask test dxg"]
async fn adapters_that_go_and_come_change_the_list() {
    let Some(machine) = Machine::new() else { return };
    let (kubelet, _program) = start(&machine);
    let both = healthy(&kubelet, 2).await;
    machine.driver.change(|state| _ = state.adapters.remove(0));
    assert_eq!(healthy(&kubelet, 1).await, both[1..]);
    machine.driver.change(|state| state.adapters.clone_from(&machine.host.adapters));
    assert_eq!(healthy(&kubelet, 2).await, both);
}

/// The kernel connects the process again only after it has closed its file.
#[tokio::test]
#[ignore = "needs root and musl: cargo xtask test dxg"]
async fn a_lost_connection_makes_the_devices_unhealthy_until_it_is_back() {
    let Some(machine) = Machine::new() else { return };
    let (kubelet, _program) = start(&machine);
    let both = healthy(&kubelet, 2).await;
    machine.driver.change(|state| (state.is_stale, state.open_error) = (true, Some(libc::EBADF)));
    healthy(&kubelet, 0).await;
    machine.driver.change(|state| state.open_error = None);
    assert_eq!(healthy(&kubelet, 2).await, both);
}

#[tokio::test]
#[ignore = "needs root and musl: cargo xtask test dxg"]
async fn while_the_driver_hangs_the_resource_is_registered_without_devices() {
    let Some(machine) = Machine::new() else { return };
    machine.driver.change(|state| state.hangs = true);
    let (kubelet, _program) = start(&machine);
    healthy(&kubelet, 0).await;
    machine.driver.change(|state| state.hangs = false);
    healthy(&kubelet, 2).await;
}
