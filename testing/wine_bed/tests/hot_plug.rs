//! A host that changes while `win32` watches it: arrivals, removals, both in a burst.
//!
//! The suite under Wine runs it on a bed; the tests change that bed as the suite does.
#![cfg(windows)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use devices::{AdapterSource, HostSnapshot};
use win32::HostSource;

/// Longer than any event takes, short enough to end a hang.
const DEADLINE: Duration = Duration::from_secs(20);

/// A time in which a host that does not change must stay silent.
const QUIET: Duration = Duration::from_millis(300);

/// One host, which the tests use in turn.
struct Host {
    inventory: PathBuf,
    _turn: MutexGuard<'static, ()>,
}

/// An adapter by its LUID and the slot that its device sits in.
type Adapter = (i64, u32);

impl Host {
    fn with(adapters: &[Adapter]) -> Host {
        static TURN: Mutex<()> = Mutex::new(());
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let inventory = std::env::var_os("DXCORE_DOUBLE_INVENTORY");
        let inventory = inventory.expect("the suite says which inventory the double follows");
        let host = Host { inventory: inventory.into(), _turn: turn };
        host.becomes(adapters);
        host
    }

    /// First the devices change, then, at one moment, the adapters.
    fn becomes(&self, adapters: &[Adapter]) {
        let draft = self.inventory.with_extension("draft");
        fs::write(&draft, inventory(adapters)).expect("the drive can be written");
        let mut tool = Command::new(Path::new(env!("CARGO_BIN_EXE_wine_bed")));
        let status = tool.arg("set").arg(&draft).status().expect("the tool is built with the test");
        assert!(status.success(), "wine_bed ended with {status}");
        self.shows(adapters);
    }

    /// The adapters change and the devices stay.
    fn shows(&self, adapters: &[Adapter]) {
        let draft = self.inventory.with_extension("draft");
        fs::write(&draft, inventory(adapters)).expect("the drive can be written");
        // Windows refuses it while the double has the file open.
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

/// A source that is watched, and the words it gives.
struct Watched {
    source: HostSource,
    words: Receiver<()>,
}

impl Watched {
    fn start() -> Watched {
        let mut source = HostSource::new().expect("the bed has a dxcore.dll");
        let (sender, words) = channel();
        // The receiver may be gone first, at the end of a test.
        source.watch(Box::new(move || _ = sender.send(()))).expect("the double tells of changes");
        let mut watched = Watched { source, words };
        watched.snapshot();
        watched
    }

    fn snapshot(&mut self) -> HostSnapshot {
        self.source.snapshot().expect("the host can be read")
    }

    /// Waits for the word, and reads the host until it is as expected: a word may
    /// come between two changes of a burst, and then another one follows.
    fn sees(&mut self, expected: &[Adapter]) {
        loop {
            self.words.recv_timeout(DEADLINE).expect("a change is told");
            if found(&self.snapshot()) == expected {
                return;
            }
        }
    }

    fn is_quiet(&self) -> bool {
        while self.words.try_recv().is_ok() {}
        self.words.recv_timeout(QUIET) == Err(RecvTimeoutError::Timeout)
    }
}

/// The adapters that are whole: with device, driver key, folder and value.
fn found(snapshot: &HostSnapshot) -> Vec<Adapter> {
    let slot = |adapter: &devices::Adapter| {
        let pnp = adapter.pnp.as_ref()?;
        let values = &adapter.driver_store.as_ref()?.copy_to_vm;
        let digits = pnp.id.to_string();
        (values.len() == 1).then_some(digits.rsplit('&').next()?.parse().ok()?)
    };
    snapshot.adapters.iter().filter_map(|a| Some((a.luid.0, slot(a)?))).collect()
}

#[test]
fn an_adapter_arrives_and_goes() {
    let host = Host::with(&[(11, 1)]);
    let mut watched = Watched::start();
    host.becomes(&[(11, 1), (12, 2)]);
    watched.sees(&[(11, 1), (12, 2)]);
    host.becomes(&[(12, 2)]);
    watched.sees(&[(12, 2)]);
    assert!(watched.is_quiet(), "a host that does not change is told of");
}

#[test]
fn the_first_arrives_and_the_last_goes() {
    let host = Host::with(&[]);
    let mut watched = Watched::start();
    host.becomes(&[(11, 1)]);
    watched.sees(&[(11, 1)]);
    host.becomes(&[]);
    watched.sees(&[]);
}

#[test]
fn a_driver_upgrade_gives_the_device_another_luid() {
    let host = Host::with(&[(11, 1), (12, 2)]);
    let mut watched = Watched::start();
    host.becomes(&[(11, 1), (99, 2)]);
    watched.sees(&[(11, 1), (99, 2)]);
}

#[test]
fn a_burst_ends_in_what_the_host_has_at_last() {
    let host = Host::with(&[(11, 1), (12, 2), (13, 3)]);
    let mut watched = Watched::start();
    for _ in 0..20 {
        host.shows(&[(12, 2)]);
        host.shows(&[(11, 1), (12, 2), (13, 3)]);
        host.shows(&[]);
    }
    host.shows(&[(13, 3), (11, 1)]);
    watched.sees(&[(13, 3), (11, 1)]);
    assert!(watched.is_quiet(), "a host that does not change is told of");
}

#[test]
fn a_change_before_the_first_reading_is_not_lost() {
    let host = Host::with(&[(11, 1)]);
    let mut source = HostSource::new().expect("the bed has a dxcore.dll");
    let (sender, words) = channel();
    source.watch(Box::new(move || _ = sender.send(()))).expect("the double tells of changes");
    host.becomes(&[(11, 1), (12, 2)]);
    let mut watched = Watched { source, words };
    watched.sees(&[(11, 1), (12, 2)]);
}
