//! The class of a container that cannot get its devices individually.

use std::sync::Arc;

use devices::{
    ContainerPolicy, DeviceClass, DeviceMatch, DeviceSet, DriverModel, HostFacts, HostSnapshot,
    ModelPolicy, Moment, MultiDevice, Plan, PlanError, PlanWarning, ResourceRule, contents, plan,
};

use crate::hosts::{NVIDIA, catalog, gpu, host, model, npu, resource, server, wddm, with_rules};

const ARRIVAL: &str = "1024E4C9-47C9-48D3-B4A8-F9DF78523B53";
const NPUS: [&str; 2] = [r"PCI\VEN_8086\1&0\0", r"PCI\VEN_8086\2&0\0"];

fn two_npus() -> HostSnapshot {
    host(vec![npu(1), npu(2)])
}

fn with_class(class: &str, policy: ModelPolicy) -> ModelPolicy {
    let device_class = Some(class.parse::<DeviceClass>().unwrap());
    ModelPolicy {
        container: Arc::new(ContainerPolicy { device_class, ..ContainerPolicy::default() }),
        ..policy
    }
}

fn planned(policy: ModelPolicy, on: &HostSnapshot, ids: &[&str]) -> Result<Plan, PlanError> {
    plan(&resource(policy, on), ids.iter().copied(), &on.host, &|_| false)
}

/// A container with the display adapter class would start without its NPUs.
#[test]
fn several_compute_only_devices_are_refused_unless_a_class_is_set() {
    let mcdm = || model(DriverModel::Mcdm);
    let refused = planned(mcdm(), &two_npus(), &NPUS).unwrap_err();
    assert_eq!(
        refused.to_string(),
        r"requested 2 devices; Windows supports one per container, compute-only devices are not display adapters, and deviceClass is not set for the driver model mcdm (untested candidate: 1024E4C9-47C9-48D3-B4A8-F9DF78523B53, every adapter of the host): `PCI\VEN_8086\1&0`, `PCI\VEN_8086\2&0`"
    );
    let plan = planned(with_class(ARRIVAL, mcdm()), &two_npus(), &NPUS).unwrap();
    assert_eq!(plan.device.host_path(), format!("class/{ARRIVAL}"));
    let class = ARRIVAL.parse().unwrap();
    assert_eq!(plan.warnings, [PlanWarning::SeveralDevices { count: 2, class }]);
    assert_eq!(
        plan.warnings[0].to_string(),
        format!(
            "requested 2 devices, but Windows supports one device entry per container: the \
             container gets all devices of the class {ARRIVAL} of the host"
        )
    );
    let one = planned(mcdm(), &two_npus(), &NPUS[..1]).unwrap();
    assert_eq!(one.device.host_path(), "vpci-location-path://PCIROOT(0)#PCI(0100)");
}

#[test]
fn multi_device_reject_precedes_the_class() {
    let mut policy = with_class(ARRIVAL, model(DriverModel::Mcdm));
    Arc::make_mut(&mut policy.container).multi_device = MultiDevice::Reject;
    let refused = planned(policy, &two_npus(), &NPUS).unwrap_err();
    assert!(matches!(refused, PlanError::SeveralDevices(_)), "{refused}");
}

#[test]
fn the_class_can_be_set_for_every_driver_model() {
    let gpus = host(vec![gpu(1, NVIDIA), gpu(2, NVIDIA)]);
    let ids = [r"PCI\VEN_10DE\1&0\0", r"PCI\VEN_10DE\2&0\0"];
    for policy in [wddm(1), model(DriverModel::Legacy)] {
        let plan = planned(with_class(ARRIVAL, policy), &gpus, &ids).unwrap();
        assert_eq!(plan.device.host_path(), format!("class/{ARRIVAL}"));
    }
}

#[test]
fn a_host_without_schema_2_2_gives_a_compute_only_device_only_by_a_class() {
    let old = HostSnapshot { host: server("10.0.17763.4010", "2.1"), ..two_npus() };
    let refused = planned(model(DriverModel::Mcdm), &old, &NPUS[..1]).unwrap_err().to_string();
    assert!(refused.starts_with("this version of Windows cannot assign a device by"), "{refused}");
    assert!(refused.contains("deviceClass is not set for the driver model mcdm"), "{refused}");
    let policy = with_class(ARRIVAL, model(DriverModel::Mcdm));
    let plan = planned(policy, &old, &NPUS[..1]).unwrap();
    assert_eq!(plan.device.host_path(), format!("class/{ARRIVAL}"));
    assert_eq!(plan.warnings, [PlanWarning::NoLocationPathSupport(ARRIVAL.parse().unwrap())]);
}

/// A rule's resource can have devices of both driver models, each with its own class.
#[test]
fn devices_of_several_driver_models_need_the_same_class() {
    let mixed = host(vec![gpu(1, NVIDIA), npu(2)]);
    let ids = [r"PCI\VEN_10DE\1&0\0", r"PCI\VEN_8086\2&0\0"];
    let rule = || ResourceRule {
        name: "example.com/any".parse().unwrap(),
        matches: DeviceMatch::default(),
        replicas: None,
        allocation: None,
        visibility: None,
    };
    let planned = |wddm: ModelPolicy, mcdm: ModelPolicy| {
        let models = [wddm, mcdm].map(|policy| with_rules(policy, vec![rule()]));
        let set = DeviceSet::next(None, catalog(models).offer(&mixed), Moment::default());
        let any = set.resources.iter().find(|r| r.spec.name.as_str() == "example.com/any");
        plan(any.unwrap(), ids, &HostFacts::default(), &|_| false)
    };
    let mcdm = || model(DriverModel::Mcdm);
    let error = planned(wddm(1), mcdm()).unwrap_err();
    let PlanError::NoDeviceClass { requested: 2, model, devices } = &error else {
        panic!("{error}")
    };
    assert_eq!((*model, devices.len()), (DriverModel::Mcdm, 1));
    let error = planned(wddm(1), with_class(ARRIVAL, mcdm())).unwrap_err();
    assert_eq!(
        error.to_string(),
        r"requested 2 devices; Windows supports one per container and deviceClass differs between the driver models of: `PCI\VEN_10DE\1&0`, `PCI\VEN_8086\2&0`"
    );
    let same = planned(with_class(ARRIVAL, wddm(1)), with_class(ARRIVAL, mcdm())).unwrap();
    assert_eq!(same.device.host_path(), format!("class/{ARRIVAL}"));
}

/// `ctr` and Docker give a container several device entries.
#[test]
fn the_contents_of_a_container_do_not_depend_on_a_class() {
    let on = two_npus();
    let resource = resource(model(DriverModel::Mcdm), &on);
    let both = contents(&resource, NPUS, &on.host, &|_| false).unwrap();
    assert_eq!(both.devices.len(), 2);
    assert_eq!(both.envs["DIRECTX_VISIBLE_DEVICES"], "1001,1002");
    assert!(contents(&resource, [], &on.host, &|_| false).is_err());
}
