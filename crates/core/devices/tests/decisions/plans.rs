//! What a container gets.

use std::collections::BTreeMap;
use std::sync::Arc;

use devices::{
    AdditionalMount, ContainerPolicy, Destination, DeviceClass, DeviceGrant, DriverModel,
    ModelPolicy, MountOutcome, MultiDevice, NoMountsReason, Plan, PlanError, PlanWarning,
    RuntimeFiles, RuntimeMounts, plan,
};
use host::{FileName, HostSnapshot, StoreFiles, StorePattern, Vendor, Wow64};

use crate::hosts::{AMD, NVIDIA, gpu, host, model, resource, server, several, wddm};

const FIRST: &str = r"PCI\VEN_10DE\1&0\0";
const SECOND: &str = r"PCI\VEN_10DE\2&0\0";

fn planned(policy: ModelPolicy, on: &HostSnapshot, ids: &[&str]) -> Result<Plan, PlanError> {
    let never = |path: &str| panic!("an inventory needs no disk: {path}");
    plan(&resource(policy, on), ids.iter().copied(), &on.host, &never)
}

fn with(change: impl FnOnce(&mut ContainerPolicy)) -> ModelPolicy {
    let mut container = ContainerPolicy::default();
    change(&mut container);
    ModelPolicy { container: Arc::new(container), ..wddm(2) }
}

fn destinations(plan: &Plan) -> Vec<&str> {
    plan.mounts.mounted().map(|m| m.container_path.as_str()).collect()
}

#[test]
fn one_device_is_assigned_by_its_location_path() {
    let plan = planned(wddm(1), &host(vec![gpu(1, AMD)]), &[r"PCI\VEN_1002\1&0\0"]).unwrap();
    assert_eq!(plan.device.host_path(), "vpci-location-path://PCIROOT(0)#PCI(0100)");
    assert_eq!(
        destinations(&plan),
        [r"C:\Windows\System32\runtime.dll", r"C:\Windows\SysWOW64\runtime.dll"]
    );
    assert_eq!(
        plan.mounts.files[0].file.host_path,
        r"C:\Windows\System32\DriverStore\FileRepository\drv_1002.inf\runtime64.dll"
    );
    assert!(plan.warnings.is_empty());
}

#[test]
fn two_replicas_of_one_device_are_one_device_with_a_warning() {
    let ids = [FIRST, r"PCI\VEN_10DE\1&0\1"];
    let plan = planned(wddm(2), &host(vec![gpu(1, NVIDIA)]), &ids).unwrap();
    assert!(matches!(plan.device, DeviceGrant::Location(_)));
    assert_eq!(plan.envs["DIRECTX_VISIBLE_DEVICES"], "1001");
    let warnings: Vec<String> = plan.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [r"2 of the container's replicas belong to the same device `PCI\VEN_10DE\1&0`"]
    );
}

/// The original plugin returned two device entries. The kubelet kept only one, without a message.
#[test]
fn several_devices_are_assigned_as_the_class_with_a_warning_or_refused() {
    let two = host(vec![gpu(1, NVIDIA), gpu(2, NVIDIA)]);
    let plan = planned(wddm(1), &two, &[SECOND, FIRST]).unwrap();
    assert_eq!(plan.device.host_path(), "class/5B45201D-F2F2-4F3B-85BB-30FF1F953599");
    assert_eq!(plan.warnings, [several(2)]);
    assert_eq!(plan.envs["DIRECTX_VISIBLE_DEVICES"], "1001,1002");
    assert_eq!(plan.envs["DIRECTX_DEVICE_1_NAME"], "GPU 2");
    // The kubelet sends device IDs in random order; the container must not depend on it.
    assert_eq!(planned(wddm(1), &two, &[FIRST, SECOND]).unwrap(), plan);
    let refused = planned(with(|c| c.multi_device = MultiDevice::Reject), &two, &[FIRST, SECOND]);
    assert_eq!(
        refused.unwrap_err().to_string(),
        r"requested 2 devices; Windows supports one per container and multiDevice is reject: `PCI\VEN_10DE\1&0`, `PCI\VEN_10DE\2&0`"
    );
}

