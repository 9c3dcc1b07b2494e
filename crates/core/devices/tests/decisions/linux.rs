//! Linux hosts with `/dev/dxg`.

use std::sync::Arc;

use devices::{
    Adapter, AdapterWarning, ContainerPolicy, DXG_FOLDERS, DeviceGrant, DeviceKind, DeviceMatch,
    DriverModel, Health, HostFacts, HostSnapshot, LAUNCHER_FILES, Luid, ModelPolicy, MultiDevice,
    NotAdvertisedReason, Offer, Plan, PlanError, Platform, PnpId, Remedy, ResourceRule,
    RuntimeMounts, StoreFiles, UnhealthyReason, Vendor, Visibility, WarningEffect,
    dxg_driver_folder, plan,
};

use super::hosts::{AMD, NVIDIA, catalog, gpu, mcdm_gpu, model, npu, resource, wddm, with_rules};

const INTEL: u32 = 0x8086;

/// Adapter number `n`, whose PCI bus is `bus`.
fn adapter(n: i64, vendor: u32, bus: u32) -> Adapter {
    let mut adapter = gpu(n, vendor);
    let pnp = adapter.pnp.as_mut().unwrap();
    pnp.id = PnpId::new(format!(r"PCI\VEN_{vendor:04X}&DEV_{n:04X}\{bus:02X}.00.0"));
    pnp.location_paths.clear();
    adapter.driver_store.as_mut().unwrap().copy_to_vm.clear();
    adapter
}

fn linux(adapters: Vec<Adapter>) -> HostSnapshot {
    let host = HostFacts { platform: Platform::LinuxDxg, ..HostFacts::default() };
    HostSnapshot { host, adapters, ..HostSnapshot::default() }
}

fn replica(n: i64, vendor: u32, bus: u32) -> String {
    format!(r"PCI\VEN_{vendor:04X}&DEV_{n:04X}\{bus:02X}.00.0\0")
}

fn planned(policy: ModelPolicy, host: &HostSnapshot, ids: &[String]) -> Result<Plan, PlanError> {
    let resource = resource(policy, host);
    plan(&resource, ids.iter().map(String::as_str), &host.host, &|_| false)
}

fn with(change: impl FnOnce(&mut ContainerPolicy)) -> ModelPolicy {
    let mut container = ContainerPolicy::default();
    change(&mut container);
    ModelPolicy { container: Arc::new(container), ..wddm(1) }
}

fn mounts(plan: &Plan) -> Vec<(&str, &str)> {
    plan.mounts.mounted().map(|m| (m.host_path.as_str(), m.container_path.as_str())).collect()
}

#[test]
fn a_container_gets_the_device_file_and_the_folders() {
    let host = linux(vec![adapter(1, INTEL, 0)]);
    let plan = planned(wddm(1), &host, &[replica(1, INTEL, 0)]).unwrap();
    assert_eq!(plan.device, DeviceGrant::Dxg);
    assert_eq!(plan.device.host_path(), "/dev/dxg");
    assert_eq!(mounts(&plan), DXG_FOLDERS.map(|folder| (folder, folder)));
    assert_eq!(plan.envs["LD_LIBRARY_PATH"], "/usr/lib/wsl/lib");
    assert_eq!(plan.envs["DIRECTX_VISIBLE_DEVICES"], "1001");
    assert_eq!(plan.warnings, []);
}

/// The values of the variables with which the libraries of each vendor choose GPUs.
fn vendor_variables(host: &HostSnapshot, ids: &[String]) -> String {
    let policy = with(|container| container.multi_device = MultiDevice::Reject);
    let plan = planned(policy, host, ids).unwrap();
    assert_eq!((plan.device, plan.warnings), (DeviceGrant::Dxg, vec![]));
    let mut variables = Vec::new();
    for (name, value) in &plan.envs {
        if !name.starts_with("DIRECTX") && name != "LD_LIBRARY_PATH" {
            variables.push(format!("{name}={value}"));
        }
    }
    variables.join(" ")
}

