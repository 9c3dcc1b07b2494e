//! Which resource a device is advertised under.

use std::num::NonZeroU32;

use devices::{
    AllocationPolicy, Attribute, Catalog, DeviceMatch, DriverModel, LocationPath, Offer,
    ResourceOrigin, ResourceRule, SharedRequests,
};

use crate::hosts::{AMD, NVIDIA, catalog, gpu, host, model, npu, wddm, with_rules};

fn rule(name: &str, matches: DeviceMatch) -> ResourceRule {
    let name = name.parse().unwrap();
    ResourceRule { name, matches, replicas: None, allocation: None, visibility: None }
}

fn assigned(offer: &Offer) -> Vec<(String, Vec<i64>)> {
    let luids = |r: &devices::ResourceOffer| r.devices.iter().map(|(d, _)| d.luid.0).collect();
    offer.resources.iter().map(|r| (r.spec.name.to_string(), luids(r))).collect()
}

#[test]
fn each_driver_model_gets_its_devices() {
    let mut display_only = gpu(3, 0x1414);
    display_only.attributes = [Attribute::D3d11Graphics].into_iter().collect();
    let snapshot = host(vec![gpu(1, NVIDIA), npu(2), display_only]);
    let offer = catalog([model(DriverModel::Wddm), model(DriverModel::Mcdm)]).offer(&snapshot);
    assert_eq!(
        assigned(&offer),
        [
            ("directx.microsoft.com/display".to_owned(), vec![1001]),
            ("directx.microsoft.com/compute".to_owned(), vec![1002]),
        ]
    );
    assert_eq!(
        offer.skipped[0].reason.to_string(),
        "not matched by any enabled driver model (wddm, mcdm): adapter supports display but not \
         compute"
    );
}

#[test]
fn the_first_matching_rule_claims_a_device_and_others_stay_with_their_model() {
    let mut small = gpu(2, NVIDIA);
    small.dedicated_memory_mib = Some(8191);
    let mut unknown_memory = gpu(3, NVIDIA);
    unknown_memory.dedicated_memory_mib = None;
    let snapshot = host(vec![gpu(1, NVIDIA), small, unknown_memory, gpu(4, AMD), gpu(5, 0x8086)]);
    let rules = vec![
        rule(
            "nvidia.com/big",
            DeviceMatch {
                vendor: Some(devices::Vendor::Nvidia),
                min_memory_mib: Some(8192),
                ..DeviceMatch::default()
            },
        ),
        ResourceRule {
            replicas: NonZeroU32::new(4),
            allocation: Some(AllocationPolicy::Packed),
            ..rule(
                "nvidia.com/gpu",
                DeviceMatch { pci: Some("10de:*".parse().unwrap()), ..DeviceMatch::default() },
            )
        },
        rule(
            "amd.com/gpu",
            DeviceMatch {
                location: Some("PCIROOT(0)#PCI(04*".parse().unwrap()),
                description: Some("^gpu [0-9]$".parse().unwrap()),
                model: Some(DriverModel::Wddm),
                ..DeviceMatch::default()
            },
        ),
        rule(
            "intel.com/never",
            DeviceMatch { model: Some(DriverModel::Mcdm), ..DeviceMatch::default() },
        ),
    ];
    let catalog = catalog([with_rules(wddm(2), rules)]);
    let offer = catalog.offer(&snapshot);
    assert_eq!(
        assigned(&offer),
        [
            ("directx.microsoft.com/display".to_owned(), vec![1005]),
            ("nvidia.com/big".to_owned(), vec![1001]),
            ("nvidia.com/gpu".to_owned(), vec![1002, 1003]),
            ("amd.com/gpu".to_owned(), vec![1004]),
            ("intel.com/never".to_owned(), vec![]),
        ]
    );
    let unmatched: Vec<_> = offer.unmatched_rules.iter().map(|r| r.name.as_str()).collect();
    assert_eq!(unmatched, ["intel.com/never"]);
    let spec = &catalog.resources()[2];
    assert_eq!((spec.sharing.replicas.get(), spec.origin), (4, ResourceOrigin::Rule(1)));
    assert_eq!(spec.sharing.allocation, AllocationPolicy::Packed);
    assert_eq!(catalog.resources()[1].sharing.replicas.get(), 2);
}

#[test]
fn rules_inherit_shared_requests_from_their_model() {
    let mut policy = with_rules(wddm(2), vec![rule("intel.com/any", DeviceMatch::default())]);
    policy.sharing.shared_requests = SharedRequests::One;
    let catalog = catalog([policy]);
    let inherited = catalog.resources().iter().map(|spec| spec.sharing.shared_requests);
    assert_eq!(inherited.collect::<Vec<_>>(), [SharedRequests::One; 2]);
}