#[test]
fn hosts_before_build_18362_get_the_class() {
    let mut old = host(vec![gpu(1, NVIDIA)]);
    for (facts, old_host) in [
        (server("10.0.17763.4010", "2.1"), true),
        (server("10.0.18361.1", "2.2"), true),
        (server("10.0.18362.1", "2.1"), false),
        (server("10.0.26100.1", "3.0"), false),
        (host::HostFacts::default(), false),
    ] {
        old.host = facts;
        let plan = planned(wddm(1), &old, &[FIRST]).unwrap();
        let class = DeviceClass::DISPLAY_ADAPTER;
        assert_eq!(plan.device == DeviceGrant::Class(class), old_host, "{:?}", old.host);
        assert_eq!(plan.warnings == [PlanWarning::NoLocationPathSupport(class)], old_host);
    }
}

#[test]
fn runtime_mounts_decide_which_hosts_get_mounts() {
    let mut snapshot = host(vec![gpu(1, AMD)]);
    let policy = |mounts| with(|c| c.runtime_mounts = mounts);
    for (build, mounts, count, why) in [
        ("10.0.26099.1", RuntimeMounts::Auto, 2, None),
        ("10.0.26100.1", RuntimeMounts::Auto, 0, Some(NoMountsReason::MountedByWindows)),
        ("10.0.26100.1", RuntimeMounts::Always, 2, None),
        ("10.0.20348.1", RuntimeMounts::Never, 0, Some(NoMountsReason::Never)),
    ] {
        snapshot.host = server(build, "2.5");
        let plan = planned(policy(mounts), &snapshot, &[r"PCI\VEN_1002\1&0\0"]).unwrap();
        assert_eq!(destinations(&plan).len(), count, "{build} {mounts:?}");
        assert_eq!(plan.mounts.devices_without_mounts.first().map(|(_, why)| *why), why);
    }
}

#[test]
fn registry_files_precede_additional_mounts_and_these_precede_the_defaults() {
    let mount = |source: &str, destination: &str| AdditionalMount {
        source: source.parse::<StorePattern>().unwrap(),
        destination: destination.parse::<Destination>().unwrap(),
    };
    let policy = with(|c| {
        c.additional.insert(
            Vendor::Nvidia,
            vec![mount("mine.exe", "NVIDIA-SMI.exe"), mount("other.dll", "Runtime.dll")],
        );
        c.additional.insert(Vendor::Amd, vec![mount("amd.dll", "amd.dll")]);
        c.exclude_mounts = vec!["VULKANINFO.EXE".parse::<FileName>().unwrap()];
    });
    let plan = planned(policy, &host(vec![gpu(1, NVIDIA)]), &[FIRST]).unwrap();
    let fates: Vec<_> = plan
        .mounts
        .files
        .iter()
        .map(|f| {
            let name = f.file.host_path.rsplit('\\').next().unwrap();
            let fate = match &f.outcome {
                MountOutcome::DestinationTaken { by } => format!("shadowed by {}", by.origin),
                other => format!("{other:?}"),
            };
            format!("{name}: {fate}")
        })
        .collect();
    assert_eq!(
        fates,
        [
            "runtime64.dll: Mounted",
            "mine.exe: Mounted",
            "other.dll: shadowed by the driver",
            "nvidia-smi.exe: shadowed by the configuration",
            "vulkaninfo-x64.exe: Excluded",
            "runtime32.dll: Mounted",
            "vulkaninfo-x86.exe: Excluded",
        ]
    );
}

#[test]
fn a_missing_file_does_not_take_its_destination() {
    let mut adapter = gpu(1, AMD);
    adapter.driver_store.as_mut().unwrap().files =
        StoreFiles::Listed(["late.dll".to_owned(), "runtime32.dll".to_owned()].into());
    let policy = with(|c| {
        let late = AdditionalMount {
            source: "late.dll".parse::<StorePattern>().unwrap(),
            destination: "runtime.dll".parse::<Destination>().unwrap(),
        };
        c.additional.insert(Vendor::Amd, vec![late]);
    });
    let plan = planned(policy, &host(vec![adapter]), &[r"PCI\VEN_1002\1&0\0"]).unwrap();
    let fates: Vec<_> = plan.mounts.files.iter().map(|f| &f.outcome).collect();
    assert_eq!(fates, [&MountOutcome::Missing, &MountOutcome::Mounted, &MountOutcome::Mounted]);
}

