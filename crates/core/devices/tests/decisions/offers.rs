//! Which resource a device is advertised under.

use std::num::NonZeroU32;

use devices::{
    AllocationPolicy, Catalog, DeviceMatch, DriverModel, Offer, ResourceOrigin, ResourceRule,
    SharedRequests,
};
use host::{Attribute, DeviceKind, LocationPath};

use crate::hosts::{
    AMD, NVIDIA, basic_adapter, catalog, gpu, host, indirect_display, mcdm_gpu, model, npu, wddm,
    with_rules,
};

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
        offer.not_advertised[0].reason.to_string(),
        "not matched by any enabled driver model (wddm, mcdm): adapter supports display but not \
         compute"
    );
}

/// With the hardware type alone it used to be neither display nor compute.
#[test]
fn a_gpu_without_a_display_is_advertised_for_compute() {
    let mut by_type = npu(2);
    by_type.attributes = [Attribute::Gpu].into_iter().collect();
    let snapshot = host(vec![gpu(1, NVIDIA), by_type, mcdm_gpu(3, NVIDIA)]);
    let offer = catalog([model(DriverModel::Wddm), model(DriverModel::Mcdm)]).offer(&snapshot);
    assert_eq!(assigned(&offer)[1].1, [1002, 1003], "{offer:?}");
}