#[test]
fn each_vendor_gets_its_variables() {
    // The host lists them in another order than their addresses have, of which 100 is the greatest.
    let adapters = [
        (1, NVIDIA, 0x100),
        (2, NVIDIA, 3),
        (3, INTEL, 0),
        (4, AMD, 5),
        (5, INTEL, 3),
        (6, AMD, 1),
    ];
    let host = linux(adapters.map(|(n, vendor, bus)| adapter(n, vendor, bus)).into());
    let replicas = |wanted: &[i64]| {
        let wanted = adapters.iter().filter(|(n, ..)| wanted.contains(n));
        wanted.map(|(n, vendor, bus)| replica(*n, *vendor, *bus)).collect::<Vec<_>>()
    };
    assert_eq!(
        vendor_variables(&host, &replicas(&[1])),
        "CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=1 MESA_D3D12_DEFAULT_ADAPTER_NAME=GPU 1"
    );
    assert_eq!(
        vendor_variables(&host, &replicas(&[5])),
        "MESA_D3D12_DEFAULT_ADAPTER_NAME=GPU 5 ZE_AFFINITY_MASK=1 ZE_ENABLE_PCI_ID_DEVICE_ORDER=1"
    );
    // ROCm keeps the order of the list.
    assert_eq!(
        vendor_variables(&host, &replicas(&[6])),
        "HIP_VISIBLE_DEVICES=1 HSA_ENABLE_DXG_DETECTION=1 MESA_D3D12_DEFAULT_ADAPTER_NAME=GPU 6"
    );
    // The container has every GPU of NVIDIA, and one of two of Intel and AMD.
    assert_eq!(
        vendor_variables(&host, &replicas(&[1, 2, 3, 4])),
        "HIP_VISIBLE_DEVICES=0 HSA_ENABLE_DXG_DETECTION=1 MESA_D3D12_DEFAULT_ADAPTER_NAME=GPU 1 \
         ZE_AFFINITY_MASK=0 ZE_ENABLE_PCI_ID_DEVICE_ORDER=1"
    );
}

/// The libraries may count an adapter that the plugin cannot read.
#[test]
fn no_index_is_set_while_an_adapter_is_unreadable() {
    let mut host = linux(vec![adapter(1, AMD, 1), adapter(2, AMD, 2)]);
    let effect = WarningEffect::Unreadable;
    host.warnings = vec![AdapterWarning { luid: Luid(7), text: "asleep".to_owned(), effect }];
    assert_eq!(
        vendor_variables(&host, &[replica(1, AMD, 1)]),
        "HSA_ENABLE_DXG_DETECTION=1 MESA_D3D12_DEFAULT_ADAPTER_NAME=GPU 1"
    );
}

/// A virtual machine can have two partitions of one GPU.
#[test]
fn a_device_with_several_adapters_counts_once() {
    let partition = Adapter { luid: Luid(7), ..adapter(1, NVIDIA, 1) };
    let host = linux(vec![adapter(1, NVIDIA, 1), partition, adapter(2, NVIDIA, 2)]);
    let variables = vendor_variables(&host, &[replica(2, NVIDIA, 2)]);
    assert!(variables.contains("CUDA_VISIBLE_DEVICES=1 "), "{variables}");
}

#[test]
fn the_configuration_leaves_out_folders_and_variables() {
    let host = linux(vec![adapter(1, INTEL, 0)]);
    let envs = |plan: &Plan| plan.envs.keys().cloned().collect::<Vec<_>>();
    for runtime_mounts in [RuntimeMounts::Never, RuntimeMounts::Extra] {
        let policy = with(|container| {
            (container.runtime_mounts, container.omit_environment_hints) = (runtime_mounts, true);
        });
        let plan = planned(policy, &host, &[replica(1, INTEL, 0)]).unwrap();
        assert_eq!((mounts(&plan), envs(&plan)), (vec![], vec![]));
    }
    let policy = with(|container| container.omit_environment_hints = true);
    let plan = planned(policy, &host, &[replica(1, INTEL, 0)]).unwrap();
    assert_eq!(envs(&plan), ["LD_LIBRARY_PATH"]);
}

#[test]
fn a_cdi_device_contains_the_folders_and_the_search_path() {
    let host = linux(vec![adapter(1, INTEL, 0), adapter(2, INTEL, 3)]);
    let policy = with(|container| container.cdi_devices = true);
    let plan = planned(policy, &host, &[replica(1, INTEL, 0)]).unwrap();
    assert_eq!(plan.device.host_path(), "directx.microsoft.com/dxg=all");
    assert_eq!(mounts(&plan), []);
    assert!(!plan.envs.contains_key("LD_LIBRARY_PATH"), "{:?}", plan.envs);
    assert_eq!(plan.envs["ZE_AFFINITY_MASK"], "0");
}

#[test]
fn a_missing_folder_of_this_machine_is_not_mounted() {
    let mut host = linux(vec![adapter(1, INTEL, 0)]);
    host.host.is_this_machine = true;
    let resource = resource(wddm(1), &host);
    let id = replica(1, INTEL, 0);
    let exists = |path: &str| path == DXG_FOLDERS[1];
    let plan = plan(&resource, [id.as_str()], &host.host, &exists).unwrap();
    assert_eq!(mounts(&plan), [(DXG_FOLDERS[1], DXG_FOLDERS[1])]);
    assert!(plan.warnings[0].to_string().contains("/usr/lib/wsl/lib does not exist"));
}