/// In the original plugin two drivers with the same destination collided silently.
#[test]
fn the_first_device_wins_a_destination_that_two_drivers_use() {
    let two = host(vec![gpu(1, NVIDIA), gpu(2, AMD), gpu(3, NVIDIA)]);
    let ids = [FIRST, r"PCI\VEN_1002\2&0\0", r"PCI\VEN_10DE\3&0\0"];
    let plan = planned(wddm(1), &two, &ids).unwrap();
    let shadowed: Vec<_> = plan
        .mounts
        .files
        .iter()
        .filter_map(|f| match &f.outcome {
            MountOutcome::DestinationTaken { by } => {
                Some((f.file.host_path.as_str(), by.host_path.as_str()))
            }
            _ => None,
        })
        .collect();
    let store = r"C:\Windows\System32\DriverStore\FileRepository";
    let path = |driver: &str, file: &str| format!(r"{store}\{driver}.inf\{file}");
    // The third device names the same files as the first one, which is not a collision.
    assert_eq!(shadowed.len(), 2);
    assert_eq!(shadowed[0].0, path("drv_1002", "runtime64.dll"));
    assert_eq!(shadowed[0].1, path("drv_10de", "runtime64.dll"));
}

#[test]
fn the_disk_of_a_live_host_is_checked_at_allocation() {
    let mut adapter = gpu(1, AMD);
    adapter.driver_store.as_mut().unwrap().files = StoreFiles::OnDisk;
    let snapshot = host(vec![adapter]);
    let devices = resource(wddm(1), &snapshot);
    let exists = |path: &str| path.ends_with("runtime64.dll");
    let plan = plan(&devices, [r"PCI\VEN_1002\1&0\0"], &snapshot.host, &exists).unwrap();
    assert_eq!(destinations(&plan), [r"C:\Windows\System32\runtime.dll"]);
}

/// The device itself is usable.
#[test]
fn a_driver_store_folder_elsewhere_leaves_the_device_without_files() {
    for folder in
        [r"\\server\share", r"C:\Windows\System32\DriverStore\FileRepository\..\..\config"]
    {
        let mut adapter = gpu(1, NVIDIA);
        let store = adapter.driver_store.as_mut().unwrap();
        folder.clone_into(&mut store.path);
        store.files = StoreFiles::OnDisk;
        let policy = with(|c| {
            let extra = AdditionalMount {
                source: "extra.dll".parse::<StorePattern>().unwrap(),
                destination: "extra.dll".parse::<Destination>().unwrap(),
            };
            c.additional.insert(Vendor::Nvidia, vec![extra]);
        });
        let snapshot = host(vec![adapter]);
        let devices = resource(policy, &snapshot);
        let plan = plan(&devices, [FIRST], &snapshot.host, &|_| true).unwrap();
        assert!(matches!(plan.device, DeviceGrant::Location(_)));
        assert_eq!(plan.mounts.files, []);
        let (_, reason) = plan.mounts.devices_without_mounts[0];
        assert_eq!(reason, NoMountsReason::DriverStoreOutside);
        let device = &plan.devices[0];
        assert_eq!(*device.runtime_files, RuntimeFiles::default());
        assert!(device.rejected_store().unwrap().to_string().contains(folder));
    }
}

#[test]
fn files_for_32_bit_programs_require_a_host_that_runs_them() {
    let mut snapshot = host(vec![gpu(1, AMD)]);
    snapshot.host.wow64 = Wow64::Absent;
    let plan = planned(wddm(1), &snapshot, &[r"PCI\VEN_1002\1&0\0"]).unwrap();
    assert_eq!(destinations(&plan), [r"C:\Windows\System32\runtime.dll"]);
}

/// Base images without 32-bit programs have no `SysWOW64`.
#[test]
fn files_for_32_bit_programs_can_be_omitted() {
    let extra = AdditionalMount {
        source: "extra.dll".parse::<StorePattern>().unwrap(),
        destination: "extra32.dll".parse::<Destination>().unwrap(),
    };
    let policy = with(|c| {
        c.omit_wow64 = true;
        c.additional_wow64.insert(Vendor::Nvidia, vec![extra]);
    });
    let plan = planned(policy, &host(vec![gpu(1, NVIDIA)]), &[FIRST]).unwrap();
    let wow64: Vec<&str> =
        destinations(&plan).into_iter().filter(|path| path.contains("SysWOW64")).collect();
    assert_eq!(wow64, [r"C:\Windows\SysWOW64\extra32.dll"], "what the user names");
}

