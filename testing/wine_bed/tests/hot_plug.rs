//! Changes a host while `win32` watches it: arrivals, removals, and both in a burst.
//!
//! The tests change the host, so they run only on a test bed: `testing/wine/wine` sets the variable
//! that says so.
#![cfg(windows)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use host::{AdapterSource, HostSnapshot};
use win32::HostSource;

/// Ends a test that hangs.
const DEADLINE: Duration = Duration::from_mins(2);

/// How long to wait for an event that must not occur. On a busy machine, one may come later and is
/// missed.
const QUIET: Duration = Duration::from_millis(300);

/// The host, which one test at a time uses.
struct Host {
    inventory: PathBuf,
    _lock: MutexGuard<'static, ()>,
}

/// An adapter: its LUID and the PCI slot of its device.
type Adapter = (i64, u32);

impl Host {
    /// `None` on a machine that must not change.
    fn with(adapters: &[Adapter]) -> Option<Host> {
        static LOCK: Mutex<()> = Mutex::new(());
        let lock = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(inventory) = std::env::var_os("DXCORE_DOUBLE_INVENTORY") else {
            eprintln!("skipped: this host is not a test bed");
            return None;
        };
        let host = Host { inventory: inventory.into(), _lock: lock };
        host.set(adapters);
        Some(host)
    }

    /// Changes the devices first, and then all adapters at once.
    fn set(&self, adapters: &[Adapter]) {
        let draft = self.inventory.with_extension("draft");
        fs::write(&draft, inventory(adapters)).expect("the drive is writable");
        let mut tool = Command::new(Path::new(env!("CARGO_BIN_EXE_wine_bed")));
        let status =
            tool.arg("set").arg(&draft).status().expect("cargo builds the tool with the test");
        assert!(status.success(), "wine_bed exited with {status}");
        self.set_adapters(adapters);
    }

    /// Changes the adapters and keeps the devices.
    fn set_adapters(&self, adapters: &[Adapter]) {
        let draft = self.inventory.with_extension("draft");
        fs::write(&draft, inventory(adapters)).expect("the drive is writable");
        // Windows rejects the rename while the double has the file open.
        while fs::rename(&draft, &self.inventory).is_err() {
            std::thread::yield_now();
        }
    }
}

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

/// A watched source and its notifications.
struct Watched {
    source: HostSource,
    notifications: Receiver<()>,
}

impl Watched {
    fn start() -> Watched {
        let mut source = HostSource::new().expect("the bed has a dxcore.dll");
        let (sender, notifications) = channel();
        // At the end of a test, the receiver may be dropped first.
        source
            .watch(Box::new(move || _ = sender.send(())))
            .expect("the double supports notifications");
        let mut watched = Watched { source, notifications };
        watched.snapshot();
        watched
    }

    fn snapshot(&mut self) -> HostSnapshot {
        self.source.snapshot().expect("the host can be read")
    }

    /// Waits for a notification and reads the host, until it is as expected. A notification
    /// may come between two changes of a burst; another one follows then.
    fn wait_for(&mut self, expected: &[Adapter]) {
        loop {
            self.notifications.recv_timeout(DEADLINE).expect("the source reports a change");
            if complete_adapters(&self.snapshot()) == expected {
                return;
            }
        }
    }

    /// Whether notifications cease. Those of earlier changes may be late.
    fn is_quiet(&self) -> bool {
        let end = Instant::now() + DEADLINE;
        while self.notifications.recv_timeout(QUIET) != Err(RecvTimeoutError::Timeout) {
            if Instant::now() > end {
                return false;
            }
        }
        true
    }
}

/// The complete adapters: with device, driver key, folder and value.
fn complete_adapters(snapshot: &HostSnapshot) -> Vec<Adapter> {
    let slot = |adapter: &host::Adapter| {
        let pnp = adapter.pnp.as_ref()?;
        let values = &adapter.driver_store.as_ref()?.copy_to_vm;
        let digits = pnp.id.to_string();
        (values.len() == 1).then_some(digits.rsplit('&').next()?.parse().ok()?)
    };
    snapshot.adapters.iter().filter_map(|a| Some((a.luid.0, slot(a)?))).collect()
}

#[test]
fn an_adapter_is_added_and_removed() {
    let Some(host) = Host::with(&[(11, 1)]) else { return };
    let mut watched = Watched::start();
    host.set(&[(11, 1), (12, 2)]);
    watched.wait_for(&[(11, 1), (12, 2)]);
    host.set(&[(12, 2)]);
    watched.wait_for(&[(12, 2)]);
    assert!(watched.is_quiet(), "a notification without a change");
}

#[test]
fn the_first_adapter_is_added_and_the_last_is_removed() {
    let Some(host) = Host::with(&[]) else { return };
    let mut watched = Watched::start();
    host.set(&[(11, 1)]);
    watched.wait_for(&[(11, 1)]);
    host.set(&[]);
    watched.wait_for(&[]);
}

#[test]
fn a_driver_upgrade_changes_the_luid() {
    let Some(host) = Host::with(&[(11, 1), (12, 2)]) else { return };
    let mut watched = Watched::start();
    host.set(&[(11, 1), (99, 2)]);
    watched.wait_for(&[(11, 1), (99, 2)]);
}

#[test]
fn a_burst_ends_with_the_last_state_of_the_host() {
    let Some(host) = Host::with(&[(11, 1), (12, 2), (13, 3)]) else { return };
    let mut watched = Watched::start();
    for _ in 0..20 {
        host.set_adapters(&[(12, 2)]);
        host.set_adapters(&[(11, 1), (12, 2), (13, 3)]);
        host.set_adapters(&[]);
    }
    host.set_adapters(&[(13, 3), (11, 1)]);
    watched.wait_for(&[(13, 3), (11, 1)]);
    assert!(watched.is_quiet(), "a notification without a change");
}

#[test]
fn a_change_before_the_first_snapshot_is_not_lost() {
    let Some(host) = Host::with(&[(11, 1)]) else { return };
    let mut source = HostSource::new().expect("the bed has a dxcore.dll");
    let (sender, notifications) = channel();
    source.watch(Box::new(move || _ = sender.send(()))).expect("the double supports notifications");
    host.set(&[(11, 1), (12, 2)]);
    let mut watched = Watched { source, notifications };
    watched.wait_for(&[(11, 1), (12, 2)]);
}
