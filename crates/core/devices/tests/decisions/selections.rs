//! Which adapters become devices.

use devices::{
    AdapterWarning, Attribute, Criteria, Filter, Luid, Selection, Vendor, WarningEffect, discover,
};

use crate::hosts::{AMD, NVIDIA, gpu, host, npu};

fn everything() -> Criteria {
    Criteria { filter: Filter::All, include_integrated: true, include_detachable: true }
}

fn reasons(selection: &Selection) -> Vec<String> {
    selection.skipped.iter().map(|s| format!("{}: {}", s.luid, s.reason)).collect()
}

/// The original plugin read compute support only from the graphics attribute.
#[test]
fn a_compute_only_device_supports_compute() {
    for attribute in [
        Attribute::D3d12CoreCompute,
        Attribute::D3d12GenericMl,
        Attribute::Npu,
        Attribute::ComputeAccelerator,
    ] {
        let mut adapter = npu(1);
        adapter.attributes = [attribute].into_iter().collect();
        let device = &discover(&host(vec![adapter]), everything()).devices[0];
        assert!(device.compute && !device.display, "{attribute:?}");
    }
}

/// In the original plugin one broken device made discovery fail.
#[test]
fn a_broken_adapter_does_not_hide_the_others() {
    let mut software = gpu(1, 0x1414);
    software.hardware = false;
    let mut orphan = gpu(2, NVIDIA);
    orphan.pnp = None;
    let mut twin = gpu(3, NVIDIA);
    twin.luid = Luid(7);
    let mut bare = gpu(4, NVIDIA);
    bare.driver_store = None;
    let mut snapshot = host(vec![software, orphan, gpu(3, NVIDIA), twin, bare]);
    snapshot.warnings.push(AdapterWarning {
        luid: Luid(8),
        text: "the driver is being replaced".into(),
        effect: WarningEffect::Skipped,
    });
    let selection = discover(&snapshot, everything());
    let luids: Vec<i64> = selection.devices.iter().map(|d| d.luid.0).collect();
    assert_eq!(luids, [1003, 1004]);
    assert_eq!(
        reasons(&selection),
        [
            "1001: software adapters are not supported",
            "1002: no PnP device has the LUID of the adapter",
            "7: PnP device already belongs to the adapter with LUID 1003",
            "8: the driver is being replaced",
        ]
    );
}

/// The original plugin matched vendors on free text, so this manufacturer never matched `amd`.
#[test]
fn the_vendor_comes_from_the_hardware_id() {
    let device = &discover(&host(vec![gpu(1, AMD)]), everything()).devices[0];
    assert_eq!(device.vendor, Vendor::Amd);
    assert_eq!(device.manufacturer, "Advanced Micro Devices, Inc.");
}

#[test]
fn integrated_and_detachable_devices_can_be_excluded() {
    let mut integrated = gpu(1, 0x8086);
    integrated.integrated = true;
    let mut detachable = gpu(2, NVIDIA);
    detachable.detachable = true;
    let snapshot = host(vec![integrated, detachable]);
    assert_eq!(discover(&snapshot, everything()).devices.len(), 2);
    let neither = Criteria { include_integrated: false, include_detachable: false, ..everything() };
    assert_eq!(
        reasons(&discover(&snapshot, neither)),
        [
            "1001: adapter is integrated and includeIntegrated is false",
            "1002: adapter is detachable and includeDetachable is false",
        ]
    );
}

#[test]
fn filters_select_by_support() {
    let mut display_only = gpu(1, 0x1414);
    display_only.attributes = [Attribute::D3d11Graphics].into_iter().collect();
    let mut neither = gpu(4, NVIDIA);
    neither.attributes = [Attribute::MediaAccelerator].into_iter().collect();
    let snapshot = host(vec![display_only, gpu(2, NVIDIA), npu(3), neither]);
    for (filter, expected) in [
        (Filter::All, vec![1001, 1002, 1003, 1004]),
        (Filter::Display, vec![1001, 1002]),
        (Filter::Compute, vec![1002, 1003]),
        (Filter::DisplayOnly, vec![1001]),
        (Filter::ComputeOnly, vec![1003]),
        (Filter::DisplayAndCompute, vec![1002]),
    ] {
        let selection = discover(&snapshot, Criteria { filter, ..everything() });
        let luids: Vec<i64> = selection.devices.iter().map(|d| d.luid.0).collect();
        assert_eq!(luids, expected, "{filter}");
        assert_eq!(filter.to_string().parse(), Ok(filter));
        assert_eq!(Filter::from_repr(filter as i32), Some(filter));
    }
    assert_eq!(Filter::from_repr(6), None);
    assert!("gpu".parse::<Filter>().is_err());
}
