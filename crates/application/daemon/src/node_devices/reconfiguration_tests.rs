//! Another configuration for the same host.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use device_plugin::{DevicePlugin, PreferredRequest, Resource};
use devices::DriverModel;
use futures_util::FutureExt as _;
use host::{Adapter, Luid, PnpId};
use kubelet_double::{InMemory, KubeletDouble, KubeletOptions, PodRequest};
use tokio::sync::mpsc;

use super::*;
use crate::LauncherError;
use crate::node_devices::advertised_resource::allocate;
use command_line::configuration;
use process::logging::test_log::Log;

const DISPLAY: &str = "directx.microsoft.com/display";
const DIRECTORY: &str = "/kubelet";

pub(super) fn catalog_of(text: &str) -> Catalog {
    Catalog::new(config_of(text).policy)
}

pub(super) fn config_of(text: &str) -> config::Config {
    config_for(vec![DriverModel::Wddm], text)
}

fn config_for(driver_models: Vec<DriverModel>, text: &str) -> config::Config {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.yaml");
    std::fs::write(&file, text).unwrap();
    let flags = config::Flags { driver_models, config: Some(file), ..Default::default() };
    configuration::load(&flags).unwrap()
}

/// A host with two NVIDIA GPUs.
fn node(text: &str) -> NodeDevices {
    let host = include_str!("../../../../../fixtures/inventories/aws-t4-two.yaml");
    let snapshot = config::inventory::parse("aws-t4-two.yaml", host).unwrap();
    NodeDevices::fixed(catalog_of(text), snapshot).unwrap()
}

fn resources(devices: &NodeDevices) -> Vec<Arc<dyn Resource>> {
    devices.served().borrow().resources.clone()
}

/// The name of each resource and the length of its list.
fn lists(devices: &NodeDevices) -> Vec<(String, usize)> {
    let entry = |r: &Arc<dyn Resource>| (r.name().to_owned(), r.devices().borrow().devices().len());
    resources(devices).iter().map(entry).collect()
}

#[test]
fn resources_appear_disappear_and_change_their_replicas() {
    let mut devices = node("");
    let display = resources(&devices)[0].clone();
    let mut list = display.devices();
    list.borrow_and_update();
    devices.reconfigure(catalog_of("multitenancy: 3")).unwrap();
    assert!(list.has_changed().unwrap());
    assert_eq!(lists(&devices), [(DISPLAY.to_owned(), 6)]);

    let rules = "resources: [{name: a/t4, match: {vendor: nvidia}, multitenancy: 2}]";
    devices.reconfigure(catalog_of(rules)).unwrap();
    assert_eq!(lists(&devices), [(DISPLAY.to_owned(), 0), ("a/t4".to_owned(), 4)]);
    let rule = resources(&devices)[1].clone();
    let ids = [r"PCI\VEN_10DE&DEV_1EB8&SUBSYS_12A210DE&REV_A1\4&1A2B3C4D&0&00000008\0".to_owned()];

    devices.reconfigure(catalog_of("multitenancy: 2")).unwrap();
    assert_eq!(lists(&devices), [(DISPLAY.to_owned(), 4)]);
    let id = devices.set().resources[0].replicas().next().unwrap().id.to_string();
    allocate(&*display, &[id]).unwrap();
    let counted = devices.published.metrics.resources();
    assert!(counted.keys().eq([DISPLAY]), "{counted:?}");
    assert_eq!((counted[DISPLAY].allocations, counted[DISPLAY].list_updates), (1, 4));
    assert!(Arc::ptr_eq(&display, &resources(&devices)[0]), "its stream would end");
    // A call may still be on its way when the resource is removed.
    let refusal = allocate(&*rule, &ids).unwrap_err();
    assert_eq!(refusal.code(), device_plugin::Code::NotFound);
    assert_eq!(refusal.message(), "resource a/t4 is no longer configured");
    let preferred = |must: &[String]| {
        let request = PreferredRequest::new(&ids, must, 1);
        rule.preferred_allocation(request).now_or_never().expect("an answer at once")
    };
    assert_eq!(preferred(&[]).unwrap(), Vec::<String>::new(), "only advice");
    assert_eq!(preferred(&ids).unwrap_err().message(), refusal.message());
}

