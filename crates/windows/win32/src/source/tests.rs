//! A watched source calls back only after a change, and never after it is dropped.
//!
//! Under Wine, `cargo xtask test` replaces dxcore.dll with a double that simulates the
//! adapters. The double follows a file, calls back on a separate thread as `DXCore` does, and
//! aborts the process if an object is released before its events are unregistered. On real
//! Windows there is no double, and the test checks only that there are no callbacks.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::*;

/// Names the inventory in the process that reads it.
const CHILD: &str = "WIN32_TESTS_SOURCE";

/// Ends a test that hangs.
const DEADLINE: Duration = Duration::from_mins(2);

/// How long to wait for a callback that must not occur. On a busy machine, one may come later and
/// is missed.
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

    /// Checks that callbacks cease without a change, even if the host is read repeatedly. Those of
    /// earlier changes may be late.
    fn assert_no_callbacks(&mut self) {
        let end = Instant::now() + DEADLINE;
        while {
            self.calls.store(0, Ordering::SeqCst);
            for _ in 0..3 {
                self.luids();
            }
            std::thread::sleep(QUIET);
            self.calls.load(Ordering::SeqCst) > 0
        } {
            assert!(Instant::now() < end, "callbacks without a change");
        }
    }
}

/// The test runs in a separate process, because the double has one inventory for each process.
#[test]
fn a_source_calls_back_only_after_a_change() {
    if let Some(file) = std::env::var_os(CHILD) {
        return watch_simulated_host(Path::new(&file));
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("host.yaml");
    set_adapters(&file, &[71, 72]);
    let name = "source::tests::a_source_calls_back_only_after_a_change";
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", name, "--nocapture"]).env(CHILD, &file);
    child.env("DXCORE_DOUBLE_FAILING_LISTS", failing_lists(&file));
    let output = child.env("DXCORE_DOUBLE_INVENTORY", &file).output().unwrap();
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

fn failing_lists(file: &Path) -> PathBuf {
    file.with_extension("failing")
}

/// This Windows has had each list, so one that fails says nothing about its adapters.
fn an_error_of_a_list_is_no_empty_list(host: &mut Watched, failing: &Path) {
    for list in ["d3d12-graphics", "npu"] {
        std::fs::write(failing, list).unwrap();
        let error = host.source.snapshot().unwrap_err().to_string();
        assert!(error.starts_with(&format!("cannot list {list} adapters")), "{error}");
        // A process that has not had the list cannot know whether this Windows has it.
        let first = HostSource::new().unwrap().snapshot();
        assert_eq!(first.is_ok(), list == "npu");
        std::fs::remove_file(failing).unwrap();
        assert_eq!(host.luids(), [71, 72]);
    }
}

fn watch_simulated_host(file: &Path) {
    let mut host = Watched::new();
    let is_simulated = host.luids() == [71, 72];
    host.assert_no_callbacks();
    if !is_simulated {
        return;
    }

    an_error_of_a_list_is_no_empty_list(&mut host, &failing_lists(file));
    host.assert_no_callbacks();

    set_adapters(file, &[71, 70, 72]);
    host.wait_for(&[71, 70, 72]);
    set_adapters(file, &[]);
    host.wait_for(&[]);
    host.assert_no_callbacks();

    let Watched { source, calls } = host;
    drop(source);
    assert_eq!(Arc::strong_count(&calls), 1);
    calls.store(0, Ordering::SeqCst);
    set_adapters(file, &[1]);
    std::thread::sleep(QUIET);
    assert_eq!(calls.load(Ordering::SeqCst), 0);
    assert_eq!(luids(&HostSource::new().unwrap().snapshot().unwrap()), [1]);
}
