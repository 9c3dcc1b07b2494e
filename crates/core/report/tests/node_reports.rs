//! Labels, conditions and Events of recorded hosts.

#![allow(clippy::unwrap_used, reason = "a test that cannot read its host should panic")]

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use config::{EmptyEnvironment, Flags};
use devices::{Catalog, DeviceMatch, DeviceSet, DriverModel, Moment, Policy, ResourceRule};
use host::{
    Attribute, Cordon, CordonSource, Cordons, DeviceKind, DeviceName, HardwareId, HostSnapshot,
    LicenseState,
};
use proptest::prelude::*;
use proptest::sample::Index;
use report::{
    ConditionStatus, EventReason, FEATURE_DISCOVERY_LABELS, LABELS, Label, Labels, Message,
    NodeReport, Progress, UnhealthyKind, device_events, devices_healthy, devices_ready, labels,
};

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fixtures/inventories")
}

fn recorded(name: &str) -> HostSnapshot {
    config::inventory::read(&folder().join(name)).unwrap()
}

/// The policy without configuration, with this many replicas for each device.
fn policy(replicas: u32) -> Policy {
    let mut policy = config::load(&Flags::default(), &EmptyEnvironment).unwrap().policy;
    for model in &mut policy.models {
        model.sharing.replicas = replicas.try_into().unwrap();
    }
    policy
}

fn shared(snapshot: &HostSnapshot, replicas: u32) -> NodeReport {
    let offer = Catalog::new(policy(replicas)).offer(snapshot);
    NodeReport::of(&DeviceSet::next(None, offer, Moment::default()))
}

fn report(snapshot: &HostSnapshot) -> NodeReport {
    shared(snapshot, 1)
}

fn all_labels(snapshot: &HostSnapshot) -> Labels {
    labels(&report(snapshot), true)
}

#[test]
fn the_page_has_every_label_with_its_value_on_a_recorded_host() {
    let values = labels(&shared(&recorded("made-up-vgpu.yaml"), 4), true);
    let mut rows = String::from("| label | example | meaning |\n|---|---|---|\n");
    for Label { name, meaning, .. } in LABELS.iter().chain(FEATURE_DISCOVERY_LABELS) {
        let of_model = name.replace("<product>", &values["directx.microsoft.com/product"]);
        writeln!(rows, "| `{name}` | `{}` | {meaning} |", values[&of_model]).unwrap();
    }
    let begin = "<!-- generated from crates/core/report/src/labels.rs and \
                 feature_discovery_labels.rs by cargo xtask update -->\n";
    doc_pages::assert_part("labels.md", begin, &rows);
}

#[test]
fn the_model_with_most_devices_stands_for_the_node_then_the_one_with_most_memory() {
    let mut snapshot = recorded("made-up-two-vendors.yaml");
    let product = |snapshot: &HostSnapshot| {
        labels(&report(snapshot), false)["directx.microsoft.com/product"].clone()
    };
    assert_eq!(product(&snapshot), "NVIDIA-A10-24Q", "one each, this has more memory");
    snapshot.adapters.reverse();
    assert_eq!(product(&snapshot), "NVIDIA-A10-24Q", "the order of the host is no reason");
    let amd = snapshot.adapters.iter().find(|a| a.hardware_id.vendor == 0x1002).unwrap();
    let mut second = amd.clone();
    second.luid.0 += 1000;
    let pnp = second.pnp.as_mut().unwrap();
    pnp.id = host::PnpId::new(format!("{}X", pnp.id));
    pnp.location_paths = vec![host::LocationPath::new("PCIROOT(9)")];
    snapshot.adapters.push(second);
    assert_eq!(product(&snapshot), "AMD-Radeon-Pro-V520-MxGPU", "two of one");
    let counts = labels(&report(&snapshot), false);
    assert_eq!(counts["directx.microsoft.com/count"], "3");
    assert_eq!(counts["directx.microsoft.com/count.AMD-Radeon-Pro-V520-MxGPU"], "2");
}