#[test]
fn devices_that_move_to_another_resource_are_logged_once() {
    let log = Log::start();
    let mut devices = node("");
    devices.reconfigure(catalog_of("resources: [{name: a/t4, match: {vendor: nvidia}}]")).unwrap();
    devices.serve_report();
    devices.serve_report();
    let text = log.text();
    let line = "a device belongs to another resource now";
    let moves = text.lines().filter(|text| text.contains(line));
    let names = "from=directx.microsoft.com/display to=a/t4";
    assert_eq!(moves.filter(|text| text.contains(names)).count(), 2, "{text}");
    assert_eq!(text.matches(line).count(), 2, "{text}");
}

/// The mounts of a container with the first device.
fn mounts(devices: &NodeDevices) -> Vec<String> {
    let set = devices.published().set();
    let id = set.resources[0].replicas().next().unwrap().id.to_string();
    let answer = allocate(&*resources(devices)[0], &[id]).unwrap();
    answer.mounts.into_iter().map(|mount| mount.container_path).collect()
}

fn notices(devices: &NodeDevices) -> Vec<String> {
    PluginReport::read(&devices.served().borrow().document).unwrap().notices
}

/// Devices are allocated in any case, and the status says why the files are missing.
#[tokio::test]
async fn the_files_of_the_launcher_are_provided_before_a_container_can_get_them() {
    let launcher = r"C:\Windows\System32\directx-visible.exe".to_owned();
    let mut devices = node("");
    let calls = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&calls);
    let provide = move || {
        count.fetch_add(1, Ordering::Relaxed);
        Err(LauncherError::Missing("no space".to_owned()))
    };
    devices.launcher = NodeLauncher::new(Box::new(provide));
    assert!(!mounts(&devices).contains(&launcher));
    devices.apply_configuration(config_of("visibility: launcher"));
    devices.serve_report();
    assert_ne!(calls.load(Ordering::Relaxed), 0);
    let notices_now = notices(&devices);
    let [notice] = notices_now.as_slice() else { panic!("{notices_now:?}") };
    let problem = "directx-visible is not mounted: no space; hint: set visibility.enabled";
    assert!(notice.starts_with(problem), "{notice}");
    assert!(!mounts(&devices).contains(&launcher));
    devices.apply_configuration(config_of("visibility: off"));
    devices.serve_report();
    assert!(notices(&devices).is_empty() && !mounts(&devices).contains(&launcher));
}

/// The files exist, but another account may have written them.
#[tokio::test]
async fn containers_do_not_get_the_launcher_while_its_folder_has_a_problem() {
    let launcher = r"C:\Windows\System32\directx-visible.exe".to_owned();
    let files = tempfile::tempdir().unwrap();
    let folder = files.path().join("content").display().to_string();
    if cfg!(windows) {
        std::fs::create_dir(&folder).unwrap();
    }
    for name in devices::LAUNCHER_FILES {
        std::fs::write(format!("{folder}\\{name}"), "").unwrap();
    }
    let mut devices = node("visibility: launcher");
    devices.snapshot.host.is_this_machine = true;
    let has_problem = Arc::new(AtomicBool::new(false));
    let problem = Arc::clone(&has_problem);
    let provide = move || {
        if problem.load(Ordering::Relaxed) {
            return Err(LauncherError::Missing("others may change it".to_owned()));
        }
        Ok(folder.clone())
    };
    devices.launcher = NodeLauncher::new(Box::new(provide));
    for is_damaged in [false, true, false] {
        has_problem.store(is_damaged, Ordering::Relaxed);
        devices.update_launcher();
        assert_eq!(mounts(&devices).contains(&launcher), !is_damaged);
    }
    // A read of the host looks at the folder again.
    has_problem.store(true, Ordering::Relaxed);
    let result = Ok(devices.snapshot.clone());
    let read = Read { cause: Cause::Safety, result, duration: Duration::ZERO };
    devices.apply_read(read).unwrap();
    assert!(!mounts(&devices).contains(&launcher));
}

