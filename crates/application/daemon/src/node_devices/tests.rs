//! The node's devices with a host that a test controls.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use command_line::Failure;
use device_plugin::{DevicePlugin, Readiness};
use host::{AdapterSource, ChangeCallback, License, LicenseState, Luid, SourceError};
use kubelet_double::{InMemory, KubeletDouble, KubeletOptions};
use tokio::sync::mpsc;

use super::reconfiguration_tests::config_of;
use super::*;
use crate::LauncherError;
use crate::launcher;
use crate::readers::kernel_comparison::KernelComparison;
use crate::readers::{HostAccess, HostKind};
use plugin_status::cordon_file;
use process::logging::test_log::Log;

/// Much longer than anything takes on a slow machine.
const LIMIT: Duration = Duration::from_mins(2);

/// A source whose next read a test sets, and which counts its reads.
#[derive(Clone, Default)]
struct FakeSource(Arc<Mutex<FakeSourceState>>);

#[derive(Default)]
struct FakeSourceState {
    next: Option<Result<HostSnapshot, String>>,
    /// A read waits until this channel is closed.
    hangs_until: Option<Receiver<()>>,
    on_change: Option<ChangeCallback>,
    reads: usize,
}

impl FakeSource {
    fn with(next: Result<HostSnapshot, &str>) -> FakeSource {
        let source = FakeSource::default();
        source.set_next_read(next);
        source
    }

    fn set_next_read(&self, next: Result<HostSnapshot, &str>) {
        self.0.lock().unwrap().next = Some(next.map_err(str::to_owned));
    }

    /// The next read does not return until the result is dropped.
    fn hang(&self) -> Sender<()> {
        let (release, released) = channel();
        self.0.lock().unwrap().hangs_until = Some(released);
        release
    }

    fn notify_change(&self) {
        self.0.lock().unwrap().on_change.as_ref().unwrap()();
    }

    fn reads(&self) -> usize {
        self.0.lock().unwrap().reads
    }

    fn access(&self, kind: HostKind) -> HostAccess {
        let source: Box<dyn AdapterSource> = Box::new(self.clone());
        HostAccess {
            kind,
            open: Box::new(|| Ok(source)),
            read_nvidia: None,
            compare_with_kernel: None,
            cordons: None,
        }
    }

    async fn start(&self) -> NodeDevices {
        start(self.access(HostKind::Inventory)).await
    }
}

impl AdapterSource for FakeSource {
    fn snapshot(&mut self) -> Result<HostSnapshot, SourceError> {
        let hangs_until = self.0.lock().unwrap().hangs_until.take();
        if let Some(released) = hangs_until {
            // The sender was dropped.
            let _ = released.recv();
        }
        let mut state = self.0.lock().unwrap();
        state.reads += 1;
        state.next.clone().unwrap().map_err(SourceError::from)
    }

    fn watch(&mut self, on_change: ChangeCallback) -> Result<(), SourceError> {
        self.0.lock().unwrap().on_change = Some(on_change);
        Ok(())
    }
}

fn sources(access: HostAccess) -> NodeSources {
    NodeSources::start(access, ConfigReload::none()).unwrap()
}

/// Starts on a host whose first read ends.
async fn start(access: HostAccess) -> NodeDevices {
    NodeDevices::start_within(LIMIT, catalog(), sources(access)).await.unwrap()
}

/// Starts on a host whose first read hangs.
async fn start_on_hung_host(access: HostAccess) -> NodeDevices {
    NodeDevices::start_within(Duration::from_millis(20), catalog(), sources(access)).await.unwrap()
}

pub(crate) fn two_gpus() -> HostSnapshot {
    let text = include_str!("../../../../../fixtures/inventories/aws-t4-two.yaml");
    config::inventory::parse("aws-t4-two.yaml", text).unwrap()
}

pub(super) fn one_gpu() -> HostSnapshot {
    let mut snapshot = two_gpus();
    snapshot.adapters.truncate(1);
    snapshot
}

pub(crate) fn catalog() -> Catalog {
    let flags = config::Flags::default();
    Catalog::new(config::load(&flags, &config::EmptyEnvironment).unwrap().policy)
}