/// Devices with one name may differ, and the order of several daemons is that of their sockets.
#[test]
fn a_model_has_the_least_of_its_devices() {
    let mut report = shared(&recorded("made-up-vgpu.yaml"), 4);
    let mut second = report.resources[0].clone();
    report.resources[0].devices.truncate(1);
    second.name = "example.com/gpu.shared".parse().unwrap();
    second.replicas = 2.try_into().unwrap();
    second.devices.remove(0);
    let device = &mut second.devices[0];
    device.driver_model = DriverModel::Mcdm;
    device.kind = Some(DeviceKind::Accelerator);
    device.dedicated_memory_mib = Some(16384);
    device.compute_capability = "7.5".parse().ok();
    // The date is that of the driver with the oldest version.
    device.driver_version = "31.0.15.2849".parse().ok();
    device.driver_date = "2026-09-01".parse().ok();
    report.resources.push(second);
    let expected = [
        ("directx.microsoft.com/count", "2"),
        ("directx.microsoft.com/count.NVIDIA-A10-24Q", "2"),
        ("directx.microsoft.com/kind", "gpu"),
        ("directx.microsoft.com/memory", "16384"),
        ("directx.microsoft.com/driver-version", "31.0.15.2849"),
        ("directx.microsoft.com/driver-date", "2026-09-01"),
        ("directx.microsoft.com/driver-model", "wddm"),
        ("directx.microsoft.com/replicas", "2"),
        ("nvidia.com/gpu.product", "NVIDIA-A10-24Q"),
        ("nvidia.com/gpu.compute.major", "7"),
    ];
    for order in ["", "reversed"] {
        let labels = labels(&report, true);
        for (name, value) in expected {
            assert_eq!(labels[name], value, "{name} {order}");
        }
        report.resources.reverse();
    }
}

#[test]
fn the_kind_is_that_of_the_first_model() {
    let kind = |name| labels(&report(&recorded(name)), false)["directx.microsoft.com/kind"].clone();
    // Only the memory of the first kind is known.
    assert_eq!(kind("made-up-npu-beside-gpu.yaml"), "gpu");
    assert_eq!(kind("generated/npu-beside-gpu.yaml"), "accelerator");
    assert_eq!(kind("made-up-h100-mcdm.yaml"), "gpu");
}

/// A pod that selects nodes by the kind must not wait for a GPU where there is none.
#[test]
fn a_basic_adapter_has_no_kind() {
    let mut snapshot = recorded("aws-t4-two.yaml");
    snapshot.adapters.truncate(1);
    snapshot.adapters[0].hardware_id =
        HardwareId { vendor: 0x1414, device: 0x008C, ..HardwareId::default() };
    let mut policy = policy(1);
    let pci = Some("1414:008c".parse().unwrap());
    let rule = ResourceRule {
        name: "example.com/basic".parse().unwrap(),
        matches: DeviceMatch { pci, ..DeviceMatch::default() },
        replicas: None,
        allocation: None,
        visibility: None,
    };
    policy.models[0].rules = [rule].into();
    let offer = Catalog::new(policy).offer(&snapshot);
    let report = NodeReport::of(&DeviceSet::next(None, offer, Moment::default()));
    let labels = labels(&report, false);
    assert_eq!(labels["directx.microsoft.com/count"], "1");
    assert_eq!(labels.get("directx.microsoft.com/kind"), None);
}

#[test]
fn shared_devices_are_labelled_as_gpu_feature_discovery_does() {
    let snapshot = recorded("made-up-two-vendors.yaml");
    let labels = labels(&shared(&snapshot, 2), true);
    for (name, value) in [
        ("directx.microsoft.com/product", "NVIDIA-A10-24Q"),
        ("directx.microsoft.com/replicas", "2"),
        ("directx.microsoft.com/sharing-strategy", "time-slicing"),
        ("nvidia.com/gpu.product", "NVIDIA-A10-24Q-SHARED"),
        ("nvidia.com/gpu.replicas", "2"),
        ("nvidia.com/gpu.sharing-strategy", "time-slicing"),
        ("nvidia.com/gpu.count", "1"),
        ("nvidia.com/cuda.driver-version.full", "528.49"),
    ] {
        assert_eq!(labels[name], value, "{name}");
    }
}

