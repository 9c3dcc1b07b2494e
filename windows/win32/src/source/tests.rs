//! A watched source says nothing while nothing changes, and nothing once it is gone.
//!
//! The adapters are played by the library that `cargo xtask test` puts in the place of
//! dxcore.dll in a Wine prefix: it follows a file, calls on a thread of its own as
//! `DXCore` does, and ends the process when an object is released before its events
//! are cancelled. On real Windows nobody plays, and only the silence is seen.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::*;

/// Much longer than a change takes to be told, on a slow machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// Long enough for an event that should not be there to be seen.
const QUIET: Duration = Duration::from_millis(300);

/// Makes the file say that the host has these adapters, at one moment.
fn put(file: &Path, luids: &[i64]) {
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
    // A file that somebody reads cannot be replaced on Windows.
    let end = Instant::now() + PATIENCE;
    while let Err(error) = std::fs::rename(&draft, file) {
        assert!(Instant::now() < end, "{error}");
    }
}

fn luids(snapshot: &HostSnapshot) -> Vec<i64> {
    snapshot.adapters.iter().map(|adapter| adapter.luid.0).collect()
}

/// A source that is watched, and how often it has called.
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

    /// Reads after each call, as the daemon does, until the host has these adapters.
    fn follow_to(&mut self, wanted: &[i64]) {
        let end = Instant::now() + PATIENCE;
        loop {
            assert!(Instant::now() < end, "nobody told of {wanted:?}");
            if self.calls.swap(0, Ordering::SeqCst) == 0 {
                std::thread::sleep(Duration::from_millis(1));
            } else if self.luids() == wanted {
                return;
            }
        }
    }

    /// Nothing calls while nothing changes, however often the host is read. What an
    /// earlier change still had to say is heard out first.
    fn is_silent(&mut self) {
        std::thread::sleep(QUIET);
        self.calls.store(0, Ordering::SeqCst);
        for _ in 0..3 {
            self.luids();
        }
        std::thread::sleep(QUIET);
        assert_eq!(self.calls.load(Ordering::SeqCst), 0, "called although nothing changed");
    }
}

#[test]
#[allow(unsafe_code, reason = "names the file that the played dxcore.dll follows")]
fn a_source_calls_when_something_changes_and_never_else() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("host.yaml");
    put(&file, &[71, 72]);
    // SAFETY: Windows guards the environment against threads that read it meanwhile.
    unsafe { std::env::set_var("DXCORE_DOUBLE_INVENTORY", &file) };

    let mut host = Watched::new();
    let is_played = host.luids() == [71, 72];
    host.is_silent();
    if !is_played {
        return;
    }

    put(&file, &[71, 70, 72]);
    host.follow_to(&[71, 70, 72]);
    put(&file, &[]);
    host.follow_to(&[]);
    host.is_silent();

    let Watched { source, calls } = host;
    drop(source);
    assert_eq!(Arc::strong_count(&calls), 1);
    calls.store(0, Ordering::SeqCst);
    put(&file, &[1]);
    std::thread::sleep(QUIET);
    assert_eq!(calls.load(Ordering::SeqCst), 0);
    assert_eq!(luids(&HostSource::new().unwrap().snapshot().unwrap()), [1]);
}