/// The list of the first resource.
pub(super) fn list(devices: &NodeDevices) -> watch::Receiver<Arc<DeviceList>> {
    devices.served().borrow().resources[0].devices()
}

pub(super) async fn healths(list: &mut watch::Receiver<Arc<DeviceList>>) -> Vec<String> {
    tokio::time::timeout(LIMIT, list.changed()).await.unwrap().unwrap();
    let list = list.borrow_and_update().clone();
    list.devices().iter().map(|device| device.health.clone()).collect()
}

pub(super) async fn until(what: &str, condition: impl Fn() -> bool) {
    let started = std::time::Instant::now();
    while !condition() {
        assert!(started.elapsed() < LIMIT, "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A hung host must not prevent the registration.
#[tokio::test]
async fn resources_are_registered_without_devices_while_the_first_read_hangs() {
    const DISPLAY: &str = "directx.microsoft.com/display";
    let source = FakeSource::with(Ok(two_gpus()));
    let release = source.hang();
    let devices = start_on_hung_host(source.access(HostKind::Live)).await;
    let sockets = InMemory::default();
    let directory = std::path::Path::new("/kubelet");
    let kubelet =
        KubeletDouble::start(sockets.clone(), directory, KubeletOptions::default()).unwrap();
    let plugin = DevicePlugin::following(directory, devices.served()).with_transport(sockets);
    let ready = plugin.readiness();
    let plugin = plugin.run();
    let capacity = |capacity| {
        let kubelet = &kubelet;
        async move {
            let seen = kubelet.wait_for(|views| {
                views.iter().any(|v| v.name == DISPLAY && v.capacity == capacity)
            });
            tokio::time::timeout(LIMIT, seen).await.expect("registered with this capacity");
        }
    };
    let scenario = async {
        capacity(0).await;
        let state = ready.borrow().clone();
        assert!(!state.is_ready());
        let pending = "the first discovery has not completed: opening the host";
        assert_eq!(state.resources[0].pending.as_deref(), Some(pending));
        drop(release);
        capacity(2).await;
        let mut ready = ready.clone();
        let is_ready = ready.wait_for(Readiness::is_ready);
        tokio::time::timeout(LIMIT, is_ready).await.unwrap().unwrap();
    };
    tokio::select! {
        () = scenario => {}
        ended = plugin => panic!("the plugin ended: {ended:?}"),
        ended = devices.run() => panic!("the node's devices ended: {ended:?}"),
    }
}

/// The host does not change, so it is not read again.
#[tokio::test]
async fn files_of_the_launcher_that_appear_later_are_provided() {
    let mut devices = FakeSource::with(Ok(two_gpus())).start().await;
    let appeared = Arc::new(AtomicBool::new(false));
    let exist = Arc::clone(&appeared);
    let provide = move || {
        let error = || LauncherError::Missing("not there".to_owned());
        exist.load(Ordering::Relaxed).then(|| "folder".to_owned()).ok_or_else(error)
    };
    devices.launcher = NodeLauncher::new(Box::new(provide));
    devices.apply_configuration(config_of("visibility: launcher"));
    devices.serve_report();
    let mut served = devices.served();
    let running = tokio::spawn(devices.run());
    assert!(!notices(&served.borrow()).is_empty());
    appeared.store(true, Ordering::Relaxed);
    let provided = served.wait_for(|served| notices(served).is_empty());
    tokio::time::timeout(LIMIT.max(3 * launcher::INTERVAL), provided).await.unwrap().unwrap();
    running.abort();
}

#[tokio::test]
async fn a_host_that_is_read_in_time_is_published_with_its_devices_at_once() {
    let source = FakeSource::with(Ok(two_gpus()));
    let devices = source.start().await;
    let published = devices.published();
    assert_eq!(published.pending(), None);
    assert_eq!(published.set().resources[0].entries().len(), 2);
    assert_eq!(list(&devices).borrow().devices().len(), 2);
}

#[tokio::test]
async fn a_first_read_that_fails_is_repeated_and_its_reason_is_reported() {
    let log = Log::start();
    let source = FakeSource::with(Err("the graphics kernel does not respond"));
    let devices = source.start().await;
    let published = devices.published();
    let reason = "the first discovery has not completed: the graphics kernel does not respond";
    assert_eq!(published.pending().as_deref(), Some(reason));
    let text = log.text();
    assert!(text.contains("cannot read adapters; keeping the current devices"), "{text}");
    let mut list = list(&devices);
    list.borrow_and_update();
    source.set_next_read(Ok(two_gpus()));
    let running = tokio::spawn(devices.run());
    assert_eq!(healths(&mut list).await, ["Healthy", "Healthy"]);
    until("the devices are known", || published.pending().is_none()).await;
    running.abort();
}

#[tokio::test]
async fn a_host_that_cannot_be_opened_ends_the_daemon_with_the_reason() {
    let mut access = FakeSource::default().access(HostKind::Live);
    access.open = Box::new(|| Err(HostError::Unsupported("this host has no dxcore.dll".into())));
    let error = NodeDevices::start(catalog(), sources(access)).await.err().unwrap();
    let text = format!("{:?}", Failure::from(error));
    assert!(text.contains("status: 1") && text.contains("no dxcore.dll"), "{text}");
}

#[tokio::test]
async fn a_list_that_is_too_large_ends_the_daemon_even_if_it_is_found_late() {
    let mut snapshot = two_gpus();
    let long = "x".repeat(5 * 1024 * 1024);
    snapshot.adapters[0].pnp.as_mut().unwrap().id = host::PnpId::new(long);
    let source = FakeSource::with(Ok(snapshot));
    let release = source.hang();
    let devices = start_on_hung_host(source.access(HostKind::Inventory)).await;
    drop(release);
    let ended = tokio::time::timeout(LIMIT, devices.run()).await.unwrap();
    let text = format!("{:?}", Failure::from(ended));
    assert!(text.contains("status: 2") && text.contains("multitenancy"), "{text}");
}

#[tokio::test]
async fn a_burst_of_changes_causes_one_read_and_a_failed_read_changes_nothing() {
    let source = FakeSource::with(Ok(two_gpus()));
    let devices = source.start().await;
    let published = devices.published();
    let mut list = list(&devices);
    list.borrow_and_update();
    let running = tokio::spawn(devices.run());
    assert_eq!(source.reads(), 1);

    let release = source.hang();
    source.notify_change();
    until("a read hangs", || source.0.lock().unwrap().hangs_until.is_none()).await;
    (0..100).for_each(|_| source.notify_change());
    source.set_next_read(Ok(one_gpu()));
    drop(release);
    assert_eq!(healths(&mut list).await, ["Healthy", "Unhealthy"]);
    until("the burst is read", || source.reads() >= 3).await;

    source.set_next_read(Err("the driver is being replaced"));
    source.notify_change();
    until("the read fails", || source.reads() >= 4).await;
    assert!(!list.has_changed().unwrap());
    assert_eq!(published.set().resources[0].entries().len(), 2);

    // Without a notification, the reader retries by itself.
    source.set_next_read(Ok(two_gpus()));
    assert_eq!(healths(&mut list).await, ["Healthy", "Healthy"]);
    running.abort();
}

/// `DXCore` reports no event when a driver update ends or a device gets its LUID.
#[tokio::test]
async fn a_live_host_with_an_unsettled_adapter_is_read_again_without_a_notification() {
    let mut incomplete = two_gpus();
    incomplete.adapters[1].pnp = None;
    let source = FakeSource::with(Ok(incomplete));
    let devices = start(source.access(HostKind::Live)).await;
    let mut list = list(&devices);
    assert_eq!(list.borrow_and_update().devices().len(), 1);
    source.set_next_read(Ok(two_gpus()));
    let running = tokio::spawn(devices.run());
    assert_eq!(healths(&mut list).await, ["Healthy", "Healthy"]);
    running.abort();
}

/// Devices of a node whose reads a test sends itself, on the paused clock.
pub(super) fn with_reads_from_test(
    snapshot: HostSnapshot,
) -> (NodeDevices, mpsc::UnboundedSender<Result<Read, HostError>>) {
    let (send, reads) = mpsc::unbounded_channel();
    let mut devices = NodeDevices::new(catalog(), NodeSources { reads, ..NodeSources::none() });
    devices
        .apply_read(Read { cause: Cause::Start, result: Ok(snapshot), duration: Duration::ZERO })
        .unwrap();
    (devices, send)
}

pub(super) fn read(cause: Cause, snapshot: HostSnapshot) -> Read {
    Read { cause, result: Ok(snapshot), duration: Duration::ZERO }
}

#[tokio::test(start_paused = true)]
async fn a_missing_device_is_dropped_after_its_grace_time() {
    let log = Log::start();
    let (devices, send) = with_reads_from_test(two_gpus());
    let mut list = list(&devices);
    list.borrow_and_update();
    let running = tokio::spawn(devices.run());
    let started = Instant::now();
    assert!(send.send(Ok(read(Cause::Change, one_gpu()))).is_ok());
    assert_eq!(healths(&mut list).await, ["Healthy", "Unhealthy"]);
    assert_eq!(started.elapsed(), Duration::ZERO);
    tokio::time::sleep(Duration::from_secs(599)).await;
    assert!(!list.has_changed().unwrap());
    assert_eq!(healths(&mut list).await, ["Healthy"]);
    let text = log.text();
    let mut lines = text.lines().filter(|line| line.contains("device is no longer listed"));
    let line = lines.next().unwrap();
    let removed = &two_gpus().adapters[1].pnp.as_ref().unwrap().id.to_string();
    assert!(line.contains(removed) && line.contains("name=\"NVIDIA Tesla T4\""), "{text}");
    assert_eq!(lines.next(), None, "{text}");
    let grace = started.elapsed();
    assert!(grace >= Duration::from_mins(10) && grace < Duration::from_secs(601), "{grace:?}");
    drop(send);
    let ended = running.await.unwrap();
    assert!(command_line::error_chain(&ended).contains("panicked"), "{ended:?}");
}

#[tokio::test(start_paused = true)]
async fn a_device_that_returns_within_its_grace_time_is_kept() {
    let (devices, send) = with_reads_from_test(two_gpus());
    let mut list = list(&devices);
    list.borrow_and_update();
    let _running = tokio::spawn(devices.run());
    assert!(send.send(Ok(read(Cause::Change, one_gpu()))).is_ok());
    assert_eq!(healths(&mut list).await, ["Healthy", "Unhealthy"]);
    tokio::time::sleep(Duration::from_secs(599)).await;
    let mut back = two_gpus();
    back.adapters[1].luid = host::Luid(1);
    assert!(send.send(Ok(read(Cause::Change, back))).is_ok());
    assert_eq!(healths(&mut list).await, ["Healthy", "Healthy"]);
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert!(!list.has_changed().unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_change_that_only_a_safety_read_finds_is_logged() {
    let log = Log::start();
    let (mut devices, _send) = with_reads_from_test(two_gpus());
    let mut apply = |cause, snapshot| {
        devices.apply_read(Read { cause, result: Ok(snapshot), duration: Duration::ZERO }).unwrap();
        log.text().matches("that was not reported").count()
    };
    assert_eq!(apply(Cause::Safety, two_gpus()), 0);
    assert_eq!(apply(Cause::Change, one_gpu()), 0);
    assert_eq!(apply(Cause::Safety, two_gpus()), 1);
}

/// What NVML reports of each of `adapters`.
fn nvml(adapters: &[host::Adapter], license: License) -> crate::readers::NvidiaGpus {
    let ids = adapters.iter().filter_map(|a| a.pnp.as_ref()).map(|pnp| pnp.id.clone());
    let facts = NvidiaFacts {
        uuid: Some("GPU-1".to_owned()),
        license: Some(license),
        ..NvidiaFacts::default()
    };
    ids.map(|id| (id, facts.clone())).collect()
}

#[tokio::test]
async fn what_nvml_reports_arrives_later_and_changes_no_list() {
    let mut access = FakeSource::with(Ok(one_gpu())).access(HostKind::Live);
    access.read_nvidia = Some(Arc::new(|adapters| Ok(nvml(adapters, License::MISSING))));
    let devices = start(access).await;
    let published = devices.published();
    let mut sets = published.subscribe();
    let list = list(&devices);
    let uuid = |published: &PublishedDevices| {
        published.set().resources[0].entries()[0].device.nvidia.uuid.clone()
    };
    assert_eq!(uuid(&published), None);
    sets.borrow_and_update();
    let _running = tokio::spawn(devices.run());
    sets.changed().await.unwrap();
    assert_eq!(uuid(&published).as_deref(), Some("GPU-1"));
    assert!(!list.has_changed().unwrap());
}

/// The comparison opens adapters that are not advertised, and a driver may hang then.
#[tokio::test(start_paused = true)]
async fn a_graphics_kernel_that_hangs_delays_no_change() {
    let (asked, mut asks) = mpsc::unbounded_channel();
    let (_release, released) = channel::<()>();
    let released = Mutex::new(released);
    let kernel_comparison = KernelComparison::new(Some(Arc::new(move |listed| {
        asked.send(listed.to_vec()).unwrap();
        let _ = released.lock().unwrap().recv();
        Vec::new()
    })));
    let (send, reads) = mpsc::unbounded_channel();
    let mut devices = NodeDevices::new(
        catalog(),
        NodeSources { reads, kernel_comparison, ..NodeSources::none() },
    );
    devices.apply_read(read(Cause::Start, one_gpu())).unwrap();
    let mut list = list(&devices);
    list.borrow_and_update();
    let luids: Vec<Luid> = one_gpu().listed().into_iter().collect();
    let _running = tokio::spawn(devices.run());
    assert_eq!(asks.recv().await.unwrap(), luids);
    assert!(send.send(Ok(read(Cause::Change, two_gpus()))).is_ok());
    assert_eq!(healths(&mut list).await.len(), 2);
    assert!(asks.try_recv().is_err(), "at most one comparison runs");
}

/// The license of the only device in the report.
fn reported_license(devices: &mut NodeDevices) -> Option<LicenseState> {
    devices.serve_report();
    let report = PluginReport::read(&devices.served.borrow().document).unwrap();
    report.node.devices().next().unwrap().license
}

#[tokio::test(start_paused = true)]
async fn a_license_is_reported_and_its_loss_logged_and_no_list_changes() {
    let log = Log::start();
    let (mut devices, _send) = with_reads_from_test(one_gpu());
    let list = list(&devices);
    let adapters = one_gpu().adapters;
    assert_eq!(reported_license(&mut devices), None);
    let until = |hour| License::until(host::UtcTime::from_calendar([2026, 12, 1, hour, 0, 0]));
    for (license, lost) in [
        (License::MISSING, 0),
        (until(10), 0),
        (until(11), 0),
        (License::MISSING, 1),
        (License::MISSING, 1),
        (License::NOT_REQUIRED, 1),
    ] {
        devices.apply_nvidia(nvml(&adapters, license));
        assert_eq!(reported_license(&mut devices), Some(license.state));
        // The next snapshot does not contain it, and NVML has answered before.
        devices.apply_read(read(Cause::Safety, one_gpu())).unwrap();
        assert_eq!(reported_license(&mut devices), Some(license.state));
        let text = log.text();
        assert_eq!(text.matches("lost its license").count(), lost, "{text}");
        assert_eq!(text.matches("that was not reported").count(), 0, "{text}");
    }
    assert_eq!(log.text().matches("license of the driver").count(), 2, "{}", log.text());
    devices.apply_nvidia(crate::readers::NvidiaGpus::new());
    assert_eq!(reported_license(&mut devices), None);
    assert!(!list.has_changed().unwrap());
}

/// What an inventory says of NVML counts, because nothing else asks it.
#[tokio::test(start_paused = true)]
async fn the_license_in_an_inventory_is_reported() {
    let mut host = one_gpu();
    host.adapters[0].nvidia.license = Some(License::MISSING);
    let (mut devices, _send) = with_reads_from_test(host.clone());
    assert_eq!(reported_license(&mut devices), Some(LicenseState::Unlicensed));
    host.adapters[0].nvidia.license = Some(License::until(None));
    devices.apply_read(read(Cause::Change, host)).unwrap();
    assert_eq!(reported_license(&mut devices), Some(LicenseState::Licensed));
}

fn reasons(set: &DeviceSet) -> Vec<String> {
    let health = |entry: &devices::ListedDevice| match entry.health {
        devices::Health::Healthy => "healthy".to_owned(),
        devices::Health::Unhealthy(reason) => reason.to_string(),
    };
    set.resources[0].entries().iter().map(health).collect()
}

/// The start with the file is a restart of the plugin, which must not offer the device for a
/// moment.
#[tokio::test]
async fn a_device_is_out_of_service_while_the_cordon_file_names_it_also_after_a_restart() {
    const CORDONED: &str = "cordoned: taken out of service by the node's annotation \
                            directx.microsoft.com/cordoned-devices";
    let folder = tempfile::tempdir().unwrap();
    let file = cordon_file::path_in(folder.path());
    let source = FakeSource::with(Ok(two_gpus()));
    let start_with_file = || {
        let mut access = source.access(HostKind::Inventory);
        access.cordons = Some(file.clone());
        start(access)
    };
    let devices = start_with_file().await;
    let mut served = devices.served();
    let mut list = list(&devices);
    assert_eq!(reasons(&devices.set()), ["healthy", "healthy"]);
    list.borrow_and_update();
    let running = tokio::spawn(devices.run());
    cordon_file::write(&file, &host::DeviceName::list("pciroot(0)#pci(1b00)")).unwrap();
    assert_eq!(healths(&mut list).await, ["Unhealthy", "Healthy"]);
    let noted = served.wait_for(|served| notices(served).concat().ends_with(CORDONED));
    tokio::time::timeout(LIMIT, noted).await.unwrap().unwrap();
    running.abort();

    let devices = start_with_file().await;
    assert_eq!(reasons(&devices.set()), [CORDONED, "healthy"]);
    let mut list = super::tests::list(&devices);
    list.borrow_and_update();
    let running = tokio::spawn(devices.run());
    source.notify_change();
    until("the host is read again", || source.reads() > 2).await;
    assert!(cordon_file::write(&file, &[]).unwrap());
    assert_eq!(healths(&mut list).await, ["Healthy", "Healthy"]);
    running.abort();
}

/// A device that an administrator has taken out of service could be any of them.
#[tokio::test]
async fn every_device_is_unhealthy_after_a_start_until_the_cordon_file_can_be_read() {
    const UNKNOWN: &str =
        "the file with the cordoned devices cannot be read or trusted; doctor shows the reason";
    let folder = tempfile::tempdir().unwrap();
    let file = cordon_file::path_in(folder.path());
    std::fs::create_dir_all(&file).unwrap();
    let source = FakeSource::with(Ok(two_gpus()));
    let mut access = source.access(HostKind::Inventory);
    access.cordons = Some(file.clone());
    let devices = start(access).await;
    let notice = format!(
        "the cordoned devices are not known: cannot read `{}`: it is a directory, not a file; \
         hint: {}",
        file.display(),
        cordon_file::UNKNOWN_HINT
    );
    assert_eq!(reasons(&devices.set()), [UNKNOWN, UNKNOWN]);
    assert_eq!(notices(&devices.served().borrow()), [notice.as_str()]);
    let mut list = list(&devices);
    list.borrow_and_update();
    let running = tokio::spawn(devices.run());
    std::fs::remove_dir(&file).unwrap();
    assert_eq!(healths(&mut list).await, ["Healthy", "Healthy"]);
    running.abort();
}

fn notices(served: &Served) -> Vec<String> {
    PluginReport::read(&served.document).unwrap().notices
}

/// The daemon must not serve devices that are no longer updated.
#[tokio::test]
async fn a_panic_of_the_reader_ends_the_daemon() {
    let source = FakeSource::with(Ok(two_gpus()));
    let devices = source.start().await;
    source.0.lock().unwrap().next = None;
    source.notify_change();
    let ended = tokio::time::timeout(LIMIT, devices.run()).await.unwrap();
    assert!(command_line::error_chain(&ended).contains("panicked"), "{ended:?}");
}