#[test]
fn the_product_of_nvidia_is_that_of_linux_nodes() {
    for (windows, linux) in [
        ("NVIDIA Tesla T4", "Tesla-T4"),
        ("NVIDIA Quadro RTX 6000", "Quadro-RTX-6000"),
        ("NVIDIA GRID V100DX-16Q", "GRID-V100DX-16Q"),
        ("NVIDIA GeForce RTX 4090", "NVIDIA-GeForce-RTX-4090"),
        ("Tesla T4", "Tesla-T4"),
    ] {
        let mut snapshot = recorded("aws-t4-two.yaml");
        for adapter in &mut snapshot.adapters {
            adapter.pnp.as_mut().unwrap().description = windows.to_owned();
        }
        let labels = all_labels(&snapshot);
        assert_eq!(labels["nvidia.com/gpu.product"], linux);
        let unchanged = windows.replace(' ', "-");
        assert_eq!(labels["directx.microsoft.com/product"], unchanged);
    }
}

/// The name of a label and its value have at most 63 characters each.
#[test]
fn a_long_name_is_cut_off_and_ids_replace_a_name_without_letters() {
    let mut snapshot = recorded("aws-t4-two.yaml");
    let descriptions = ["x".repeat(70), "\u{30B0}".to_owned()];
    for (adapter, description) in snapshot.adapters.iter_mut().zip(descriptions) {
        adapter.pnp.as_mut().unwrap().description = description;
    }
    let mut labels = |count| {
        snapshot.adapters.truncate(count);
        labels(&shared(&snapshot, 2), true)
    };
    let both = labels(2);
    for product in [&"x".repeat(57), "device-10de-1eb8"] {
        assert_eq!(both[&format!("directx.microsoft.com/count.{product}")], "1");
    }
    assert_eq!(labels(1)["nvidia.com/gpu.product"], format!("{}-SHARED", "x".repeat(56)));
}

#[test]
fn a_node_without_devices_has_a_count_and_no_model() {
    let labels = all_labels(&recorded("generated/no-adapters.yaml"));
    assert_eq!(labels["directx.microsoft.com/count"], "0");
    let model =
        ["product", "vendor", "kind", "memory", "driver-model", "replicas", "sharing-strategy"];
    for name in model {
        assert!(!labels.contains_key(&format!("directx.microsoft.com/{name}")), "{name}");
    }
    assert!(!labels.keys().any(|name| name.starts_with("nvidia.com/")), "{labels:?}");
}

#[test]
fn the_condition_names_unhealthy_devices() {
    let mut snapshot = recorded("aws-t4-two.yaml");
    let healthy = devices_healthy(&report(&snapshot));
    assert_eq!((healthy.status, healthy.reason), (ConditionStatus::True, "AllHealthy"));
    let device = snapshot.adapters[0].pnp.as_mut().unwrap();
    device.problem_code = 43;
    let id = device.id.to_string();
    let unhealthy = devices_healthy(&report(&snapshot));
    assert_eq!((unhealthy.status, unhealthy.reason), (ConditionStatus::False, "UnhealthyDevices"));
    let expected = format!(
        "1 of 2 devices are unhealthy: {id} (NVIDIA Tesla T4): Windows reports problem code 43"
    );
    assert_eq!(unhealthy.message.to_string(), expected);
    let none = devices_healthy(&report(&recorded("generated/no-adapters.yaml")));
    assert_eq!((none.status, none.reason), (ConditionStatus::Unknown, "NoDevices"));
    assert_eq!(none.message.own(), "no device is advertised");
}

#[test]
fn devices_that_are_only_out_of_service_on_purpose_are_no_fault() {
    let mut snapshot = recorded("aws-t4-two.yaml");
    let id = snapshot.adapters[0].pnp.as_ref().unwrap().id.to_string();
    snapshot.cordoned = Cordons::Known(DeviceName::list(&id));
    let cordoned = devices_healthy(&report(&snapshot));
    assert_eq!((cordoned.status, cordoned.reason), (ConditionStatus::True, "CordonedDevices"));
    let start = format!("1 of 2 devices are out of service: {id} (NVIDIA Tesla T4): ");
    assert!(cordoned.message.own().starts_with(&start), "{}", cordoned.message);
    snapshot.adapters[1].pnp.as_mut().unwrap().problem_code = 43;
    let unhealthy = devices_healthy(&report(&snapshot));
    assert_eq!((unhealthy.status, unhealthy.reason), (ConditionStatus::False, "UnhealthyDevices"));
    assert!(
        unhealthy.message.own().starts_with("2 of 2 devices are unhealthy: "),
        "both are named"
    );
}

