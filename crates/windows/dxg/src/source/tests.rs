mod fake;

use std::path::Path;
use std::sync::mpsc;

use devices::StoreFiles;

use super::*;
use fake::{Fake, FakeAdapter, gpu};

const STORE: &str = r"\SystemRoot\System32\DriverStore\FileRepository\iigd.inf_amd64_1";
const VIRTUAL_GPU: &str = "sys/bus/pci/devices/6c4b:00:00.0";
const LIMIT: Duration = Duration::from_mins(1);

fn intel() -> FakeAdapter {
    let ids = [0x8086, 0xA7A0, 0x1028, 0x0B27, 4];
    gpu(-2 << 32 | 5, "Intel(R) Iris(R) Xe Graphics", ids, [0, 2, 0], STORE)
}

fn npu() -> FakeAdapter {
    let ids = [0x8086, 0x7D1D, 0x1028, 0x0B27, 4];
    let mut npu = gpu(9, "Intel(R) AI Boost", ids, [0, 11, 0], STORE);
    npu.answers.insert(15, (1_u32 | 1 << 11).to_le_bytes().to_vec());
    FakeAdapter { is_compute_only: true, ..npu }
}

/// The Basic Render Driver, which answers only the query for its kind.
fn software() -> FakeAdapter {
    let answers = [(15, (1_u32 | 1 << 2).to_le_bytes().to_vec())].into();
    FakeAdapter { luid: 7, is_compute_only: false, answers }
}

/// A machine with this driver, whose file system has the folders.
struct Bed {
    fake: Fake,
    root: tempfile::TempDir,
    source: DxgSource,
}

