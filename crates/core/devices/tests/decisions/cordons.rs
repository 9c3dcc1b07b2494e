//! Devices that an administrator takes out of service.

use devices::{Catalog, DeviceSet, DriverModel, Health, ModelPolicy, Moment, UnhealthyReason};
use host::{CordonSource, Cordons, DeviceName, HostSnapshot, LocationPath};
use report::{
    ConditionStatus, DeviceEvent, EventReason, NodeReport, UnhealthyKind, device_events,
    devices_healthy,
};

use crate::hosts::{NVIDIA, catalog, gpu, host, model, npu, wddm};

fn cordoning(policy: ModelPolicy, names: &[&str]) -> ModelPolicy {
    let cordoned = names.iter().map(|name| name.parse().unwrap()).collect();
    ModelPolicy { cordoned, ..policy }
}

/// The names in an annotation.
fn names(annotation: &str) -> Cordons {
    Cordons::Known(DeviceName::list(annotation))
}

fn set(catalog: &Catalog, snapshot: &HostSnapshot) -> DeviceSet {
    DeviceSet::next(None, catalog.offer(snapshot), Moment::default())
}

fn cordoned(set: &DeviceSet) -> Vec<(i64, CordonSource)> {
    let entries = set.resources.iter().flat_map(|resource| resource.entries());
    entries
        .filter_map(|entry| match entry.health {
            Health::Unhealthy(UnhealthyReason::Cordoned(source)) => {
                Some((entry.device.luid.0, source))
            }
            _ => None,
        })
        .collect()
}

fn unmatched(set: &DeviceSet) -> Vec<String> {
    set.unmatched_cordons.iter().map(ToString::to_string).collect()
}

/// The path of a GPU that Hyper-V passes to a virtual machine contains `#` and `{}` in parentheses,
/// but nothing that separates names.
#[test]
fn the_annotation_names_a_gpu_on_vmbus_by_its_location_path() {
    let path = |n: i64| {
        format!(
            "ACPI(_SB_)#ACPI(VMOD)#ACPI(VMBS)#VMBUS({{44C4F61D-4444-4400-9D52-802E27EDE19F}}#\
             {{0B4A8C1E-000{n}-0000-3130-444531454238}})#VPCI(0)#PCI(0000)"
        )
    };
    let on_vmbus = |n: i64| {
        let mut adapter = gpu(n, NVIDIA);
        adapter.pnp.as_mut().unwrap().location_paths = vec![LocationPath::new(path(n))];
        adapter
    };
    let catalog = catalog([wddm(1)]);
    let mut snapshot = host(vec![on_vmbus(1), on_vmbus(2), on_vmbus(3)]);
    snapshot.cordoned = names(&format!("{}, {}", path(3), path(1).to_lowercase()));
    let set = set(&catalog, &snapshot);
    let annotation = CordonSource::NodeAnnotation;
    assert_eq!(cordoned(&set), [(1001, annotation), (1003, annotation)]);
    assert_eq!(unmatched(&set), [""; 0]);
}

#[test]
fn every_replica_of_a_cordoned_device_is_unhealthy() {
    let catalog = catalog([cordoning(wddm(2), &["pciroot(0)#pci(0100)"])]);
    let set = set(&catalog, &host(vec![gpu(1, NVIDIA), gpu(2, NVIDIA)]));
    let health: Vec<bool> =
        set.resources[0].replicas().map(|replica| replica.health.is_healthy()).collect();
    assert_eq!(health, [false, false, true, true]);
    assert_eq!(
        set.resources[0].replicas().next().map(|replica| replica.health),
        Some(Health::Unhealthy(UnhealthyReason::Cordoned(CordonSource::Configuration)))
    );
    assert_eq!(
        UnhealthyReason::Cordoned(CordonSource::Configuration).to_string(),
        "cordoned: taken out of service by cordonedDevices of the configuration"
    );
}

#[test]
fn a_device_is_named_by_its_id_its_location_path_or_the_id_of_a_replica() {
    let snapshot = host(vec![gpu(1, NVIDIA), gpu(2, NVIDIA)]);
    for name in
        [r"PCI\VEN_10DE\1&0", r"pci\ven_10de\1&0", r"PCI\VEN_10DE\1&0\3", " PCIROOT(0)#PCI(0100) "]
    {
        let set = set(&catalog([cordoning(wddm(1), &[name])]), &snapshot);
        assert_eq!(cordoned(&set), [(1001, CordonSource::Configuration)], "{name}");
        assert!(set.unmatched_cordons.is_empty());
    }
    assert!(" ".parse::<DeviceName>().is_err());
}

#[test]
fn the_configuration_of_one_driver_model_cordons_devices_of_another() {
    let models =
        [cordoning(model(DriverModel::Wddm), &[r"PCIROOT(0)#PCI(0200)"]), model(DriverModel::Mcdm)];
    let set = set(&catalog(models), &host(vec![gpu(1, NVIDIA), npu(2)]));
    assert_eq!(cordoned(&set), [(1002, CordonSource::Configuration)]);
}

#[test]
fn the_annotation_cordons_without_a_new_catalog() {
    let catalog = catalog([wddm(1)]);
    let mut snapshot = host(vec![gpu(1, NVIDIA), gpu(2, NVIDIA)]);
    snapshot.cordoned = names(r"PCI\VEN_10DE\2&0");
    assert_eq!(cordoned(&set(&catalog, &snapshot)), [(1002, CordonSource::NodeAnnotation)]);
    snapshot.cordoned = Cordons::default();
    assert!(cordoned(&set(&catalog, &snapshot)).is_empty());
}