#[test]
fn devices_are_ready_once_pods_can_use_each_resource_with_a_healthy_one() {
    let mut snapshot = recorded("aws-t4-two.yaml");
    snapshot.adapters[1].attributes = vec![Attribute::D3d12CoreCompute].into();
    let missing = |why: &str| Progress::NotRegistered(Message::from(why.to_owned()));
    let cases = [
        (
            [Progress::Allocatable, Progress::Allocatable],
            (ConditionStatus::True, "DevicesReady"),
            "pods can use directx.microsoft.com/display; directx.microsoft.com/compute",
        ),
        (
            [Progress::NotAllocatable, Progress::Allocatable],
            (ConditionStatus::False, "NotAllocatable"),
            "directx.microsoft.com/display is not allocatable yet",
        ),
        (
            [Progress::NotAllocatable, missing("no kubelet")],
            (ConditionStatus::False, "NotRegistered"),
            "directx.microsoft.com/display is not allocatable yet; directx.microsoft.com/compute \
             is not registered with the kubelet: no kubelet",
        ),
        (
            [Progress::Allocatable, Progress::Incomplete("another plugin waits".to_owned())],
            (ConditionStatus::False, "NotRegistered"),
            "directx.microsoft.com/compute is registered without some of its devices: another \
             plugin waits",
        ),
    ];
    for ([display, compute], expected, message) in cases {
        let condition = devices_ready(&report(&snapshot), |resource| {
            let is_display = resource.as_str().ends_with("/display");
            if is_display { display.clone() } else { compute.clone() }
        });
        assert_eq!((condition.status, condition.reason), expected);
        assert_eq!(condition.message.to_string(), message);
    }
    // Nobody waits for a resource without a healthy device.
    snapshot.adapters[0].pnp.as_mut().unwrap().problem_code = 43;
    let waits = |snapshot: &HostSnapshot| {
        devices_ready(&report(snapshot), |resource| match resource.as_str() {
            "directx.microsoft.com/display" => missing("all are unhealthy"),
            _ => Progress::Allocatable,
        })
    };
    assert_eq!(waits(&snapshot).message.own(), "pods can use directx.microsoft.com/compute");
    for adapter in &mut snapshot.adapters {
        adapter.pnp.as_mut().unwrap().problem_code = 43;
    }
    let none = waits(&snapshot);
    assert_eq!((none.status, none.reason), (ConditionStatus::False, "NoHealthyDevices"));
    assert_eq!(none.message.own(), "no advertised device is healthy");
    let none = waits(&recorded("generated/no-adapters.yaml"));
    assert_eq!((none.reason, none.message.own()), ("NoHealthyDevices", "no device is advertised"));
}

#[test]
fn the_message_of_many_devices_is_limited() {
    let mut snapshot = recorded("aws-t4-two.yaml");
    let model = snapshot.adapters[0].clone();
    snapshot.adapters = (0..100)
        .map(|n| {
            let mut adapter = model.clone();
            adapter.luid.0 += n;
            let pnp = adapter.pnp.as_mut().unwrap();
            pnp.id = host::PnpId::new(format!("{}{n}", pnp.id));
            pnp.location_paths = vec![host::LocationPath::new(format!("PCIROOT({n})"))];
            pnp.problem_code = 10;
            adapter
        })
        .collect();
    let message = devices_healthy(&report(&snapshot)).message.to_string();
    assert!(message.starts_with("100 of 100 devices are unhealthy: "), "{message}");
    assert!(message.ends_with("; and 92 more") && message.len() < 2000, "{message}");
    assert_eq!(message.matches("problem code 10").count(), 8);
}