/// The filter is a Windows program.
#[test]
fn directx_visible_is_not_mounted() {
    let host = linux(vec![adapter(1, INTEL, 0)]);
    let policy = with(|container| container.visibility = Visibility::Launcher);
    let plan = planned(policy, &host, &[replica(1, INTEL, 0)]).unwrap();
    let is_launcher = |path: &str| LAUNCHER_FILES.iter().any(|file| path.ends_with(file));
    assert!(!mounts(&plan).iter().any(|(_, path)| is_launcher(path)), "{plan:?}");
}

fn offer(models: impl IntoIterator<Item = ModelPolicy>) -> Offer {
    let integrated = Adapter { integrated: true, ..adapter(1, INTEL, 0) };
    let npu = Adapter { attributes: npu(2).attributes, ..adapter(2, INTEL, 11) };
    catalog(models).offer(&linux(vec![integrated, npu]))
}

#[test]
fn integrated_devices_are_advertised_by_default_and_npus_are_not() {
    let advertised =
        |offer: &Offer| offer.resources.iter().map(|r| r.devices.len()).collect::<Vec<_>>();
    let default = offer([wddm(1), model(DriverModel::Mcdm)]);
    assert_eq!(advertised(&default), [1, 0]);
    assert_eq!(default.not_advertised[0].reason, NotAdvertisedReason::ComputeOnlyOnLinux);
    let rule = ResourceRule {
        name: "example.com/npu".parse().unwrap(),
        matches: DeviceMatch { model: Some(DriverModel::Mcdm), ..DeviceMatch::default() },
        replicas: None,
        allocation: None,
        visibility: None,
    };
    let ruled = offer([wddm(1), with_rules(model(DriverModel::Mcdm), vec![rule])]);
    assert_eq!(advertised(&ruled), [1, 0, 1]);
    let excluded = offer([ModelPolicy { include_integrated: Some(false), ..wddm(1) }]);
    assert_eq!(advertised(&excluded), [0]);
}

/// A rule that was written for GPUs, such as one with the vendor, does not mean NPUs.
#[test]
fn an_npu_is_advertised_only_by_a_rule_for_compute_only_devices() {
    let any = DeviceMatch::default;
    let table = [
        (any(), false),
        (DeviceMatch { vendor: Some(Vendor::Intel), ..any() }, false),
        (DeviceMatch { description: Some("GPU".parse().unwrap()), ..any() }, false),
        (DeviceMatch { min_memory_mib: Some(1), ..any() }, false),
        (DeviceMatch { kind: Some(DeviceKind::Npu), ..any() }, true),
        (DeviceMatch { model: Some(DriverModel::Mcdm), ..any() }, true),
        (DeviceMatch { pci: Some("8086:*".parse().unwrap()), ..any() }, true),
    ];
    let npu = Adapter { attributes: npu(2).attributes, ..adapter(2, INTEL, 11) };
    let host = linux(vec![npu]);
    for (matches, is_advertised) in table {
        let rule = ResourceRule {
            name: "example.com/npu".parse().unwrap(),
            matches: matches.clone(),
            replicas: None,
            allocation: None,
            visibility: None,
        };
        let offer = catalog([with_rules(model(DriverModel::Mcdm), vec![rule])]).offer(&host);
        let advertised = offer.resources.iter().any(|resource| !resource.devices.is_empty());
        assert_eq!(advertised, is_advertised, "{matches:?}");
        let reasons: Vec<_> = offer.not_advertised.into_iter().map(|n| n.reason).collect();
        let expected =
            if is_advertised { vec![] } else { vec![NotAdvertisedReason::ComputeOnlyOnLinux] };
        assert_eq!(reasons, expected, "{matches:?}");
    }
}

/// With the driver model, an NPU is still refused, so both steps are named at once.
#[test]
fn the_remedy_without_mcdm_names_the_rule_that_an_npu_needs() {
    let npu = Adapter { attributes: npu(2).attributes, ..adapter(2, INTEL, 11) };
    let host = linux(vec![npu]);
    let offer = catalog([wddm(1)]).offer(&host);
    let remedy = offer.not_advertised[0].reason.remedy(&host.host);
    let Remedy::Configure(fix) = remedy else { panic!("{remedy:?}") };
    assert!(fix.contains("`--driver-model mcdm`") && fix.contains("`match: {kind: npu}`"), "{fix}");
    let on_windows = offer.not_advertised[0].reason.remedy(&HostFacts::default());
    assert_eq!(
        on_windows,
        Remedy::Configure("enable the driver model mcdm (`--driver-model mcdm`)")
    );
}