/// A container that is created without the files could never start: its command needs them, and the
/// kubelet gives it the first answer again.
#[tokio::test(start_paused = true)]
async fn required_files_that_come_late_or_disappear_make_the_devices_unhealthy() {
    let launcher = r"C:\Windows\System32\directx-visible.exe".to_owned();
    let files = tempfile::tempdir().unwrap();
    let folder = files.path().join("content").display().to_string();
    if cfg!(windows) {
        std::fs::create_dir(&folder).unwrap();
    }
    let program = format!("{folder}\\directx-visible.exe");
    let exist = Arc::new(AtomicBool::new(false));
    let appeared = Arc::clone(&exist);
    let provide = move || {
        if !appeared.load(Ordering::Relaxed) {
            return Err(LauncherError::Missing("not there".to_owned()));
        }
        for name in devices::LAUNCHER_FILES {
            std::fs::write(format!("{folder}\\{name}"), "").unwrap();
        }
        Ok(folder.clone())
    };
    let (_send, reads) = mpsc::unbounded_channel();
    let sources = NodeSources { reads, ..NodeSources::none() };
    let mut devices = NodeDevices::new(catalog_of(""), sources);
    let result = Ok(node("").snapshot);
    devices.apply_read(Read { cause: Cause::Start, result, duration: Duration::ZERO }).unwrap();
    devices.launcher = NodeLauncher::new(Box::new(provide));
    devices.apply_configuration(config_of("visibility: required"));
    let id = devices.set().resources[0].replicas().next().unwrap().id.to_string();
    let refusal = |devices: &NodeDevices| {
        let refusal = allocate(&*resources(devices)[0], std::slice::from_ref(&id)).unwrap_err();
        refusal.message().to_owned()
    };
    assert_eq!(reasons(&devices), ["Unhealthy(NoLauncher)"; 2]);
    let message = refusal(&devices);
    assert!(message.contains("unhealthy device: waits for directx-visible"), "{message}");

    exist.store(true, Ordering::Relaxed);
    devices.follow_next().await.unwrap();
    assert_eq!(reasons(&devices), ["Healthy"; 2]);
    assert!(mounts(&devices).contains(&launcher));

    // Before the files are looked for again, only the allocation notices.
    std::fs::remove_file(&program).unwrap();
    let message = refusal(&devices);
    assert!(message.contains("directx-visible.exe does not exist"), "{message}");
    let before = tokio::time::Instant::now();
    devices.follow_next().await.unwrap();
    assert!(before.elapsed() <= crate::launcher::INTERVAL, "{:?}", before.elapsed());
    assert_eq!(reasons(&devices), ["Unhealthy(NoLauncher)"; 2]);
    let message = refusal(&devices);
    assert!(message.contains("waits for directx-visible"), "{message}");
    devices.serve_report();
    assert!(
        notices(&devices)[0].contains("its files were removed from"),
        "{:?}",
        notices(&devices)
    );

    devices.follow_next().await.unwrap();
    assert_eq!(reasons(&devices), ["Healthy"; 2]);
    assert!(mounts(&devices).contains(&launcher));
}

#[test]
fn the_resource_of_a_rule_with_another_number_stays_the_same() {
    let rule = |vendor| format!("{{name: a/{vendor}, match: {{vendor: {vendor}}}}}");
    let amd = rule("amd");
    let nvidia = rule("nvidia");
    let mut devices = node(&format!("resources: [{nvidia}]"));
    let before = resources(&devices)[1].clone();
    devices.reconfigure(catalog_of(&format!("resources: [{amd}, {nvidia}]"))).unwrap();
    assert!(Arc::ptr_eq(&before, &resources(&devices)[2]));
    assert_eq!(lists(&devices)[2], ("a/nvidia".to_owned(), 2));
}