#[test]
fn events_are_changes_of_devices_and_unhealthy_ones_that_are_new() {
    let snapshot = recorded("made-up-two-vendors.yaml");
    let before = report(&snapshot);
    assert_eq!(device_events(&before, &before), []);
    assert_eq!(device_events(&NodeReport::default(), &before), [], "no event: a healthy arrival");

    let mut unhealthy = snapshot.clone();
    unhealthy.adapters[0].pnp.as_mut().unwrap().problem_code = 43;
    let unhealthy = report(&unhealthy);
    let reasons = |before: &NodeReport, after: &NodeReport| -> Vec<EventReason> {
        device_events(before, after).into_iter().map(|event| event.reason).collect()
    };
    assert_eq!(reasons(&before, &unhealthy), [EventReason::Unhealthy]);
    assert_eq!(reasons(&unhealthy, &before), [EventReason::Recovered]);
    assert_eq!(reasons(&NodeReport::default(), &unhealthy), [EventReason::Unhealthy]);

    let mut updated = snapshot.clone();
    let adapter = updated.adapters.iter_mut().find(|a| a.driver_version.is_some()).unwrap();
    adapter.driver_version.as_mut().unwrap().0 += 1;
    let events = device_events(&before, &report(&updated));
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].reason, EventReason::DriverChanged);
    assert!(events[0].note.contains("changed its driver from 31.0.15.2849 to 31.0.15.2850"));
}

/// A driver that is installed again changes no label, and the node is not said to have a GPU for
/// ten minutes that it does not have.
#[test]
fn a_removed_device_is_an_event_and_stays_labelled_for_a_minute() {
    let snapshot = recorded("made-up-two-vendors.yaml");
    let catalog = Catalog::new(policy(1));
    let before = DeviceSet::next(None, catalog.offer(&snapshot), Moment::default());
    let mut without = snapshot.clone();
    without.adapters.retain(|adapter| adapter.hardware_id.vendor != 0x10DE);
    let at = |seconds| Moment(Duration::from_secs(seconds));
    let after =
        |set: &DeviceSet, seconds| DeviceSet::next(Some(set), catalog.offer(&without), at(seconds));
    let removed = after(&before, 1);
    let reports = [&before, &removed].map(NodeReport::of);
    let unhealthy = reports[1].devices().find_map(|device| device.unhealthy.clone()).unwrap();
    assert_eq!(unhealthy.kind, UnhealthyKind::Removed);
    let events = device_events(&reports[0], &reports[1]);
    assert_eq!(events.len(), 1);
    assert!(events[0].note.contains("the host no longer reports the device"), "{events:?}");

    let labels_of = |set: &DeviceSet| labels(&read_back(&NodeReport::of(set)), true);
    let has_nvidia =
        |set: &DeviceSet| labels_of(set).keys().any(|label| label.starts_with("nvidia.com/"));
    let kept = after(&removed, 60);
    assert!(has_nvidia(&before));
    assert_eq!(labels_of(&kept), labels_of(&before));
    let gone = after(&kept, 61);
    let never_seen = DeviceSet::next(None, catalog.offer(&without), at(0));
    assert!(!has_nvidia(&gone));
    assert_eq!(labels_of(&gone), labels_of(&never_seen));
    // It is still listed, and everything else says so.
    assert_eq!(gone.entries().count(), before.entries().count());
    assert_eq!(device_events(&NodeReport::of(&kept), &NodeReport::of(&gone)), []);
    let condition = devices_healthy(&NodeReport::of(&gone));
    assert_eq!((condition.status, condition.reason), (ConditionStatus::False, "UnhealthyDevices"));
}

/// The report after it was written as JSON and read.
fn read_back(report: &NodeReport) -> NodeReport {
    serde_json::from_str(&serde_json::to_string(report).unwrap()).unwrap()
}

#[test]
fn a_license_or_a_kind_of_a_newer_or_an_older_plugin_is_not_known() {
    let report = report(&recorded("made-up-vgpu.yaml"));
    let names = |report: &NodeReport| -> Vec<(Option<LicenseState>, Option<DeviceKind>)> {
        report.devices().map(|device| (device.license, device.kind)).collect()
    };
    let gpu = Some(DeviceKind::Gpu);
    let known = [LicenseState::Licensed, LicenseState::Unlicensed].map(|state| (Some(state), gpu));
    assert_eq!(names(&report), known);
    let mut json = serde_json::to_value(&report).unwrap();
    let devices = json["resources"][0]["devices"].as_array_mut().unwrap();
    assert_eq!(devices[1]["license"], "unlicensed");
    for (key, value) in [("license", "leased"), ("kind", "dpu")] {
        devices[0][key] = value.into();
        devices[1].as_object_mut().unwrap().remove(key);
    }
    let read: NodeReport = serde_json::from_value(json).unwrap();
    assert_eq!(names(&read), [(None, None); 2]);
    assert!(!labels(&read, false).contains_key("directx.microsoft.com/kind"));
}

