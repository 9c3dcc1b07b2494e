//! `serve`, with a kubelet.

use daemon_bed::{MinimalKubelet, RESOURCE};

use super::machine::{DEVICE_PLUGINS, Machine, Running};

fn start(machine: &Machine) -> (MinimalKubelet, Running) {
    let kubelet = MinimalKubelet::start(&machine.path(DEVICE_PLUGINS)).unwrap();
    (kubelet, machine.start(&["serve", "--device-plugin-dir", DEVICE_PLUGINS]))
}

#[tokio::test]
#[ignore = "needs root and musl: cargo xtask test dxg"]
async fn adapters_that_go_and_come_change_the_list() {
    let Some(machine) = Machine::new() else { return };
    let (mut kubelet, _program) = start(&machine);
    let both = kubelet.list(RESOURCE, 2).await.unwrap().healthy;
    machine.driver.change(|state| _ = state.adapters.remove(0));
    assert_eq!(kubelet.list(RESOURCE, 1).await.unwrap().healthy, both[1..]);
    machine.driver.change(|state| state.adapters.clone_from(&machine.host.adapters));
    assert_eq!(kubelet.list(RESOURCE, 2).await.unwrap().healthy, both);
}

/// The kernel connects the process again only after it has closed its file.
#[tokio::test]
#[ignore = "needs root and musl: cargo xtask test dxg"]
async fn a_lost_connection_makes_the_devices_unhealthy_until_it_is_back() {
    let Some(machine) = Machine::new() else { return };
    let (mut kubelet, _program) = start(&machine);
    let both = kubelet.list(RESOURCE, 2).await.unwrap().healthy;
    machine.driver.change(|state| (state.is_stale, state.open_error) = (true, Some(libc::EBADF)));
    kubelet.list(RESOURCE, 0).await.unwrap();
    machine.driver.change(|state| state.open_error = None);
    assert_eq!(kubelet.list(RESOURCE, 2).await.unwrap().healthy, both);
}

#[tokio::test]
#[ignore = "needs root and musl: cargo xtask test dxg"]
async fn while_the_driver_hangs_the_resource_is_registered_without_devices() {
    let Some(machine) = Machine::new() else { return };
    machine.driver.change(|state| state.hangs = true);
    let (mut kubelet, _program) = start(&machine);
    kubelet.list(RESOURCE, 0).await.unwrap();
    machine.driver.change(|state| state.hangs = false);
    kubelet.list(RESOURCE, 2).await.unwrap();
}