/// `status` finds a daemon by the sockets of its driver models.
#[test]
fn a_name_that_moves_from_a_rule_to_a_driver_model_is_another_resource() {
    let mut devices = node("resources: [{name: a/b, match: {vendor: amd}}]");
    assert_eq!(resources(&devices)[1].socket_prefix(), "directx-rule0");
    devices.reconfigure(catalog_of("resourceName: a/b")).unwrap();
    assert_eq!(lists(&devices), [("a/b".to_owned(), 2)]);
    assert_eq!(resources(&devices)[0].socket_prefix(), "wddm");
}

/// It needs other locks.
#[test]
fn a_rule_for_devices_of_other_driver_models_is_another_resource() {
    let both = |condition: &str| {
        let rule = format!("resources: [{{name: a/b, match: {{{condition}}}}}]");
        Catalog::new(config_for(vec![DriverModel::Wddm, DriverModel::Mcdm], &rule).policy)
    };
    let mut devices = node("");
    let mut rule_for = |condition: &str| {
        devices.reconfigure(both(condition)).unwrap();
        resources(&devices)[2].clone()
    };
    let wddm = rule_for("driverModel: wddm");
    assert_eq!(wddm.locks(), ["directx-wddm"]);
    let same = rule_for("driverModel: wddm, vendor: amd");
    assert!(Arc::ptr_eq(&wddm, &same));
    let any = rule_for("vendor: amd");
    assert!(!Arc::ptr_eq(&wddm, &any));
    assert_eq!(any.locks(), ["directx-wddm", "directx-mcdm"]);
}

/// So many GPUs that a list with all replicas is too large.
fn many_gpus() -> HostSnapshot {
    let host = include_str!("../../../../../fixtures/inventories/aws-t4-two.yaml");
    let mut snapshot = config::inventory::parse("aws-t4-two.yaml", host).unwrap();
    let gpu = snapshot.adapters.remove(0);
    snapshot.adapters = (0..64)
        .map(|n| {
            let mut gpu = Adapter { luid: Luid(n), ..gpu.clone() };
            let pnp = gpu.pnp.as_mut().unwrap();
            pnp.id = PnpId::new(format!(r"{}\{n}", pnp.id));
            pnp.location_paths = vec![host::LocationPath::new(format!("PCIROOT({n})"))];
            gpu
        })
        .collect();
    snapshot
}

/// How many adapters fit depends on the lengths of their IDs.
#[test]
fn as_many_adapters_as_a_list_can_hold_are_advertised_and_one_more_is_an_error() {
    let with = |adapters: usize| {
        let mut host = many_gpus();
        host.adapters.truncate(adapters);
        NodeDevices::fixed(catalog_of("multitenancy: 1024"), host)
    };
    let counts: Vec<usize> = (0..=64).collect();
    let too_many = counts.partition_point(|adapters| with(*adapters).is_ok());
    let most = too_many - 1;
    assert!(most > 16 && too_many < 64, "{most}");
    assert_eq!(lists(&with(most).unwrap()), [(DISPLAY.to_owned(), most * 1024)]);
    let error = with(too_many).err().unwrap();
    let text = command_line::error_chain(&error);
    assert!(text.contains("kubelet accepts at most 4194304 bytes"), "{text}");
    assert!(error.hint().unwrap().contains("lower `multitenancy`"), "{text}");
}

/// Other resources and removed devices must not wait for it.
#[tokio::test]
async fn a_list_that_becomes_too_large_stays_and_the_set_is_published() {
    let all = many_gpus();
    let mut few = many_gpus();
    few.adapters.truncate(8);
    let mut devices = NodeDevices::fixed(catalog_of("multitenancy: 1024"), few).unwrap();
    devices.snapshot = all;
    devices.advance();
    assert_eq!(lists(&devices), [(DISPLAY.to_owned(), 8 * 1024)]);
    assert_eq!(devices.published().set().resources[0].entries().len(), 64);
}

