//! Which adapters become devices.

use devices::{Criteria, Filter, Selection, discover};
use host::{AdapterWarning, Attribute, DeviceKind, Luid, Vendor, WarningEffect};

use crate::hosts::{AMD, NVIDIA, basic_adapter, gpu, host, indirect_display, npu};

fn everything() -> Criteria {
    Criteria::ALL
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
        Attribute::Gpu,
    ] {
        let mut adapter = npu(1);
        adapter.attributes = [attribute].into_iter().collect();
        let device = &discover(&host(vec![adapter]), everything()).devices[0];
        assert!(device.compute && !device.display, "{attribute:?}");
    }
}

/// The graphics of a server's management controller, say.
#[test]
fn the_hardware_type_gpu_does_not_make_a_display_compute() {
    let mut adapter = gpu(1, 0x1A03);
    adapter.attributes = [Attribute::D3d11Graphics, Attribute::Gpu].into_iter().collect();
    let device = &discover(&host(vec![adapter]), everything()).devices[0];
    assert!(device.display && !device.compute);
}

/// Nothing else says that it computes, and the management controller of a server does not.
#[test]
fn the_hardware_type_gpu_is_compute_only_of_vendors_whose_gpus_compute() {
    for (vendor, computes) in [
        (AMD, true),
        (0x8086, true),
        (NVIDIA, true),
        (0x5143, true),
        (0x4D4F_4351, true),
        (0x1A03, false),
        (0x102B, false),
        (0x1414, false),
    ] {
        let mut adapter = gpu(1, vendor);
        adapter.attributes = [Attribute::Gpu].into_iter().collect();
        let device = &discover(&host(vec![adapter]), everything()).devices[0];
        assert_eq!((device.compute, device.display), (computes, false), "{vendor:04x}");
    }
}

#[test]
fn the_kind_follows_from_the_hardware_type_then_from_display_and_vendor() {
    use Attribute::{
        ComputeAccelerator, D3d11Graphics, D3d12CoreCompute, D3d12GenericMl, D3d12Graphics, Gpu,
        MediaAccelerator, Npu,
    };
    const INTEL: u32 = 0x8086;
    let table: [(&[Attribute], u32, DeviceKind); 16] = [
        (&[Gpu], INTEL, DeviceKind::Gpu),
        (&[D3d12CoreCompute, Gpu], NVIDIA, DeviceKind::Gpu),
        (&[D3d12GenericMl, Npu], INTEL, DeviceKind::Npu),
        (&[Npu], 0x1ED5, DeviceKind::Npu),
        (&[ComputeAccelerator], INTEL, DeviceKind::Accelerator),
        (&[MediaAccelerator], AMD, DeviceKind::Accelerator),
        (&[D3d11Graphics], 0x1A03, DeviceKind::Gpu),
        (&[D3d12Graphics], INTEL, DeviceKind::Gpu),
        (&[D3d12CoreCompute], NVIDIA, DeviceKind::Gpu),
        (&[D3d12CoreCompute, ComputeAccelerator], NVIDIA, DeviceKind::Gpu),
        (&[D3d12CoreCompute], INTEL, DeviceKind::Npu),
        (&[D3d12CoreCompute], AMD, DeviceKind::Npu),
        (&[D3d12GenericMl], 0x5143, DeviceKind::Npu),
        (&[D3d12GenericMl], 0x4D4F_4351, DeviceKind::Npu),
        (&[D3d12CoreCompute], 0x1ED5, DeviceKind::Accelerator),
        (&[D3d12CoreCompute], 0x1414, DeviceKind::Accelerator),
    ];
    for (attributes, vendor, expected) in table {
        let mut adapter = gpu(1, vendor);
        adapter.attributes = attributes.iter().copied().collect();
        assert_eq!(DeviceKind::of(&adapter), expected, "{attributes:?} of {vendor:04x}");
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
        effect: WarningEffect::Unreadable,
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

/// It has the name, the hardware ID and the attributes of the GPU that renders for it.
#[test]
fn an_indirect_display_is_skipped_by_its_own_name() {
    for enumerator in [None, Some("ROOT"), Some("swd")] {
        let with_device = indirect_display(1, enumerator);
        let adapters = vec![with_device.clone(), gpu(1, NVIDIA)];
        let selection = discover(&host(adapters), everything());
        assert_eq!(selection.devices.len(), 1, "{enumerator:?}");
        assert_eq!(selection.devices[0].luid, Luid(1001));
        assert_eq!(reasons(&selection), ["2001: adapter is an indirect display, not a GPU"]);
        assert_eq!(selection.skipped[0].description, "Virtual Display Adapter");
    }
    for enumerator in ["ROOT", "SWD"] {
        let mut by_type = indirect_display(1, Some(enumerator));
        by_type.attributes = [Attribute::Gpu].into_iter().collect();
        let selection = discover(&host(vec![by_type]), everything());
        assert_eq!(reasons(&selection), ["2001: adapter is an indirect display, not a GPU"]);
    }
    let mut without_device = indirect_display(1, None);
    without_device.pnp = None;
    let selection = discover(&host(vec![without_device]), everything());
    assert_eq!(reasons(&selection), ["2001: adapter is an indirect display, not a GPU"]);
    assert_eq!(selection.skipped[0].description, "GPU 1");
}

/// Their IDs begin with none of the enumerators of software. An NPU is not a display, whatever lists
/// it.
#[test]
fn gpus_of_virtual_machines_and_of_processors_are_no_indirect_displays() {
    let ids = [
        r"PCI\VEN_1414&DEV_008E&SUBSYS_00000000&REV_00\5&3A1CC9D5&0&0",
        r"ACPI\QCOM0D51\2&DABA3FF&0",
        r"VMBUS\{44C4F61D-4444-4400-9D52-802E27EDE19F}\{1}",
        r"PCI\VEN_10DE&DEV_1EB8\ROOT",
    ];
    let adapter = |(n, id): (i64, &str)| {
        let mut adapter = gpu(n, NVIDIA);
        adapter.pnp.as_mut().unwrap().id = host::PnpId::new(id);
        adapter
    };
    let mut adapters: Vec<_> = (1..).zip(ids).map(adapter).collect();
    let mut npu = npu(5);
    npu.pnp.as_mut().unwrap().id = host::PnpId::new(r"ROOT\COMPUTE\0000");
    adapters.push(npu);
    let selection = discover(&host(adapters), everything());
    assert_eq!((selection.devices.len(), reasons(&selection)), (5, vec![]));
}

#[test]
fn basic_adapters_are_included_only_on_request() {
    let mut basic_render = basic_adapter(1, 0x008C);
    basic_render.pnp.as_mut().unwrap().id = host::PnpId::new(r"ROOT\BASICRENDER\0000");
    let snapshot = host(vec![basic_render, gpu(2, 0x1414), basic_adapter(3, 0x5353)]);
    let selection = discover(&snapshot, everything());
    assert_eq!(selection.devices.len(), 1);
    let reason = "adapter is one of Microsoft's basic adapters, not a GPU; only a rule of \
                  `resources` with its pciId advertises it";
    assert_eq!(reasons(&selection), [format!("1001: {reason}"), format!("1003: {reason}")]);
    let all = Criteria { include_basic: true, ..everything() };
    let selection = discover(&snapshot, all);
    assert_eq!((selection.devices.len(), selection.skipped.len()), (3, 0));
    let mut without_device = basic_adapter(1, 0x008C);
    without_device.pnp = None;
    let selection = discover(&host(vec![without_device]), all);
    assert_eq!(reasons(&selection), [format!("1001: {reason}")]);
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