#[test]
fn the_legacy_model_matches_the_plugin_of_2019() {
    let plan = planned(model(DriverModel::Legacy), &host(vec![gpu(1, NVIDIA)]), &[FIRST]).unwrap();
    assert_eq!(plan.device, DeviceGrant::Class(DeviceClass::DISPLAY_ADAPTER));
    assert_eq!(destinations(&plan).len(), 0);
    assert_eq!(plan.envs["DIRECTX_GPU_Name"], "GPU 1");
    assert_eq!(plan.envs["DIRECTX_GPU_PNPDeviceID"], r"PCI\VEN_10DE\1&0");
    assert_eq!(plan.envs["DIRECTX_GPU_DriverVersion"], "31.15.14.1");
    assert!(plan.warnings.is_empty());
}

#[test]
fn environment_hints_name_the_devices_and_can_be_omitted() {
    let one = host(vec![gpu(1, NVIDIA)]);
    let plan = planned(wddm(1), &one, &[FIRST]).unwrap();
    let expected = [
        ("DIRECTX_DEVICE_0_DRIVER_VERSION", "31.15.14.1"),
        ("DIRECTX_DEVICE_0_LOCATION_PATH", "PCIROOT(0)#PCI(0100)"),
        ("DIRECTX_DEVICE_0_LUID", "1001"),
        ("DIRECTX_DEVICE_0_NAME", "GPU 1"),
        ("DIRECTX_DEVICE_0_PNP_ID", r"PCI\VEN_10DE\1&0"),
        ("DIRECTX_DEVICE_0_VENDOR", "nvidia"),
        ("DIRECTX_VISIBLE_DEVICES", "1001"),
        ("DIRECTX_VISIBLE_DEVICES_DIRECTX_MICROSOFT_COM_DISPLAY", "1001"),
    ];
    let expected: BTreeMap<_, _> =
        expected.map(|(k, v)| (k.to_owned(), v.to_owned())).into_iter().collect();
    assert_eq!(plan.envs, expected);
    assert!(
        planned(with(|c| c.omit_environment_hints = true), &one, &[FIRST]).unwrap().envs.is_empty()
    );
}

#[test]
fn cuda_devices_are_named_if_all_uuids_are_known() {
    let mut snapshot = host(vec![gpu(1, NVIDIA), gpu(2, AMD), gpu(3, NVIDIA)]);
    let amd = r"PCI\VEN_1002\2&0\0";
    let last = r"PCI\VEN_10DE\3&0\0";
    let cuda = |snapshot: &HostSnapshot, ids: &[&str]| {
        planned(wddm(1), snapshot, ids).unwrap().envs.get("CUDA_VISIBLE_DEVICES").cloned()
    };
    assert_eq!(cuda(&snapshot, &[FIRST]), None);
    snapshot.adapters[0].nvidia.uuid = Some("GPU-1".to_owned());
    assert_eq!(cuda(&snapshot, &[FIRST]).as_deref(), Some("GPU-1"));
    assert_eq!(cuda(&snapshot, &[FIRST, amd]).as_deref(), Some("GPU-1"));
    assert_eq!(cuda(&snapshot, &[amd]), None);
    assert_eq!(cuda(&snapshot, &[FIRST, last]), None);
    snapshot.adapters[2].nvidia.uuid = Some("GPU-3".to_owned());
    assert_eq!(cuda(&snapshot, &[FIRST, last]).as_deref(), Some("GPU-1,GPU-3"));
}

#[test]
fn refusals_name_the_device_id() {
    let mut unhealthy = gpu(2, NVIDIA);
    unhealthy.pnp.as_mut().unwrap().problem_code = 43;
    let two = host(vec![gpu(1, NVIDIA), unhealthy]);
    for (ids, message) in [
        (vec![], "the request contains no device IDs".to_owned()),
        (
            vec!["nonsense"],
            "malformed device ID `nonsense` (expected a PnP instance ID, a backslash and a \
             replica number)"
                .to_owned(),
        ),
        (
            vec![FIRST, r"PCI\NO\0"],
            r"unknown device ID `PCI\NO\0`: resource directx.microsoft.com/display has no such device".to_owned(),
        ),
        (
            vec![r"PCI\VEN_10DE\1&0\7"],
            r"replica number of device ID `PCI\VEN_10DE\1&0\7` is out of range: the device has 1 replicas".to_owned(),
        ),
        (
            vec![SECOND],
            format!("device ID `{SECOND}` belongs to an unhealthy device: Windows reports problem code 43"),
        ),
    ] {
        assert_eq!(planned(wddm(1), &two, &ids).unwrap_err().to_string(), message);
    }
}
