//! A live host that changes under the daemon: arrivals, removals, a driver upgrade and a
//! burst, from `DXCore`'s events through the fleet and the supervisor to a kubelet.
//!
//! The suite under Wine runs it on a bed; the test changes that bed as the suite does.
//! Wine has no `AF_UNIX`, so plugin and kubelet speak over memory.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up should panic")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use devices::{Catalog, DriverModel};
use kubelet::{Readiness, RunConfig};
use kubelet_double::{Host, InMemory, KubeletDouble, Options};
use tokio::sync::watch;

use crate::fleet::Fleet;
use crate::{config, offered};

/// Longer than anything here takes, short enough to end a hang.
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

/// The file that the `dxcore.dll` of the bed follows.
fn followed() -> PathBuf {
    std::env::var_os("DXCORE_DOUBLE_INVENTORY").expect("the suite sets it").into()
}

/// First the devices change, then, at one moment, the adapters.
fn becomes(adapters: &[Adapter]) {
    let draft = followed().with_extension("draft");
    fs::write(&draft, inventory(adapters)).unwrap();
    // Tests are in a folder below the programs.
    let exe = std::env::current_exe().unwrap();
    let tool = exe.parent().and_then(Path::parent).unwrap().join("wine_bed.exe");
    assert!(Command::new(tool).arg("set").arg(&draft).status().unwrap().success());
    shows(adapters);
}

/// The adapters change and the devices stay.
fn shows(adapters: &[Adapter]) {
    let draft = followed().with_extension("draft");
    fs::write(&draft, inventory(adapters)).unwrap();
    // Windows refuses it while the double has the file open.
    while fs::rename(&draft, followed()).is_err() {
        std::thread::yield_now();
    }
}

async fn host(change: impl FnOnce() + Send + 'static) {
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
    until(kubelet, "one at the start", (1, 1)).await;
    host(|| becomes(&[(11, 1), (12, 2)])).await;
    until(kubelet, "another arrives", (2, 2)).await;
    host(|| becomes(&[(12, 2)])).await;
    until(kubelet, "one goes and is unhealthy for its grace", (2, 1)).await;
    host(|| becomes(&[(99, 1), (12, 2)])).await;
    until(kubelet, "it comes back with another LUID", (2, 2)).await;
    host(|| {
        for _ in 0..10 {
            shows(&[]);
            shows(&[(99, 1), (12, 2)]);
            shows(&[(12, 2)]);
        }
    })
    .await;
    until(kubelet, "a burst ends in what the host has at last", (2, 1)).await;
}

#[tokio::test]
async fn what_changes_on_a_live_host_reaches_the_kubelet() {
    host(|| becomes(&[(11, 1)])).await;
    let source = win32::HostSource::new().unwrap();
    let config = config::load(&[DriverModel::Wddm], None, None).unwrap();
    let catalog = Catalog::new(config.policy);
    let fleet = Fleet::start(catalog.clone(), Box::new(source), None).unwrap();
    let sockets = InMemory::default();
    let directory = Path::new("/kubelet");
    let kubelet = KubeletDouble::start(sockets.clone(), directory, Options::default()).unwrap();
    let (readiness, _) = watch::channel(Readiness::default());
    let plugin = kubelet::run(
        RunConfig { directory: directory.to_owned() },
        offered::resources(&catalog, &fleet.published()),
        sockets,
        std::future::pending(),
        readiness,
    );
    tokio::select! {
        () = scenario(&kubelet) => {}
        ended = plugin => panic!("the plugin ended: {ended:?}"),
        ended = fleet.run() => panic!("the fleet ended: {ended}"),
    }
}