/// One name for the GPUs of both driver models.
#[test]
fn a_rule_can_name_the_kind() {
    let of_kind = |kind| DeviceMatch { kind: Some(kind), ..DeviceMatch::default() };
    let rules = || {
        vec![
            rule("example.com/gpu", of_kind(DeviceKind::Gpu)),
            rule("example.com/npu", of_kind(DeviceKind::Npu)),
        ]
    };
    let models = [DriverModel::Wddm, DriverModel::Mcdm].map(|m| with_rules(model(m), rules()));
    let accelerator = mcdm_gpu(4, 0x1ED5);
    let snapshot = host(vec![gpu(1, NVIDIA), mcdm_gpu(2, NVIDIA), npu(3), accelerator]);
    assert_eq!(
        assigned(&catalog(models).offer(&snapshot)),
        [
            ("directx.microsoft.com/display".to_owned(), vec![]),
            ("directx.microsoft.com/compute".to_owned(), vec![1004]),
            ("example.com/gpu".to_owned(), vec![1001, 1002]),
            ("example.com/npu".to_owned(), vec![1003]),
        ]
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
                vendor: Some(host::Vendor::Nvidia),
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
    for &one in DriverModel::ALL {
        for &other in DriverModel::ALL {
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
        offer.not_advertised[0].reason.to_string(),
        "Windows reports no location path, so the device cannot be assigned to a container \
         individually"
    );
    let mut legacy = model(DriverModel::Legacy);
    legacy.match_name = Some("pU 1".into());
    assert_eq!(assigned(&catalog([legacy.clone()]).offer(&snapshot))[0].1, [1001]);
    legacy.match_name = Some("nvidia".into());
    let offer = catalog([legacy]).offer(&snapshot);
    assert_eq!(
        offer.not_advertised[0].reason.to_string(),
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
    let reasons: Vec<String> = offer.not_advertised.iter().map(|s| s.reason.to_string()).collect();
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

fn reasons(offer: &Offer) -> Vec<(i64, String)> {
    offer.not_advertised.iter().map(|s| (s.luid.0, s.reason.to_string())).collect()
}

/// `legacy` needs no location path, and takes whatever has the right name.
#[test]
fn no_driver_model_advertises_an_indirect_display() {
    let indirect = [None, Some("ROOT"), Some("SWD")];
    let mut adapters: Vec<_> = (1..).zip(indirect).map(|(n, e)| indirect_display(n, e)).collect();
    adapters.push(gpu(1, NVIDIA));
    let snapshot = host(adapters);
    let rules = vec![rule("nvidia.com/gpu", DeviceMatch::default())];
    let mut legacy = model(DriverModel::Legacy);
    legacy.match_name = Some("display".into());
    for (policy, luids) in [
        (wddm(1), &[1001][..]),
        (with_rules(wddm(1), rules), &[1001]),
        (model(DriverModel::Legacy), &[1001]),
        (legacy, &[]),
    ] {
        let offer = catalog([policy]).offer(&snapshot);
        let all: Vec<i64> = assigned(&offer).into_iter().flat_map(|(_, luids)| luids).collect();
        // The GPU stays in service although the displays have its location path.
        assert_eq!(all, luids);
        let basic = &reasons(&offer)[..3];
        let reason = "adapter is an indirect display, not a GPU".to_owned();
        assert_eq!(basic, [2001, 2002, 2003].map(|luid| (luid, reason.clone())));
    }
}

#[test]
fn a_basic_adapter_needs_a_rule_that_names_it() {
    let mut display_only = basic_adapter(2, 0x5353);
    display_only.attributes = [Attribute::D3d11Graphics].into_iter().collect();
    let mut at_the_gpu = basic_adapter(3, 0x008C);
    at_the_gpu.pnp.as_mut().unwrap().location_paths =
        vec![LocationPath::new("PCIROOT(0)#PCI(0400)")];
    let adapters = vec![basic_adapter(1, 0x008C), display_only, at_the_gpu, gpu(4, NVIDIA)];
    let snapshot = host(adapters);
    let by_pci =
        |id: &str| DeviceMatch { pci: Some(id.parse().unwrap()), ..DeviceMatch::default() };
    let microsoft = DeviceMatch { vendor: Some(host::Vendor::Microsoft), ..DeviceMatch::default() };
    let reason = "adapter is one of Microsoft's basic adapters, not a GPU; only a rule of \
                  `resources` with its pciId advertises it";
    // Conditions that also match real GPUs do not name a basic adapter.
    for matches in [by_pci("1414:008e"), by_pci("1414:*"), microsoft, DeviceMatch::default()] {
        for one in [DriverModel::Wddm, DriverModel::Legacy] {
            let policy = with_rules(model(one), vec![rule("a.b/c", matches.clone())]);
            let offer = catalog([policy]).offer(&snapshot);
            let all: Vec<i64> = assigned(&offer).into_iter().flat_map(|(_, l)| l).collect();
            assert_eq!(all, [1004], "{one} {matches:?}");
            let expected = [1001, 1002, 1003].map(|luid| (luid, reason.to_owned()));
            assert_eq!(reasons(&offer), expected, "{one} {matches:?}");
        }
    }
    // A rule before it does not claim it.
    let rules =
        || vec![rule("a.b/any", DeviceMatch::default()), rule("a.b/basic", by_pci("1414:008C"))];
    let offer = catalog([with_rules(wddm(1), rules())]).offer(&snapshot);
    assert_eq!(
        assigned(&offer)[1..],
        [("a.b/any".to_owned(), vec![1004]), ("a.b/basic".to_owned(), vec![1001])]
    );
    // The one with the location path of the GPU does not take the GPU out of service.
    let [hyper_v, same_path] = &reasons(&offer)[..] else { panic!("{:?}", reasons(&offer)) };
    assert_eq!(hyper_v, &(1002, reason.to_owned()));
    assert!(same_path.1.contains("is also that of the device"), "{same_path:?}");
    // The plugin of 2019 has no rules.
    let legacy = with_rules(model(DriverModel::Legacy), rules());
    let offer = catalog([legacy]).offer(&snapshot);
    assert_eq!(reasons(&offer).len(), 3);
}

/// The resource of each adapter that is not advertised, and what advertises it there.
fn excluded(offer: &Offer) -> Vec<(i64, Option<String>, Option<&'static str>)> {
    let adapters = offer.not_advertised.iter();
    adapters
        .map(|adapter| {
            let resource = adapter.resource.as_ref().map(ToString::to_string);
            (adapter.luid.0, resource, adapter.reason.configuration_fix(&offer.host))
        })
        .collect()
}

#[test]
fn an_adapter_that_is_not_advertised_has_the_resource_that_would_advertise_it() {
    let mut integrated = gpu(1, 0x8086);
    integrated.integrated = true;
    let mut detachable = gpu(2, NVIDIA);
    detachable.detachable = true;
    let mut no_path = gpu(3, AMD);
    no_path.pnp.as_mut().unwrap().location_paths.clear();
    let mut software = gpu(4, 0x1414);
    software.hardware = false;
    let nvidia = DeviceMatch { vendor: Some(host::Vendor::Nvidia), ..DeviceMatch::default() };
    let snapshot = host(vec![integrated, detachable, no_path, software, npu(5)]);
    let policy = || with_rules(wddm(1), vec![rule("nvidia.com/gpu", nvidia.clone())]);
    let offer = catalog([policy(), model(DriverModel::Mcdm)]).offer(&snapshot);
    let display = Some("directx.microsoft.com/display".to_owned());
    assert_eq!(
        excluded(&offer),
        [
            (1001, display.clone(), Some("set `includeIntegrated: true`")),
            (1002, Some("nvidia.com/gpu".to_owned()), Some("set `includeDetachable: true`")),
            (1003, display, None),
            (1004, None, None),
        ]
    );

    // A device of a driver model that is not enabled belongs to the rule that matches it.
    let rules = with_rules(model(DriverModel::Mcdm), vec![rule("nvidia.com/gpu", nvidia.clone())]);
    let mut display_only = gpu(3, NVIDIA);
    display_only.attributes = [Attribute::D3d11Graphics].into_iter().collect();
    let snapshot = host(vec![gpu(1, AMD), gpu(2, NVIDIA), display_only]);
    let offer = catalog([rules]).offer(&snapshot);
    let enable = Some("enable the driver model wddm (`--driver-model wddm`)");
    let nvidia = Some("nvidia.com/gpu".to_owned());
    assert_eq!(
        excluded(&offer),
        [(1001, None, enable), (1002, nvidia, enable), (1003, None, None)]
    );
}

#[test]
fn a_condition_that_a_device_does_not_meet_is_named_by_its_key() {
    let wanted = DeviceMatch {
        vendor: Some(host::Vendor::Nvidia),
        kind: Some(DeviceKind::Npu),
        model: Some(DriverModel::Mcdm),
        pci: Some("1002:*".parse().unwrap()),
        min_memory_mib: Some(1 << 20),
        description: Some("^Tesla".parse().unwrap()),
        location: Some("PCIROOT(7)*".parse().unwrap()),
    };
    let snapshot = host(vec![gpu(1, AMD)]);
    let devices = devices::discover(&snapshot, devices::Criteria::ALL).devices;
    let unmet = wanted.unmet(&devices[0], DriverModel::Wddm);
    let keys = ["vendor", "kind", "driverModel", "minMemoryMiB", "description", "locationPath"];
    assert_eq!(unmet, keys);
    assert!(DeviceMatch::default().unmet(&devices[0], DriverModel::Wddm).is_empty());
}