#[test]
fn a_rule_shared_by_two_models_is_one_resource() {
    let rules = || vec![rule("intel.com/any", DeviceMatch::default())];
    let models = [DriverModel::Wddm, DriverModel::Mcdm].map(|m| with_rules(model(m), rules()));
    let offer = catalog(models).offer(&host(vec![npu(1), gpu(2, 0x8086)]));
    assert_eq!(assigned(&offer)[2], ("intel.com/any".to_owned(), vec![1001, 1002]));
    assert!(offer.unmatched_rules.is_empty());
}

#[test]
fn a_resource_names_every_driver_model_whose_devices_it_can_have() {
    let any = || vec![rule("intel.com/any", DeviceMatch::default())];
    let both = [DriverModel::Wddm, DriverModel::Mcdm].map(|m| with_rules(model(m), any()));
    let models = |catalog: &Catalog| -> Vec<Vec<DriverModel>> {
        catalog.resources().iter().map(|spec| spec.models.clone()).collect()
    };
    let [wddm, mcdm] = [DriverModel::Wddm, DriverModel::Mcdm];
    assert_eq!(models(&catalog(both.clone())), [vec![wddm], vec![mcdm], vec![wddm, mcdm]]);
    let [display, mut compute] = both;
    compute.rules = [].into();
    assert_eq!(models(&catalog([display.clone(), compute.clone()]))[2], [wddm]);
    compute.resource = display.resource.clone();
    assert_eq!(models(&catalog([display, compute])), [vec![wddm, mcdm], vec![wddm]]);
}

/// By these locks, daemons for different driver models exclude each other where they must.
#[test]
fn driver_models_that_advertise_the_same_device_have_the_same_lock() {
    let mut display_only = gpu(3, 0x1414);
    display_only.attributes = [Attribute::D3d11Graphics].into_iter().collect();
    let snapshot = host(vec![gpu(1, NVIDIA), npu(2), display_only]);
    let luids = |m| assigned(&catalog([model(m)]).offer(&snapshot)).remove(0).1;
    let models = [DriverModel::Wddm, DriverModel::Mcdm, DriverModel::Legacy];
    for one in models {
        for other in models {
            let overlap = luids(one).iter().any(|luid| luids(other).contains(luid));
            assert_eq!(one.lock() == other.lock(), overlap, "{one} {other}");
        }
    }
}

#[test]
fn only_the_legacy_model_advertises_a_device_without_location_path() {
    let mut no_path = gpu(1, NVIDIA);
    no_path.pnp.as_mut().unwrap().location_paths.clear();
    let snapshot = host(vec![no_path]);
    let offer = catalog([wddm(1)]).offer(&snapshot);
    assert_eq!(
        offer.skipped[0].reason.to_string(),
        "Windows reports no location path, so the device cannot be assigned to a container \
         individually"
    );
    let mut legacy = model(DriverModel::Legacy);
    legacy.match_name = Some("gPu".into());
    assert_eq!(assigned(&catalog([legacy.clone()]).offer(&snapshot))[0].1, [1001]);
    legacy.match_name = Some("nvidia".into());
    let offer = catalog([legacy]).offer(&snapshot);
    assert_eq!(
        offer.skipped[0].reason.to_string(),
        "adapter description does not contain `nvidia`"
    );
}

/// An allocation by location path could give a container either of them.
#[test]
fn devices_with_the_same_location_path_are_not_advertised() {
    let mut same = gpu(2, NVIDIA);
    same.pnp.as_mut().unwrap().location_paths = vec![LocationPath::new("pciroot(0)#pci(0100)")];
    let snapshot = host(vec![gpu(1, NVIDIA), same, gpu(3, NVIDIA)]);
    let offer = catalog([model(DriverModel::Wddm)]).offer(&snapshot);
    assert_eq!(assigned(&offer)[0].1, [1003]);
    let reasons: Vec<String> = offer.skipped.iter().map(|s| s.reason.to_string()).collect();
    assert_eq!(
        reasons,
        [
            r"location path PCIROOT(0)#PCI(0100) is also that of the device `PCI\VEN_10DE\2&0`, so neither can be assigned to a container individually",
            r"location path pciroot(0)#pci(0100) is also that of the device `PCI\VEN_10DE\1&0`, so neither can be assigned to a container individually",
        ]
    );
    // The driver model legacy allocates a class.
    let offer = catalog([model(DriverModel::Legacy)]).offer(&snapshot);
    assert_eq!(assigned(&offer)[0].1, [1001, 1002, 1003]);
}
