//! Which resource a device belongs to.

use std::num::NonZeroU32;

use devices::{
    AllocationPolicy, Attribute, DeviceMatch, DriverModel, Offer, ResourceOrigin, ResourceRule,
};

use crate::hosts::{AMD, NVIDIA, catalog, gpu, host, model, npu, wddm, with_rules};

fn rule(name: &str, matches: DeviceMatch) -> ResourceRule {
    ResourceRule { name: name.parse().unwrap(), matches, replicas: None, allocation: None }
}

fn placed(offer: &Offer) -> Vec<(String, Vec<i64>)> {
    let luids = |r: &devices::ResourceOffer| r.devices.iter().map(|(d, _)| d.luid.0).collect();
    offer.resources.iter().map(|r| (r.spec.name.to_string(), luids(r))).collect()
}

#[test]
fn driver_models_share_out_the_devices() {
    let mut display_only = gpu(3, 0x1414);
    display_only.attributes = [Attribute::D3d11Graphics].into_iter().collect();
    let snapshot = host(vec![gpu(1, NVIDIA), npu(2), display_only]);
    let offer = catalog([model(DriverModel::Wddm), model(DriverModel::Mcdm)]).offer(&snapshot);
    assert_eq!(
        placed(&offer),
        [
            ("directx.microsoft.com/display".to_owned(), vec![1001]),
            ("directx.microsoft.com/compute".to_owned(), vec![1002]),
        ]
    );
    assert_eq!(
        offer.skipped[0].reason.to_string(),
        "it supports display but not compute, which none of the enabled driver models \
         (wddm, mcdm) offers"
    );
}

#[test]
fn the_first_rule_that_matches_claims_a_device_and_the_rest_stay_with_their_model() {
    let mut small = gpu(2, NVIDIA);
    small.dedicated_memory_mib = Some(8191);
    let mut silent = gpu(3, NVIDIA);
    silent.dedicated_memory_mib = None;
    let snapshot = host(vec![gpu(1, NVIDIA), small, silent, gpu(4, AMD), gpu(5, 0x8086)]);
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
        placed(&offer),
        [
            ("directx.microsoft.com/display".to_owned(), vec![1005]),
            ("nvidia.com/big".to_owned(), vec![1001]),
            ("nvidia.com/gpu".to_owned(), vec![1002, 1003]),
            ("amd.com/gpu".to_owned(), vec![1004]),
            ("intel.com/never".to_owned(), vec![]),
        ]
    );
    let idle: Vec<_> = offer.idle_rules.iter().map(|r| r.name.as_str()).collect();
    assert_eq!(idle, ["intel.com/never"]);
    let spec = &catalog.resources()[2];
    assert_eq!((spec.sharing.replicas.get(), spec.origin), (4, ResourceOrigin::Rule(1)));
    assert_eq!(spec.sharing.allocation, AllocationPolicy::Packed);
    assert_eq!(catalog.resources()[1].sharing.replicas.get(), 2);
}

#[test]
fn a_rule_that_two_models_share_makes_one_resource() {
    let rules = || vec![rule("intel.com/any", DeviceMatch::default())];
    let models = [DriverModel::Wddm, DriverModel::Mcdm].map(|m| with_rules(model(m), rules()));
    let offer = catalog(models).offer(&host(vec![npu(1), gpu(2, 0x8086)]));
    assert_eq!(placed(&offer)[2], ("intel.com/any".to_owned(), vec![1001, 1002]));
    assert!(offer.idle_rules.is_empty());
}

#[test]
fn a_device_without_location_path_is_offered_by_the_legacy_model_alone() {
    let mut lost = gpu(1, NVIDIA);
    lost.pnp.as_mut().unwrap().location_paths.clear();
    let snapshot = host(vec![lost]);
    let offer = catalog([wddm(1)]).offer(&snapshot);
    assert_eq!(
        offer.skipped[0].reason.to_string(),
        "Windows knows no location path for it, so no container can be given it alone"
    );
    let mut legacy = model(DriverModel::Legacy);
    legacy.match_name = Some("gPu".into());
    assert_eq!(placed(&catalog([legacy.clone()]).offer(&snapshot))[0].1, [1001]);
    legacy.match_name = Some("nvidia".into());
    let offer = catalog([legacy]).offer(&snapshot);
    assert_eq!(offer.skipped[0].reason.to_string(), "its description does not contain `nvidia`");
}
