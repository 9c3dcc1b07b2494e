//! Labels, condition and Events of recorded hosts.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use config::{EmptyEnvironment, Flags};
use devices::report::{ConditionStatus, EventReason, Labels, condition, device_events, labels};
use devices::{Catalog, DeviceSet, Health, HostSnapshot, Moment, Policy};

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

fn set(snapshot: &HostSnapshot) -> DeviceSet {
    DeviceSet::next(None, Catalog::new(policy(1)).offer(snapshot), Moment::default())
}

fn all_labels(snapshot: &HostSnapshot) -> Labels {
    labels(&set(snapshot), true)
}

#[test]
fn every_label_is_documented_and_occurs() {
    let mut seen = BTreeSet::new();
    for file in std::fs::read_dir(folder()).unwrap() {
        let path = file.unwrap().path();
        if path.is_dir() {
            continue;
        }
        for (name, _) in all_labels(&config::inventory::read(&path).unwrap()) {
            let count = "directx.microsoft.com/count.";
            let name = if name.starts_with(count) { format!("{count}<product>") } else { name };
            seen.insert(name);
        }
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/labels.md");
    let page = std::fs::read_to_string(page).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let ours =
        |name: &&str| name.starts_with("directx.microsoft.com/") || name.starts_with("nvidia");
    let documented: BTreeSet<String> = rows.filter(ours).map(str::to_owned).collect();
    assert_eq!(seen, documented);
}

#[test]
fn the_model_with_most_devices_stands_for_the_node_then_the_one_with_most_memory() {
    let mut snapshot = recorded("made-up-two-vendors.yaml");
    let product = |snapshot: &HostSnapshot| {
        labels(&set(snapshot), false)["directx.microsoft.com/product"].clone()
    };
    assert_eq!(product(&snapshot), "NVIDIA-A10-24Q", "one each, this has more memory");
    snapshot.adapters.reverse();
    assert_eq!(product(&snapshot), "NVIDIA-A10-24Q", "the order of the host is no reason");
    let amd = snapshot.adapters.iter().find(|a| a.hardware_id.vendor == 0x1002).unwrap();
    let mut second = amd.clone();
    second.luid.0 += 1000;
    let pnp = second.pnp.as_mut().unwrap();
    pnp.id = devices::PnpId::new(format!("{}X", pnp.id));
    pnp.location_paths = vec![devices::LocationPath::new("PCIROOT(9)")];
    snapshot.adapters.push(second);
    assert_eq!(product(&snapshot), "AMD-Radeon-Pro-V520-MxGPU", "two of one");
    let counts = labels(&set(&snapshot), false);
    assert_eq!(counts["directx.microsoft.com/count"], "3");
    assert_eq!(counts["directx.microsoft.com/count.AMD-Radeon-Pro-V520-MxGPU"], "2");
}

#[test]
fn shared_devices_are_labelled_as_gpu_feature_discovery_does() {
    let snapshot = recorded("made-up-two-vendors.yaml");
    let offer = Catalog::new(policy(4)).offer(&snapshot);
    let set = DeviceSet::next(None, offer, Moment::default());
    let labels = labels(&set, true);
    for (name, value) in [
        ("directx.microsoft.com/product", "NVIDIA-A10-24Q"),
        ("directx.microsoft.com/replicas", "4"),
        ("directx.microsoft.com/sharing-strategy", "time-slicing"),
        ("nvidia.com/gpu.product", "NVIDIA-A10-24Q-SHARED"),
        ("nvidia.com/gpu.replicas", "4"),
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

#[test]
fn a_node_without_devices_has_a_count_and_no_model() {
    let labels = all_labels(&recorded("generated/no-adapters.yaml"));
    assert_eq!(labels["directx.microsoft.com/count"], "0");
    let model = ["product", "vendor", "memory", "driver-model", "replicas", "sharing-strategy"];
    for name in model {
        assert!(!labels.contains_key(&format!("directx.microsoft.com/{name}")), "{name}");
    }
    assert!(!labels.keys().any(|name| name.starts_with("nvidia.com/")), "{labels:?}");
}

#[test]
fn the_condition_names_unhealthy_devices() {
    let mut snapshot = recorded("aws-t4-two.yaml");
    let healthy = condition(&set(&snapshot));
    assert_eq!((healthy.status, healthy.reason), (ConditionStatus::True, "AllHealthy"));
    let device = snapshot.adapters[0].pnp.as_mut().unwrap();
    device.problem_code = 43;
    let id = device.id.to_string();
    let unhealthy = condition(&set(&snapshot));
    assert_eq!((unhealthy.status, unhealthy.reason), (ConditionStatus::False, "UnhealthyDevices"));
    let expected = format!(
        "1 of 2 devices are unhealthy: {id} (NVIDIA Tesla T4): Windows reports problem code 43"
    );
    assert_eq!(unhealthy.message, expected);
    let none = condition(&set(&recorded("generated/no-adapters.yaml")));
    assert_eq!((none.status, none.reason), (ConditionStatus::Unknown, "NoDevices"));
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
            pnp.id = devices::PnpId::new(format!("{}{n}", pnp.id));
            pnp.location_paths = vec![devices::LocationPath::new(format!("PCIROOT({n})"))];
            pnp.problem_code = 10;
            adapter
        })
        .collect();
    let message = condition(&set(&snapshot)).message;
    assert!(message.starts_with("100 of 100 devices are unhealthy: "), "{message}");
    assert!(message.ends_with("; and 92 more") && message.len() < 2000, "{message}");
}

#[test]
fn events_are_changes_of_devices_and_unhealthy_ones_that_are_new() {
    let snapshot = recorded("made-up-two-vendors.yaml");
    let before = set(&snapshot);
    assert_eq!(device_events(&before, &before), []);
    assert_eq!(device_events(&DeviceSet::default(), &before), [], "no event: a healthy arrival");

    let mut unhealthy = snapshot.clone();
    unhealthy.adapters[0].pnp.as_mut().unwrap().problem_code = 43;
    let unhealthy = set(&unhealthy);
    let reasons = |before: &DeviceSet, after: &DeviceSet| -> Vec<EventReason> {
        device_events(before, after).into_iter().map(|event| event.reason).collect()
    };
    assert_eq!(reasons(&before, &unhealthy), [EventReason::Unhealthy]);
    assert_eq!(reasons(&unhealthy, &before), [EventReason::Recovered]);
    assert_eq!(reasons(&DeviceSet::default(), &unhealthy), [EventReason::Unhealthy]);

    let mut updated = snapshot.clone();
    let adapter = updated.adapters.iter_mut().find(|a| a.driver_version.is_some()).unwrap();
    adapter.driver_version.as_mut().unwrap().0 += 1;
    let events = device_events(&before, &set(&updated));
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].reason, EventReason::DriverChanged);
    assert!(events[0].note.contains("changed its driver from 31.0.15.2849 to 31.0.15.2850"));
}

#[test]
fn a_removed_device_is_an_event_and_stays_labelled_for_its_grace_time() {
    let snapshot = recorded("aws-t4-two.yaml");
    let catalog = Catalog::new(policy(1));
    let before = DeviceSet::next(None, catalog.offer(&snapshot), Moment::default());
    let mut without = snapshot.clone();
    without.adapters.pop();
    let at = |seconds| Moment(Duration::from_secs(seconds));
    let removed = DeviceSet::next(Some(&before), catalog.offer(&without), at(1));
    let health = |set: &DeviceSet| {
        set.resources
            .iter()
            .flat_map(|r| r.entries())
            .filter(|e| e.health == Health::Healthy)
            .count()
    };
    assert_eq!(health(&removed), 1);
    let events = device_events(&before, &removed);
    assert_eq!(events.len(), 1);
    assert!(events[0].note.contains("the host no longer reports the device"), "{events:?}");
    let count = |set: &DeviceSet| labels(set, false)["directx.microsoft.com/count"].clone();
    assert_eq!(count(&removed), "2");
    let expired = removed.reviewed(None, at(3600));
    assert_eq!(count(&expired), "1");
}