#[test]
fn a_configuration_with_a_list_that_is_too_large_changes_nothing() {
    let mut devices = NodeDevices::fixed(catalog_of(""), many_gpus()).unwrap();
    let error = devices.reconfigure(catalog_of("multitenancy: 1024")).unwrap_err();
    let text = command_line::error_chain(&error);
    assert!(text.contains(DISPLAY), "{text}");
    assert!(text.contains("kubelet accepts at most 4194304 bytes"), "{text}");
    let failure = format!("{:?}", command_line::Failure::from(error));
    assert!(failure.contains("lower `multitenancy`"), "{failure}");
    assert!(failure.contains("status: 2"), "{failure}");
    assert_eq!(lists(&devices), [(DISPLAY.to_owned(), 64)]);
    assert_eq!(devices.published().set().resources[0].spec.sharing.replicas.get(), 1);
}

#[tokio::test]
async fn devices_that_are_not_known_yet_get_the_newest_configuration() {
    let (_send, reads) = mpsc::unbounded_channel();
    let mut devices =
        NodeDevices::new(catalog_of(""), NodeSources { reads, ..NodeSources::none() });
    devices.reconfigure(catalog_of("multitenancy: 3")).unwrap();
    assert_eq!(lists(&devices), [(DISPLAY.to_owned(), 0)]);
    assert!(devices.published().pending().is_some());
    let host = include_str!("../../../../../fixtures/inventories/aws-t4-two.yaml");
    let snapshot = config::inventory::parse("aws-t4-two.yaml", host).unwrap();
    let duration = Duration::ZERO;
    devices.apply_read(Read { cause: Cause::Start, duration, result: Ok(snapshot) }).unwrap();
    assert_eq!(lists(&devices), [(DISPLAY.to_owned(), 6)]);
}

/// The kubelet sees each change on the stream that it has, and a running pod keeps its device.
#[tokio::test(start_paused = true)]
async fn a_change_reaches_the_kubelet_on_the_open_stream() {
    let log = Log::start();
    let mut devices = node("multitenancy: 2");
    let sockets = InMemory::default();
    let kubelet =
        KubeletDouble::start(sockets.clone(), DIRECTORY, KubeletOptions::default()).unwrap();
    let plugin = DevicePlugin::following(DIRECTORY, devices.served()).with_transport(sockets).run();
    let allocatable = |name: &'static str, count| {
        let kubelet = &kubelet;
        async move {
            let seen = |views: &[kubelet_double::ResourceView]| {
                views.iter().any(|v| v.name == name && v.allocatable == count)
            };
            tokio::time::timeout(Duration::from_secs(5), kubelet.wait_for(seen)).await.unwrap();
        }
    };
    let scenario = async {
        allocatable(DISPLAY, 4).await;
        let running = kubelet.admit(PodRequest::single("running", DISPLAY, 1)).await;
        assert!(running.is_ok(), "{running:?}");
        let rules = "multitenancy: 3\nresources: [{name: a/b, match: {vendor: amd}}]";
        devices.reconfigure(catalog_of(rules)).unwrap();
        allocatable(DISPLAY, 6).await;
        allocatable("a/b", 0).await;
        devices.reconfigure(catalog_of("multitenancy: 3")).unwrap();
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!((kubelet.registrations(DISPLAY), kubelet.registrations("a/b")), (1, 1));
        let rest = kubelet.admit(PodRequest::single("rest", DISPLAY, 5)).await;
        assert!(rest.is_ok(), "{rest:?}");
        let next = kubelet.admit(PodRequest::single("next", DISPLAY, 1)).await;
        assert!(next.is_err(), "the running pod has lost its device");
    };
    tokio::select! {
        () = scenario => {}
        ended = plugin => panic!("the plugin ended: {ended:?}"),
    }
    let text = log.text();
    assert!(text.contains("replicas_per_device=3"), "{text}");
}

/// The health of each device, and the reason.
fn reasons(devices: &NodeDevices) -> Vec<String> {
    let set = devices.set();
    let entries = set.resources[0].entries().iter();
    entries.map(|entry| format!("{:?}", entry.health)).collect()
}

#[test]
fn a_cordoned_device_that_does_not_exist_is_logged_once() {
    let log = Log::start();
    let mut devices = node("cordonedDevices: [PCIROOT(7)]");
    devices.advance();
    let text = log.text();
    assert_eq!(text.matches("a cordoned device does not exist").count(), 1, "{text}");
    assert!(text.contains("PCIROOT(7)"), "{text}");
}
