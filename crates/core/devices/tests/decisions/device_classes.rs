//! The class of a container that cannot get its devices individually.

use std::sync::Arc;

use devices::{
    ContainerPolicy, DeviceClass, DeviceMatch, DeviceSet, DriverModel, ModelPolicy, Moment,
    MultiDevice, Plan, PlanError, PlanWarning, ResourceRule, contents, plan,
};
use host::{HostFacts, HostSnapshot};

use crate::hosts::{NVIDIA, catalog, gpu, host, model, npu, resource, server, wddm, with_rules};

const ARRIVAL: &str = "1024E4C9-47C9-48D3-B4A8-F9DF78523B53";
const NPUS: [&str; 2] = [r"PCI\VEN_8086\1&0\0", r"PCI\VEN_8086\2&0\0"];
const GPUS: [&str; 2] = [r"PCI\VEN_10DE\1&0\0", r"PCI\VEN_10DE\2&0\0"];

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
        r"requested 2 devices; Windows supports one per container (multiDevice: first gives it one of them), compute-only devices are not display adapters, and deviceClass is not set for the driver model mcdm (untested candidate: 1024E4C9-47C9-48D3-B4A8-F9DF78523B53, every adapter of the host): `PCI\VEN_8086\1&0`, `PCI\VEN_8086\2&0`"
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
    let policy = with_class(ARRIVAL, model(DriverModel::Mcdm));
    let policy = with_multi_device(MultiDevice::Reject, policy);
    let refused = planned(policy, &two_npus(), &NPUS).unwrap_err();
    assert!(matches!(refused, PlanError::SeveralDevices(_)), "{refused}");
}

fn with_multi_device(multi_device: MultiDevice, mut policy: ModelPolicy) -> ModelPolicy {
    Arc::make_mut(&mut policy.container).multi_device = multi_device;
    policy
}

/// What kubelets made of the answer of the earlier plugins, but with a warning, and always the same
/// device.
#[test]
fn multi_device_first_assigns_the_first_device_and_names_only_it() {
    let first = |policy| with_multi_device(MultiDevice::First, policy);
    let mcdm = || model(DriverModel::Mcdm);
    for policy in [mcdm(), with_class(ARRIVAL, mcdm())] {
        for ids in [NPUS, [NPUS[1], NPUS[0]]] {
            let plan = planned(first(policy.clone()), &two_npus(), &ids).unwrap();
            assert_eq!(plan.device.host_path(), "vpci-location-path://PCIROOT(0)#PCI(0100)");
            assert_eq!(plan.devices.len(), 1);
            assert_eq!(plan.envs["DIRECTX_VISIBLE_DEVICES"], "1001");
            assert!(!plan.envs.contains_key("DIRECTX_DEVICE_1_LUID"), "{:?}", plan.envs);
            let warnings: Vec<String> = plan.warnings.iter().map(ToString::to_string).collect();
            assert_eq!(
                warnings,
                [
                    r"requested 2 devices, but Windows supports one device entry per container and multiDevice is first: only `PCI\VEN_8086\1&0` is assigned"
                ]
            );
        }
    }
    let one = planned(first(mcdm()), &two_npus(), &NPUS[1..]).unwrap();
    assert_eq!((one.device.host_path().contains("0200"), one.warnings), (true, vec![]));
    // The plugin of 2019 gave every container the class.
    let legacy = first(model(DriverModel::Legacy));
    let all = planned(legacy, &host(vec![gpu(1, NVIDIA), gpu(2, NVIDIA)]), &GPUS).unwrap();
    assert_eq!(all.envs["DIRECTX_VISIBLE_DEVICES"], "1001,1002");
}

#[test]
fn multi_device_first_assigns_a_single_device_as_the_host_can() {
    let first = |policy| with_multi_device(MultiDevice::First, policy);
    let old = HostSnapshot { host: server("10.0.17763.4010", "2.1"), ..two_npus() };
    let refused = planned(first(model(DriverModel::Mcdm)), &old, &NPUS).unwrap_err().to_string();
    assert!(refused.starts_with("this version of Windows cannot assign a device by"), "{refused}");
    let class = with_class(ARRIVAL, model(DriverModel::Mcdm));
    let plan = planned(first(class), &old, &NPUS).unwrap();
    assert_eq!(plan.device.host_path(), format!("class/{ARRIVAL}"));
    let [PlanWarning::OnlyFirstDevice { requested: 2, .. }, no_support] = &*plan.warnings else {
        panic!("{:?}", plan.warnings)
    };
    assert_eq!(*no_support, PlanWarning::NoLocationPathSupport(ARRIVAL.parse().unwrap()));
}

/// A rule's resource can have devices of two driver models. Each has its own setting.
#[test]
fn the_strictest_multi_device_applies_to_devices_of_several_driver_models() {
    use MultiDevice::{Class, First, Reject};
    let mixed = host(vec![gpu(1, NVIDIA), npu(2)]);
    for (wddm, mcdm, devices) in [
        (Class, First, Some(1)),
        (First, Class, Some(1)),
        (First, Reject, None),
        (Reject, First, None),
    ] {
        let policies = [(wddm, DriverModel::Wddm), (mcdm, DriverModel::Mcdm)];
        let models = policies.map(|(setting, driver_model)| {
            with_rules(with_multi_device(setting, model(driver_model)), vec![rule_for_all()])
        });
        let plan = plan_of_rule(models, &mixed);
        let found = plan.as_ref().ok().map(|plan| plan.devices.len());
        assert_eq!(found, devices, "{wddm} {mcdm}: {plan:?}");
    }
}

#[test]
fn the_class_can_be_set_for_every_driver_model() {
    let gpus = host(vec![gpu(1, NVIDIA), gpu(2, NVIDIA)]);
    for policy in [wddm(1), model(DriverModel::Legacy)] {
        let plan = planned(with_class(ARRIVAL, policy), &gpus, &GPUS).unwrap();
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

fn rule_for_all() -> ResourceRule {
    ResourceRule {
        name: "example.com/any".parse().unwrap(),
        matches: DeviceMatch::default(),
        replicas: None,
        allocation: None,
        visibility: None,
    }
}

/// The plan of a container with the GPU and the NPU of a host, which a rule gives one resource.
fn plan_of_rule(models: [ModelPolicy; 2], mixed: &HostSnapshot) -> Result<Plan, PlanError> {
    let set = DeviceSet::next(None, catalog(models).offer(mixed), Moment::default());
    let any = set.resources.iter().find(|r| r.spec.name.as_str() == "example.com/any");
    plan(any.unwrap(), [GPUS[0], NPUS[1]], &HostFacts::default(), &|_| false)
}

/// A rule's resource can have devices of both driver models, each with its own class.
#[test]
fn devices_of_several_driver_models_need_the_same_class() {
    let mixed = host(vec![gpu(1, NVIDIA), npu(2)]);
    let planned = |wddm: ModelPolicy, mcdm: ModelPolicy| {
        let models = [wddm, mcdm].map(|policy| with_rules(policy, vec![rule_for_all()]));
        plan_of_rule(models, &mixed)
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