/// NVIDIA says that its GPUs in MCDM mode run CUDA in WSL2.
#[test]
fn a_gpu_without_a_display_is_advertised_by_default() {
    let mcdm = Adapter { attributes: mcdm_gpu(2, NVIDIA).attributes, ..adapter(2, NVIDIA, 2) };
    let accelerator = Adapter { attributes: mcdm.attributes, ..adapter(3, 0x1ED5, 3) };
    let models = [wddm(1), model(DriverModel::Mcdm)];
    let offer = catalog(models).offer(&linux(vec![adapter(1, NVIDIA, 1), mcdm, accelerator]));
    let luids = offer.resources.iter().map(|r| r.devices[0].0.luid.0);
    assert_eq!(luids.collect::<Vec<_>>(), [1001, 1002]);
    let [other] = offer.not_advertised.as_slice() else { panic!("{offer:?}") };
    assert_eq!(
        (other.luid.0, other.reason.to_string().as_str()),
        (
            1003,
            "of the compute-only devices, only GPUs are known to work through /dev/dxg; a rule of \
             `resources` for compute-only devices advertises the others anyway"
        )
    );
}

#[test]
fn gpus_without_a_display_have_indexes_if_no_gpu_of_their_vendor_has_one() {
    let mcdm =
        |n, bus| Adapter { attributes: mcdm_gpu(n, NVIDIA).attributes, ..adapter(n, NVIDIA, bus) };
    let npu = Adapter { attributes: npu(4).attributes, ..adapter(4, INTEL, 0) };
    let host = linux(vec![mcdm(1, 1), mcdm(2, 2), adapter(3, INTEL, 3), npu]);
    let plan = planned(model(DriverModel::Mcdm), &host, &[replica(2, NVIDIA, 2)]).unwrap();
    assert_eq!(plan.envs["CUDA_VISIBLE_DEVICES"], "1");
    // An NPU is none of the vendor's GPUs.
    assert_eq!(
        vendor_variables(&host, &[replica(3, INTEL, 3)]),
        "MESA_D3D12_DEFAULT_ADAPTER_NAME=GPU 3"
    );
}

/// It is not known whether CUDA counts both.
#[test]
fn gpus_of_both_driver_models_have_no_indexes() {
    let mcdm = Adapter { attributes: mcdm_gpu(1, NVIDIA).attributes, ..adapter(1, NVIDIA, 1) };
    let intel = [adapter(4, INTEL, 0), adapter(5, INTEL, 5)];
    let host = linux([mcdm, adapter(2, NVIDIA, 2)].into_iter().chain(intel).collect());
    assert_eq!(
        vendor_variables(&host, &[replica(2, NVIDIA, 2)]),
        "MESA_D3D12_DEFAULT_ADAPTER_NAME=GPU 2"
    );
    let plan = planned(model(DriverModel::Mcdm), &host, &[replica(1, NVIDIA, 1)]).unwrap();
    assert!(!plan.envs.contains_key("CUDA_VISIBLE_DEVICES"), "{:?}", plan.envs);
    // Another vendor's are not affected.
    assert!(vendor_variables(&host, &[replica(5, INTEL, 5)]).contains("ZE_AFFINITY_MASK=1"));
}

#[test]
fn a_device_without_its_driver_folder_is_unhealthy() {
    let mut gpu = adapter(1, INTEL, 0);
    gpu.driver_store.as_mut().unwrap().files = StoreFiles::Listed([].into());
    let host = linux(vec![gpu]);
    let resource = resource(wddm(1), &host);
    let health = resource.entries()[0].health;
    assert_eq!(health, Health::Unhealthy(UnhealthyReason::NoDriverFiles));
}

#[test]
fn driver_folders_of_windows_have_a_place_on_linux() {
    let store = r"C:\WINDOWS\System32\DriverStore\filerepository\nv.inf_amd64_1";
    let folder = Some("/usr/lib/wsl/drivers/nv.inf_amd64_1".to_owned());
    assert_eq!(dxg_driver_folder(store), folder);
    let below = dxg_driver_folder(&format!(r"{store}\sub\"));
    assert_eq!(below, folder.map(|folder| folder + "/sub"));
    for other in ["", r"C:\Windows\FileRepository", r"C:\x\FileRepository\"] {
        assert_eq!(dxg_driver_folder(other), None);
    }
    for outside in ["..", r"..\..\etc", r"x\..\..\..", r".\x", r"x\\y", r"\x", "a/../../.."] {
        let path = format!(r"C:\Windows\System32\DriverStore\FileRepository\{outside}");
        assert_eq!(dxg_driver_folder(&path), None, "{path}");
    }
}
