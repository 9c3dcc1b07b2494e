//! A live host that changes under the daemon: arrivals, removals, a driver upgrade and a
//! burst, from `DXCore`'s events through the node's devices and the supervisor to a kubelet.
//!
//! The suite under Wine runs it on a bed; the test changes that bed as the suite does.
//! Wine has no `AF_UNIX`, so plugin and kubelet are connected in memory.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up should panic")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use device_plugin::DevicePlugin;
use device_plugin::testing::{Host, InMemory, KubeletDouble, Options};
use devices::{Catalog, DriverModel};

use crate::configuration;
use crate::host::HostAccess;
use crate::node_devices::NodeDevices;

/// The limit for each wait.
const DEADLINE: Duration = Duration::from_secs(30);

const DISPLAY: &str = "directx.microsoft.com/display";

/// An adapter by its LUID and the slot that its device sits in.
type Adapter = (i64, u32);

fn inventory(adapters: &[Adapter]) -> String {
    let entries = adapters.iter().map(|(luid, slot)| {
        format!(
            r"
- luid: {luid}
  attributes: [d3d11-graphics, d3d12-graphics, d3d12-core-compute]
  hardware: true
  hardwareId: {{vendor: 0x10DE, device: 0x1EB8}}
  pnp:
    id: 'PCI\VEN_10DE&DEV_1EB8\3&13C0B0C5&1&{slot}'
    driverKey: '{{4d36e968-e325-11ce-bfc1-08002be10318}}\{slot:04}'
    locationPaths: ['PCIROOT(0)#PCI({slot:02}00)']
  driverStore:
    path: 'C:\Windows\System32\DriverStore\FileRepository\nv{slot}.inf_amd64_1'
    files: [a.dll]
    copyToVm: {{CopyToVmOverwrite: {{a: [a.dll]}}}}"
        )
    });
    let list = if adapters.is_empty() { " []".to_owned() } else { entries.collect() };
    format!("schema: directx-inventory/v1\nadapters:{list}\n")
}

/// The inventory that the `dxcore.dll` of the bed follows.
fn bed_inventory() -> PathBuf {
    std::env::var_os("DXCORE_DOUBLE_INVENTORY").expect("the suite sets it").into()
}

/// Changes the devices, and then all adapters at once.
fn set_devices(adapters: &[Adapter]) {
    let draft = bed_inventory().with_extension("draft");
    fs::write(&draft, inventory(adapters)).unwrap();
    // Tests are in a folder below the programs.
    let exe = std::env::current_exe().unwrap();
    let tool = exe.parent().and_then(Path::parent).unwrap().join("wine_bed.exe");
    assert!(Command::new(tool).arg("set").arg(&draft).status().unwrap().success());
    set_adapters(adapters);
}

/// Changes the adapters and leaves the devices.
fn set_adapters(adapters: &[Adapter]) {
    let draft = bed_inventory().with_extension("draft");
    fs::write(&draft, inventory(adapters)).unwrap();
    // Windows refuses the rename while the double has the file open.
    while fs::rename(&draft, bed_inventory()).is_err() {
        std::thread::yield_now();
    }
}

async fn change_host(change: impl FnOnce() + Send + 'static) {
    tokio::task::spawn_blocking(change).await.unwrap();
}

/// Waits for capacity and allocatable.
async fn until<H: Host>(kubelet: &KubeletDouble<H>, what: &str, counts: (usize, usize)) {
    let seen = kubelet.wait_for(|views| {
        views.iter().any(|v| v.name == DISPLAY && (v.capacity, v.allocatable) == counts)
    });
    let seen = tokio::time::timeout(DEADLINE, seen).await;
    assert!(seen.is_ok(), "{what}: {:?}", kubelet.resources());
}

async fn scenario<H: Host>(kubelet: &KubeletDouble<H>) {
    until(kubelet, "one device at the start", (1, 1)).await;
    change_host(|| set_devices(&[(11, 1), (12, 2)])).await;
    until(kubelet, "a second device arrives", (2, 2)).await;
    change_host(|| set_devices(&[(12, 2)])).await;
    until(kubelet, "one disappears and is unhealthy for its grace period", (2, 1)).await;
    change_host(|| set_devices(&[(99, 1), (12, 2)])).await;
    until(kubelet, "it returns with another LUID", (2, 2)).await;
    change_host(|| {
        for _ in 0..10 {
            set_adapters(&[]);
            set_adapters(&[(99, 1), (12, 2)]);
            set_adapters(&[(12, 2)]);
        }
    })
    .await;
    until(kubelet, "after a burst the last state counts", (2, 1)).await;
}

#[tokio::test]
async fn changes_of_a_live_host_reach_the_kubelet() {
    change_host(|| set_devices(&[(11, 1)])).await;
    let config = configuration::load(&[DriverModel::Wddm], None).unwrap();
    let host = HostAccess::of(None).unwrap();
    let devices = NodeDevices::start(Catalog::new(config.policy), host).await.unwrap();
    let sockets = InMemory::default();
    let directory = Path::new("/kubelet");
    let kubelet = KubeletDouble::start(sockets.clone(), directory, Options::default()).unwrap();
    let plugin = DevicePlugin::following(directory, devices.served()).with_transport(sockets).run();
    tokio::select! {
        () = scenario(&kubelet) => {}
        ended = plugin => panic!("the plugin ended: {ended:?}"),
        ended = devices.run() => panic!("the node's devices ended: {ended:?}"),
    }
}