impl Bed {
    fn new(adapters: Vec<FakeAdapter>) -> Bed {
        let root = tempfile::tempdir().unwrap();
        let folders = [
            "usr/lib/wsl/lib",
            "usr/lib/wsl/drivers/iigd.inf_amd64_1",
            "proc/sys/kernel",
            VIRTUAL_GPU,
        ];
        for folder in folders {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        fs::write(root.path().join("proc/sys/kernel/osrelease"), "5.15-WSL2\n").unwrap();
        let uevent = root.path().join(VIRTUAL_GPU).join("uevent");
        fs::write(uevent, "DRIVER=dxgkrnl\nPCI_CLASS=30200\nPCI_ID=1414:008E\n").unwrap();
        let fake = Fake::with(adapters);
        let opened = fake.clone();
        let source = DxgSource::of(Machine {
            open: Box::new(move || opened.open()),
            root: root.path().to_owned(),
            interval: Duration::from_millis(5),
        });
        Bed { fake, root, source }
    }

    /// The snapshot; every adapter is closed after it.
    fn snapshot(&mut self) -> HostSnapshot {
        let snapshot = self.source.snapshot().unwrap();
        assert_eq!(self.fake.open_adapters(), 0);
        snapshot
    }

    fn driver_folder(&self) -> PathBuf {
        self.root.path().join("usr/lib/wsl/drivers/iigd.inf_amd64_1")
    }
}

#[test]
fn an_unsupported_query_is_a_warning() {
    let mut bed = Bed::new(vec![intel()]);
    bed.fake.change(|state| state.adapters[0].answers.remove(&18));
    let snapshot = bed.snapshot();
    assert_eq!(snapshot.adapters[0].driver_version, None);
    let text = &snapshot.warnings[0].text;
    assert!(text.starts_with("cannot read the driver version (query 18): "), "{text}");
}

/// A laptop that wakes up behaves in this way.
#[test]
fn a_query_that_fails_once_is_repeated() {
    for kind in [3, 6, 8, 13, 15, 18, 31, 48] {
        let mut bed = Bed::new(vec![intel()]);
        bed.fake.change(|state| state.next_error = Some((kind, libc::EINVAL)));
        assert_ne!(bed.snapshot().warnings, [], "{kind}");
        assert_eq!(bed.snapshot().warnings, [], "{kind}");
    }
}

#[test]
fn an_adapter_without_an_address_is_skipped_and_the_others_stay() {
    let mut bed = Bed::new(vec![intel(), npu()]);
    bed.fake.change(|state| state.adapters[0].answers.remove(&6));
    let snapshot = bed.snapshot();
    assert_eq!(snapshot.adapters.len(), 1);
    let warning = &snapshot.warnings[0];
    assert_eq!(warning.effect, WarningEffect::Unreadable);
    assert!(warning.text.contains("the PCI address (query 6)"), "{}", warning.text);
}

#[test]
fn missing_folders_are_reported_and_the_device_has_no_driver() {
    let mut bed = Bed::new(vec![intel()]);
    fs::remove_dir_all(bed.root.path().join("usr/lib/wsl")).unwrap();
    let snapshot = bed.snapshot();
    assert!(snapshot.is_unsettled());
    let texts: Vec<_> = snapshot.warnings.iter().map(|w| w.text.as_str()).collect();
    assert!(texts[0].contains("`/usr/lib/wsl/lib` does not exist"), "{texts:?}");
    assert!(texts[1].contains("`/usr/lib/wsl/drivers/iigd.inf_amd64_1`"), "{texts:?}");
}

#[test]
fn a_driver_folder_outside_the_repository_is_not_used() {
    let outside = r"\SystemRoot\System32\DriverStore\FileRepository\..\..\lib\wsl\lib";
    let ids = [0x8086, 0xA7A0, 0, 0, 4];
    let mut bed = Bed::new(vec![gpu(5, "Intel", ids, [0, 2, 0], outside)]);
    let snapshot = bed.snapshot();
    let files = &snapshot.adapters[0].driver_store.as_ref().unwrap().files;
    assert_eq!(files, &StoreFiles::Listed(BTreeSet::new()));
    let text = &snapshot.warnings[0].text;
    assert!(text.starts_with("the folder `` of the driver store"), "{text}");
}

/// The driver behaves in this way after its start: its file exists before the first adapter does.
#[test]
fn a_machine_without_a_virtual_gpu_is_not_a_broken_connection() {
    let mut bed = Bed::new(vec![]);
    bed.fake.disconnect(libc::EBADF);
    let other = "DRIVER=virtio-pci\nPCI_ID=1AF4:1041\nPCI_SUBSYS_ID=1414:008E\n";
    fs::write(bed.root.path().join(VIRTUAL_GPU).join("uevent"), other).unwrap();
    let error = bed.source.snapshot().unwrap_err().to_string();
    assert!(error.starts_with("Windows lends no GPU to this virtual machine"), "{error}");
    // Where the bus cannot be read, there may be a GPU.
    fs::remove_dir_all(bed.root.path().join("sys")).unwrap();
    let error = bed.source.snapshot().unwrap_err().to_string();
    assert!(error.starts_with("the connection of /dev/dxg"), "{error}");
}

/// The kernel logs each query that fails.
#[test]
fn a_software_adapter_is_not_asked_for_anything_else() {
    let mut bed = Bed::new(vec![software(), intel()]);
    let snapshot = bed.snapshot();
    assert_eq!(snapshot.warnings, []);
    assert!(!snapshot.is_unsettled());
    let are_hardware: Vec<bool> = snapshot.adapters.iter().map(|a| a.hardware).collect();
    assert_eq!(are_hardware, [false, true]);
    bed.source.machine.state(&bed.source.connection, None).unwrap();
    assert_eq!(bed.fake.change(|state| state.failed_queries), 0);
}

#[test]
fn a_driver_that_is_too_old_for_linux_is_a_warning() {
    let mut bed = Bed::new(vec![intel(), npu()]);
    for adapter in 0..2 {
        bed.fake.change(|s| s.adapters[adapter].answers.insert(13, vec![0x8C, 0x0A, 0, 0]));
    }
    let snapshot = bed.snapshot();
    assert_eq!(snapshot.warnings.len(), 1);
    let AdapterWarning { text, effect, .. } = &snapshot.warnings[0];
    assert_eq!(effect, &WarningEffect::Incomplete);
    assert!(text.starts_with("the driver is older than WDDM 2.9"), "{text}");
}

/// The kernel connects the process again only after every file was closed.
#[test]
fn adapters_are_unreadable_while_the_connection_is_broken() {
    let mut bed = Bed::new(vec![intel()]);
    bed.source.watch(Box::new(|| {})).unwrap();
    bed.snapshot();
    bed.fake.disconnect(libc::EBADF);
    for _ in 0..3 {
        let snapshot = bed.snapshot();
        assert_eq!(snapshot.adapters, []);
        assert!(snapshot.is_unsettled());
    }
    bed.fake.reconnect();
    assert_eq!(bed.snapshot().adapters.len(), 1);
}

#[test]
fn present_without_adapters_is_an_empty_list() {
    assert_eq!(Bed::new(vec![]).snapshot().adapters, []);
}

#[test]
fn removal_an_update_of_the_driver_and_an_error_are_changes() {
    let bed = Bed::new(vec![intel(), npu()]);
    let state = || bed.source.machine.state(&bed.source.connection, None);
    let all = state();
    assert_eq!(state(), all);
    let removed = bed.fake.change(|state| state.adapters.pop().unwrap());
    let one = state();
    fs::remove_dir(bed.driver_folder()).unwrap();
    let no_driver = state();
    bed.fake.disconnect(libc::EBADF);
    let broken = state();
    let states = [&all, &one, &no_driver, &broken];
    for (n, state) in states.iter().enumerate() {
        assert!(!states[..n].contains(state), "{state:?}");
    }
    fs::create_dir(bed.driver_folder()).unwrap();
    bed.fake.change(|state| state.adapters.push(removed));
    bed.fake.reconnect();
    assert_eq!(state(), all);
}

/// The kernel logs each query that fails.
#[test]
fn a_folder_that_is_not_reported_is_not_asked_for_again() {
    let bed = Bed::new(vec![intel()]);
    bed.fake.change(|state| state.next_error = Some((48, libc::EPERM)));
    let machine = &bed.source.machine;
    let first = machine.state(&bed.source.connection, None);
    assert_eq!(machine.state(&bed.source.connection, Some(&first)), first);
    bed.fake.change(|state| state.next_error = Some((15, libc::ENODEV)));
    assert_ne!(machine.state(&bed.source.connection, Some(&first)), first, "it still answers");
}

#[test]
fn after_a_broken_connection_the_folder_is_compared_again() {
    let bed = Bed::new(vec![intel()]);
    let state = |before| bed.source.machine.state(&bed.source.connection, before);
    let all = state(None);
    bed.fake.disconnect(libc::EBADF);
    let unanswered = state(Some(&all));
    assert!(unanswered.is_ok(), "the list is that of the kernel");
    bed.fake.reconnect();
    assert_eq!(state(Some(&unanswered)), all);
}

#[test]
fn a_change_is_reported_until_the_source_is_dropped() {
    let mut bed = Bed::new(vec![intel()]);
    let (report, changes) = mpsc::channel();
    bed.source.watch(Box::new(move || _ = report.send(()))).unwrap();
    bed.fake.change(|state| state.adapters.clear());
    changes.recv_timeout(LIMIT).unwrap();
    drop(bed);
    // The end of the thread drops the callback.
    while changes.recv_timeout(LIMIT) == Ok(()) {}
    assert_eq!(changes.recv_timeout(LIMIT), Err(mpsc::RecvTimeoutError::Disconnected));
}

#[test]
fn a_comparison_that_hangs_is_a_change_and_the_step_of_the_read_that_waits() {
    let mut bed = Bed::new(vec![intel()]);
    let (report, changes) = mpsc::channel();
    bed.source.watch(Box::new(move || _ = report.send(()))).unwrap();
    bed.fake.change(|state| state.hangs = Some(0));
    // The comparison holds the connection.
    while bed.fake.change(|state| state.hangs) == Some(0) {
        std::thread::sleep(Duration::from_millis(1));
    }
    while changes.try_recv().is_ok() {}
    changes.recv_timeout(LIMIT).unwrap();
    let (report_step, steps) = mpsc::channel();
    bed.source.report_steps(Box::new(move |step| _ = report_step.send(step)));
    let source = &mut bed.source;
    std::thread::scope(|scope| {
        scope.spawn(|| source.snapshot().unwrap());
        assert_eq!(steps.recv_timeout(LIMIT), Ok(ReadStep::Compare));
        assert!(steps.try_recv().is_err());
        bed.fake.change(|state| state.hangs = None);
        assert_eq!(steps.recv_timeout(LIMIT), Ok(ReadStep::Adapters));
    });
}

#[test]
fn a_file_without_this_driver_is_a_clear_error() {
    let open = || DxgDevice::open(Path::new("/dev/null"));
    let machine = Machine {
        open: Box::new(open),
        root: PathBuf::from("/"),
        interval: Duration::from_secs(1),
    };
    let error = DxgSource::of(machine).snapshot().unwrap_err();
    assert_eq!(error.to_string(), "cannot list the adapters of /dev/dxg");
}