/// It may be listed for hours.
#[test]
fn the_license_of_a_device_that_is_away_is_not_known() {
    let mut snapshot = recorded("made-up-vgpu.yaml");
    let catalog = Catalog::new(policy(1));
    let set = DeviceSet::next(None, catalog.offer(&snapshot), Moment::default());
    snapshot.adapters.remove(1);
    let set = DeviceSet::next(Some(&set), catalog.offer(&snapshot), Moment::default());
    let licenses: Vec<_> = NodeReport::of(&set).devices().map(|device| device.license).collect();
    assert_eq!(licenses, [Some(LicenseState::Licensed), None]);
}

#[test]
fn the_architecture_of_a_gpu_has_the_name_that_gpu_feature_discovery_gives_it() {
    let mut snapshot = recorded("made-up-vgpu.yaml");
    let mut labels = |capability: &str| {
        for adapter in &mut snapshot.adapters {
            adapter.nvidia.compute_capability = capability.parse().ok();
        }
        let labels = all_labels(&snapshot);
        let value = |name: &str| labels.get(&format!("nvidia.com/gpu.{name}")).cloned();
        [value("family"), value("compute.major"), value("compute.minor")]
    };
    for (capability, family) in [
        ("1.3", "tesla"),
        ("2.1", "fermi"),
        ("3.7", "kepler"),
        ("4.0", "undefined"),
        ("5.2", "maxwell"),
        ("6.1", "pascal"),
        ("7.0", "volta"),
        ("7.5", "turing"),
        ("8.0", "ampere"),
        ("8.6", "ampere"),
        ("8.9", "ada-lovelace"),
        ("9.0", "hopper"),
        ("10.0", "blackwell"),
        ("12.0", "blackwell"),
        ("99.0", "undefined"),
    ] {
        let (major, minor) = capability.split_once('.').unwrap();
        assert_eq!(labels(capability), [family, major, minor].map(|text| Some(text.to_owned())));
    }
    assert_eq!(labels("not known"), [None, None, None]);
}

#[test]
fn the_report_of_each_recorded_host_is_read_as_it_was_written() {
    for folder in [folder(), folder().join("generated")] {
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            if path.is_dir() {
                continue;
            }
            let report = report(&config::inventory::read(&path).unwrap());
            assert_eq!(read_back(&report), report, "{}", path.display());
        }
    }
}

#[test]
fn a_report_of_a_newer_plugin_is_read_without_what_is_new() {
    let mut snapshot = recorded("aws-t4-two.yaml");
    snapshot.adapters[0].pnp.as_mut().unwrap().problem_code = 43;
    let report = report(&snapshot);
    let mut json = serde_json::to_value(&report).unwrap();
    json["new"] = true.into();
    json["host"]["new"] = true.into();
    json["resources"][0]["new"] = true.into();
    let device = &mut json["resources"][0]["devices"][0];
    device["new"] = true.into();
    assert_eq!(device["unhealthy"]["kind"], "problemCode");
    device["unhealthy"]["kind"] = "eaten".into();
    let read: NodeReport = serde_json::from_value(json).unwrap();
    let unhealthy = read.resources[0].devices[0].unhealthy.as_ref().unwrap();
    assert_eq!(unhealthy.kind, UnhealthyKind::Unknown);
    assert!(devices_healthy(&read).says_same_as(&devices_healthy(&report)));
    assert_eq!(labels(&read, true), labels(&report, true));
}

