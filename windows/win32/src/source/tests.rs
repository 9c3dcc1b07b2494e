//! A watched source calls back only after a change, and never after it is dropped.
//!
//! Under Wine, `cargo xtask test` replaces dxcore.dll with a double that simulates the
//! adapters. The double follows a file, calls back on a separate thread as `DXCore` does, and
//! aborts the process if an object is released before its events are unregistered. On real
//! Windows there is no double, and the test checks only that there are no callbacks.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::*;

/// Much longer than a notification takes on a slow machine.
const DEADLINE: Duration = Duration::from_secs(20);

/// How long to wait for a callback that must not occur.
const QUIET: Duration = Duration::from_millis(300);

/// Changes the adapters of the simulated host at once.
fn set_adapters(file: &Path, luids: &[i64]) {
    let mut text = String::from("schema: directx-inventory/v1\nadapters:");
    for luid in luids {
        write!(
            text,
            "\n- luid: {luid}\n  attributes: [d3d11-graphics, d3d12-graphics, npu]\n  \
             hardware: true\n  hardwareId: {{vendor: 0x10DE, device: 0x1EB8}}\n  \
             driverDescription: Adapter {luid}"
        )
        .unwrap();
    }
    text += if luids.is_empty() { " []\n" } else { "\n" };
    let draft = file.with_extension("draft");
    std::fs::write(&draft, text).unwrap();
    // Windows rejects the rename while the double reads the file.
    let end = Instant::now() + DEADLINE;
    while let Err(error) = std::fs::rename(&draft, file) {
        assert!(Instant::now() < end, "{error}");
    }
}

fn luids(snapshot: &HostSnapshot) -> Vec<i64> {
    snapshot.adapters.iter().map(|adapter| adapter.luid.0).collect()
}

/// A watched source and the number of its callbacks.
struct Watched {
    source: HostSource,
    calls: Arc<AtomicUsize>,
}

impl Watched {
    fn new() -> Self {
        let calls = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&calls);
        let mut source = HostSource::new().unwrap();
        source.watch(Box::new(move || _ = counter.fetch_add(1, Ordering::SeqCst))).unwrap();
        Self { source, calls }
    }

    fn luids(&mut self) -> Vec<i64> {
        luids(&self.source.snapshot().unwrap())
    }

    /// Reads the host after each callback, as the daemon does, until it has these adapters.
    fn wait_for(&mut self, wanted: &[i64]) {
        let end = Instant::now() + DEADLINE;
        loop {
            assert!(Instant::now() < end, "no callback for {wanted:?}");
            if self.calls.swap(0, Ordering::SeqCst) == 0 {
                std::thread::sleep(Duration::from_millis(1));
            } else if self.luids() == wanted {
                return;
            }
        }
    }

    /// Checks that there is no callback without a change, even if the host is read repeatedly.
    /// Waits for the callbacks of earlier changes first.
    fn assert_no_callbacks(&mut self) {
        std::thread::sleep(QUIET);
        self.calls.store(0, Ordering::SeqCst);
        for _ in 0..3 {
            self.luids();
        }
        std::thread::sleep(QUIET);
        assert_eq!(self.calls.load(Ordering::SeqCst), 0, "callback without a change");
    }
}

#[test]
#[allow(unsafe_code, reason = "sets the variable that names the inventory of the double")]
fn a_source_calls_back_only_after_a_change() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("host.yaml");
    set_adapters(&file, &[71, 72]);
    // SAFETY: on Windows, accesses to the environment are synchronised.
    unsafe { std::env::set_var("DXCORE_DOUBLE_INVENTORY", &file) };

    let mut host = Watched::new();
    let is_simulated = host.luids() == [71, 72];
    host.assert_no_callbacks();
    if !is_simulated {
        return;
    }

    set_adapters(&file, &[71, 70, 72]);
    host.wait_for(&[71, 70, 72]);
    set_adapters(&file, &[]);
    host.wait_for(&[]);
    host.assert_no_callbacks();

    let Watched { source, calls } = host;
    drop(source);
    assert_eq!(Arc::strong_count(&calls), 1);
    calls.store(0, Ordering::SeqCst);
    set_adapters(&file, &[1]);
    std::thread::sleep(QUIET);
    assert_eq!(calls.load(Ordering::SeqCst), 0);
    assert_eq!(luids(&HostSource::new().unwrap().snapshot().unwrap()), [1]);
}
