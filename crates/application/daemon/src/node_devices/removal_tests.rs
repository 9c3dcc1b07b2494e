//! Devices that disappear.

use device_plugin::DevicePlugin;
use host::{Adapter, LocationPath, Luid, PnpId};
use kubelet_double::{InMemory, KubeletDouble, KubeletOptions, PodRequest};
use report::labels;

use super::reconfiguration_tests::catalog_of;
use super::tests::{one_gpu, read, two_gpus, with_reads_from_test};
use super::*;

const DISPLAY: &str = "directx.microsoft.com/display";
const DIRECTORY: &str = "/kubelet";

/// The capacity and the allocatable devices of a kubelet.
fn counts(kubelet: &KubeletDouble<InMemory>) -> (usize, usize) {
    let resources = kubelet.resources();
    let display = resources.iter().find(|resource| resource.name == DISPLAY).unwrap();
    (display.capacity, display.allocatable)
}

/// Waits on the paused clock, and a little longer: the kubelet gets a list some milliseconds later.
async fn sleep(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds) + Duration::from_millis(20)).await;
}

/// The kubelet keeps the device ID for the pod until the pod ends.
#[tokio::test(start_paused = true)]
async fn a_removed_device_is_dropped_after_ten_minutes_although_a_pod_holds_it() {
    let (devices, send) = with_reads_from_test(two_gpus());
    let send = |snapshot| assert!(send.send(Ok(read(Cause::Change, snapshot))).is_ok());
    let sockets = InMemory::default();
    let mut kubelet =
        KubeletDouble::start(sockets.clone(), DIRECTORY, KubeletOptions::default()).unwrap();
    let plugin = DevicePlugin::following(DIRECTORY, devices.served()).with_transport(sockets).run();
    let scenario = async {
        sleep(1).await;
        for pod in ["first", "second"] {
            assert!(kubelet.admit(PodRequest::single(pod, DISPLAY, 1)).await.is_ok());
        }
        send(one_gpu());
        sleep(0).await;
        assert_eq!(counts(&kubelet), (2, 1));
        // Within the grace period, it returns under the same ID.
        sleep(598).await;
        assert_eq!(counts(&kubelet), (2, 1));
        send(two_gpus());
        sleep(0).await;
        assert_eq!(counts(&kubelet), (2, 2));
        let next = kubelet.admit(PodRequest::single("next", DISPLAY, 1)).await;
        assert!(next.is_err(), "a running pod has lost its device");

        send(one_gpu());
        sleep(599).await;
        assert_eq!(counts(&kubelet), (2, 1));
        sleep(1).await;
        assert_eq!(counts(&kubelet), (1, 1));
        send(two_gpus());
        sleep(0).await;
        assert_eq!(counts(&kubelet), (2, 2));
        let next = kubelet.admit(PodRequest::single("next", DISPLAY, 1)).await;
        assert!(next.is_err(), "a running pod has lost its device");
        kubelet.terminate_pod("first");
        kubelet.terminate_pod("second");
        assert!(kubelet.admit(PodRequest::single("both", DISPLAY, 2)).await.is_ok());
    };
    tokio::select! {
        () = scenario => {}
        ended = plugin => panic!("the plugin ended: {ended:?}"),
        ended = devices.run() => panic!("the devices ended: {ended:?}"),
    }
}

/// Nothing but the time changes meanwhile.
#[tokio::test(start_paused = true)]
async fn the_labels_that_follow_from_the_report_leave_a_device_out_a_minute_after_it_was_removed() {
    let (devices, send) = with_reads_from_test(two_gpus());
    let served = devices.served();
    let state = || {
        let report = PluginReport::read(&served.borrow().document).unwrap();
        let count = labels(&report.node, false)["directx.microsoft.com/count"].clone();
        (count, report.node.devices().count())
    };
    let running = tokio::spawn(devices.run());
    assert!(send.send(Ok(read(Cause::Change, one_gpu()))).is_ok());
    sleep(59).await;
    assert_eq!(state(), ("2".to_owned(), 2));
    sleep(1).await;
    assert_eq!(state(), ("1".to_owned(), 2));
    sleep(540).await;
    assert_eq!(state(), ("1".to_owned(), 1));
    running.abort();
}

/// As many GPUs with 1,024 replicas as fit into a list, from number `first` on.
fn gpus(first: i64) -> HostSnapshot {
    let mut snapshot = two_gpus();
    let gpu = snapshot.adapters.remove(0);
    let gpus = (first..first + 40).map(|n| {
        let mut gpu = Adapter { luid: Luid(n), ..gpu.clone() };
        let pnp = gpu.pnp.as_mut().unwrap();
        pnp.id = PnpId::new(format!(r"{}\{n}", pnp.id));
        pnp.location_paths = vec![LocationPath::new(format!("PCIROOT({n})"))];
        gpu
    });
    snapshot.adapters = gpus.collect();
    snapshot
}

#[tokio::test]
async fn removed_devices_give_way_to_a_list_that_the_kubelet_would_refuse() {
    let catalog = || catalog_of("multitenancy: 1024");
    let mut devices = NodeDevices::fixed(catalog(), gpus(0)).unwrap();
    let listed = |devices: &NodeDevices| {
        let list = devices.served().borrow().resources[0].devices();
        let list = list.borrow();
        let healthy = list.devices().iter().filter(|device| device.health == "Healthy").count();
        (list.devices().len() / 1024, healthy / 1024)
    };
    assert_eq!(listed(&devices), (40, 40));
    let one_less = |mut snapshot: HostSnapshot| {
        snapshot.adapters.pop();
        snapshot
    };
    devices.apply_read(read(Cause::Change, one_less(gpus(0)))).unwrap();
    assert_eq!(listed(&devices), (40, 39), "there is room for a removed device");
    devices.apply_read(read(Cause::Change, gpus(100))).unwrap();
    assert_eq!(listed(&devices), (40, 40));
    assert_eq!(devices.set().resources[0].entries().len(), 40, "the set is what is listed");

    // Another configuration has less room for them.
    let mut devices = NodeDevices::fixed(catalog_of(""), gpus(0)).unwrap();
    devices.apply_read(read(Cause::Change, gpus(100))).unwrap();
    assert_eq!(devices.set().resources[0].entries().len(), 80);
    devices.reconfigure(catalog()).unwrap();
    assert_eq!(listed(&devices), (40, 40));
}