#[test]
fn the_cordons_of_a_report_are_limited() {
    let device = "x".repeat(100_000).parse().unwrap();
    let cordon = Cordon { device, source: CordonSource::NodeAnnotation };
    let set = DeviceSet { unmatched_cordons: vec![cordon; 10_000], ..DeviceSet::default() };
    let unmatched = NodeReport::of(&set).unmatched_cordons;
    assert_eq!(unmatched.len(), 64);
    assert!(unmatched.iter().all(|text| text.len() < 1100), "{}", unmatched[0]);
}

/// What differs in a random adapter from a recorded one.
#[derive(Clone, Debug)]
struct Changes {
    description: String,
    vendor: u32,
    driver_version: Option<u64>,
    /// The date of the driver as a `FILETIME`.
    driver_date: Option<u64>,
    memory: Option<u64>,
    is_broken: bool,
}

prop_compose! {
    fn changes()(
        description in prop_oneof![
            "[ -~]{0,80}",
            "NVIDIA (Tesla|Quadro) [A-Z0-9]{0,70}",
            ".{0,40}",
        ],
        vendor in prop_oneof![Just(0x10DE), Just(0x1002), any::<u32>()],
        driver_version: Option<u64>,
        driver_date: Option<u64>,
        memory: Option<u64>,
        is_broken: bool,
    ) -> Changes {
        Changes { description, vendor, driver_version, driver_date, memory, is_broken }
    }
}

/// A host with adapters that are recorded ones with these changes, each at another place.
fn random_host(adapters: Vec<(Index, Changes)>) -> HostSnapshot {
    let mut host = recorded("made-up-two-vendors.yaml");
    let known: Vec<_> = std::mem::take(&mut host.adapters)
        .into_iter()
        .chain(recorded("made-up-npu-beside-gpu.yaml").adapters)
        .filter(|adapter| adapter.pnp.is_some())
        .collect();
    for (place, (adapter, changes)) in (0_u32..).zip(adapters) {
        let mut adapter = adapter.get(&known).clone();
        adapter.luid = host::Luid(place.into());
        adapter.hardware_id.vendor = changes.vendor;
        adapter.driver_version = changes.driver_version.map(host::DriverVersion);
        adapter.dedicated_memory_mib = changes.memory;
        let pnp = adapter.pnp.as_mut().unwrap();
        pnp.id = host::PnpId::new(format!("{}{place}", pnp.id));
        pnp.location_paths = vec![host::LocationPath::new(format!("PCIROOT({place})"))];
        pnp.description = changes.description;
        pnp.driver_date = changes.driver_date.map(host::DriverDate::from_filetime);
        pnp.problem_code = if changes.is_broken { 43 } else { 0 };
        host.adapters.push(adapter);
    }
    host
}

proptest! {
    /// A program that read the report says the same about the node as the plugin.
    #[test]
    fn labels_condition_and_events_follow_from_what_was_read(
        before in prop::collection::vec((any::<Index>(), changes()), 0..6),
        after in prop::collection::vec((any::<Index>(), changes()), 0..6),
        replicas in 1..20_u32,
        with_nvidia: bool,
    ) {
        let before = shared(&random_host(before), replicas);
        let after = shared(&random_host(after), replicas);
        let read = [&before, &after].map(read_back);
        prop_assert_eq!(&read[1], &after);
        prop_assert_eq!(labels(&read[1], with_nvidia), labels(&after, with_nvidia));
        prop_assert!(devices_healthy(&read[1]).says_same_as(&devices_healthy(&after)));
        prop_assert_eq!(device_events(&read[0], &read[1]), device_events(&before, &after));
    }
}

#[test]
fn the_words_of_another_program_are_shown_and_not_compared() {
    let snapshot = recorded("aws-t4-two.yaml");
    let refused = |own: &str, words: &str| {
        devices_ready(&report(&snapshot), |_| {
            Progress::NotRegistered(Message::quoting(own.to_owned(), words))
        })
    };
    let first = refused("refused", "dial unix wddm-1.sock");
    let second = refused("refused", "dial unix wddm-2.sock");
    assert!(first.says_same_as(&second));
    assert_eq!(
        second.message.to_string(),
        "directx.microsoft.com/display is not registered with the kubelet: refused: dial unix \
         wddm-2.sock"
    );
    assert!(!first.says_same_as(&refused("waiting for the kubelet", "dial unix wddm-1.sock")));
}