#[test]
fn commas_and_line_breaks_separate_names() {
    let list = |text: &str| -> Vec<String> {
        DeviceName::list(text).iter().map(ToString::to_string).collect()
    };
    let names = ["PCIROOT(0)#PCI(0100)", r"PCI\VEN_10DE&DEV_1EB8\3&1&0&1"];
    for text in
        [names.join(","), names.join("\n"), format!(" {} ,\r\n\n,{1},{1}\r\n", names[1], names[0])]
    {
        assert_eq!(list(&text), names, "{text:?}");
    }
    for text in ["", " ", ",\n"] {
        assert_eq!(list(text), [""; 0], "{text:?}");
    }
}

#[test]
fn a_name_of_no_device_is_one_event() {
    let catalog = catalog([wddm(1)]);
    let mut snapshot = host(vec![gpu(1, NVIDIA)]);
    let before = set(&catalog, &snapshot);
    snapshot.cordoned = names("PCIROOT(9)");
    let after = set(&catalog, &snapshot);
    let note = unmatched(&after).remove(0);
    let event = DeviceEvent { reason: EventReason::NotFound, note };
    assert!(event.reason.is_warning());
    assert_eq!(<&str>::from(event.reason), "DirectXDeviceNotFound");
    let events = |before: &DeviceSet, after: &DeviceSet| {
        device_events(&NodeReport::of(before), &NodeReport::of(after))
    };
    assert_eq!(events(&before, &after), [event]);
    assert_eq!(events(&after, &after), []);
    assert_eq!(events(&after, &before), []);
}

#[test]
fn a_name_of_no_device_is_reported_once() {
    let mut snapshot = host(vec![gpu(1, NVIDIA)]);
    snapshot.cordoned = names("PCIROOT(9)");
    let models =
        [cordoning(model(DriverModel::Wddm), &["x"]), cordoning(model(DriverModel::Mcdm), &["x"])];
    assert_eq!(
        unmatched(&set(&catalog(models), &snapshot)),
        [
            "`PCIROOT(9)` in the node's annotation directx.microsoft.com/cordoned-devices names no \
             device of this host",
            "`x` in cordonedDevices of the configuration names no device of this host",
        ]
    );
}

/// The adapter exists, so its name is not a mistake.
#[test]
fn a_device_that_is_not_advertised_or_was_removed_is_a_known_name() {
    let catalog = catalog([cordoning(wddm(1), &["PCIROOT(0)#PCI(0100)", "PCIROOT(0)#PCI(0200)"])]);
    let mut detachable = gpu(2, NVIDIA);
    detachable.detachable = true;
    let before = set(&catalog, &host(vec![gpu(1, NVIDIA), detachable.clone()]));
    assert_eq!((before.not_advertised.len(), unmatched(&before).len()), (1, 0));
    let after =
        DeviceSet::next(Some(&before), catalog.offer(&host(vec![detachable])), Moment::default());
    assert_eq!(after.resources[0].entries()[0].health, Health::Unhealthy(UnhealthyReason::Removed));
    assert!(after.unmatched_cordons.is_empty());
}

#[test]
fn a_cordoned_device_with_a_problem_is_cordoned() {
    let mut broken = gpu(1, NVIDIA);
    broken.pnp.as_mut().unwrap().problem_code = 43;
    let set = set(&catalog([cordoning(wddm(1), &["PCIROOT(0)#PCI(0100)"])]), &host(vec![broken]));
    assert_eq!(cordoned(&set), [(1001, CordonSource::Configuration)]);
}

#[test]
fn no_device_is_healthy_while_the_cordons_are_not_known() {
    let mut configured = model(DriverModel::Wddm);
    configured.cordoned = DeviceName::list("PCIROOT(0)#PCI(0300)");
    let catalog = catalog([configured]);
    let mut broken = gpu(2, NVIDIA);
    broken.pnp.as_mut().unwrap().problem_code = 43;
    let mut snapshot = host(vec![gpu(1, NVIDIA), broken, gpu(3, NVIDIA)]);
    let known = set(&catalog, &snapshot);
    snapshot.cordoned = Cordons::Unknown("cannot read `x`".to_owned());
    let unknown = set(&catalog, &snapshot);
    let reasons: Vec<Health> = unknown.entries().map(|entry| entry.health).collect();
    // A device that is unhealthy anyway keeps its reason.
    assert_eq!(
        reasons,
        [
            UnhealthyReason::CordonsUnknown,
            UnhealthyReason::ProblemCode(43),
            UnhealthyReason::Cordoned(CordonSource::Configuration),
        ]
        .map(Health::Unhealthy)
    );
    let [known, unknown] = [known, unknown].map(|set| NodeReport::of(&set));
    let reason = unknown.resources[0].devices[0].unhealthy.as_ref().unwrap();
    assert_eq!(reason.kind, UnhealthyKind::CordonsUnknown);
    assert_eq!(serde_json::to_value(reason.kind).unwrap(), "cordonsUnknown");
    // Nobody took the devices out of service on purpose.
    let condition = devices_healthy(&unknown);
    assert_eq!(condition.status, ConditionStatus::False);
    assert!(condition.message.own().contains(&reason.text), "{condition:?}");
    let events = device_events(&known, &unknown);
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(events[0].reason, EventReason::Unhealthy);
    let recovered = device_events(&unknown, &known);
    assert_eq!(recovered.len(), 1, "{recovered:?}");
    assert_eq!(recovered[0].reason, EventReason::Recovered);
}
