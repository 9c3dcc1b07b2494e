//! The recorded hosts read exactly as they were recorded.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use host::{
    Adapter, Attribute, CopyToVmKey, CopyToVmValue, DriverKey, DriverStore, HardwareId, HcsSchema,
    HostFacts, HostSnapshot, LauncherFiles, LocationPath, Luid, NvidiaFacts, Platform, PnpDevice,
    PnpId, StoreFiles, SystemRoot, Wow64,
};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fixtures/inventories").join(name)
}

fn recorded(name: &str) -> HostSnapshot {
    config::inventory::read(&fixture(name)).expect("the recorded hosts are well-formed")
}

fn key(name: &str) -> CopyToVmKey {
    name.parse().expect("the tests name keys that exist")
}

/// Value names `01`, `02`, … with the strings of each.
fn values(strings: &[&[&str]]) -> BTreeMap<String, CopyToVmValue> {
    let multi = |texts: &&[&str]| CopyToVmValue::Multi(texts.iter().map(|&t| t.into()).collect());
    (1..).map(|n| format!("{n:02}")).zip(strings.iter().map(multi)).collect()
}

fn tesla_t4(luid: i64, slot: &str, location: &str, driver: &str) -> Adapter {
    let copy_to_vm = [
        (
            key("CopyToVmWhenNewer"),
            values(&[
                &["nvcudadebugger.dll"],
                &["nvcuda_loader64.dll", "nvcuda.dll"],
                &["nvcuvid64.dll", "nvcuvid.dll"],
                &["nvEncodeAPI64.dll"],
                &["nvapi64.dll"],
                &["nvml_loader.dll", "nvml.dll"],
                &["OpenCL64.dll", "OpenCL.dll"],
                &["vulkan-1-x64.dll", "vulkan-1.dll"],
            ]),
        ),
        (
            key("CopyToVmWhenNewerWow64"),
            values(&[
                &["nvcuda_loader32.dll", "nvcuda.dll"],
                &["nvcuvid32.dll", "nvcuvid.dll"],
                &["nvEncodeAPI.dll"],
                &["nvapi.dll"],
                &["OpenCL32.dll", "OpenCL.dll"],
                &["vulkan-1-x86.dll", "vulkan-1.dll"],
            ]),
        ),
    ];
    let extras = ["nvidia-smi.exe", "vulkaninfo-x64.exe", "vulkaninfo-x86.exe"].map(String::from);
    let sources =
        copy_to_vm.iter().flat_map(|(_, values)| values.values()).map(|value| match value {
            CopyToVmValue::Multi(texts) => texts[0].clone(),
            CopyToVmValue::Single(text) => text.clone(),
        });
    Adapter {
        luid: Luid(luid),
        attributes: [
            Attribute::D3d11Graphics,
            Attribute::D3d12Graphics,
            Attribute::D3d12CoreCompute,
        ]
        .into_iter()
        .collect(),
        hardware: true,
        integrated: false,
        detachable: false,
        indirect_display: false,
        hardware_id: HardwareId {
            vendor: 0x10DE,
            device: 0x1EB8,
            subsystem: 0x12A2_10DE,
            revision: 0xA1,
        },
        driver_description: "NVIDIA Tesla T4".to_owned(),
        driver_version: None,
        dedicated_memory_mib: Some(15360),
        load: None,
        nvidia: NvidiaFacts::default(),
        pnp: Some(PnpDevice {
            id: PnpId::new(format!(
                r"PCI\VEN_10DE&DEV_1EB8&SUBSYS_12A210DE&REV_A1\3&13C0B0C5&1&{slot}"
            )),
            description: "NVIDIA Tesla T4".to_owned(),
            manufacturer: "NVIDIA".to_owned(),
            driver_key: Some(DriverKey::new(format!(
                r"{{4d36e968-e325-11ce-bfc1-08002be10318}}\{driver}"
            ))),
            location_paths: vec![LocationPath::new(location)],
            driver_date: None,
            numa_node: Some(0),
            problem_code: 0,
        }),
        driver_store: Some(DriverStore {
            path: r"C:\Windows\System32\DriverStore\FileRepository\nvgridsw_aws.inf_amd64_1b50ef32b191cff1".to_owned(),
            files: StoreFiles::Listed(sources.chain(extras).collect::<BTreeSet<_>>()),
            copy_to_vm: copy_to_vm.into_iter().collect(),
        }),
    }
}

#[test]
fn the_aws_host_has_two_tesla_t4() {
    let wanted = HostSnapshot {
        host: HostFacts {
            platform: Platform::Windows,
            product: Some("Microsoft Windows Server 2022 Datacenter".to_owned()),
            display_version: Some("21H2".to_owned()),
            build: "10.0.20348.1547".parse().ok(),
            hypervisor: None,
            hcs_schemas: vec![HcsSchema { major: 2, minor: 5 }],
            wow64: Wow64::Present,
            inside_container: false,
            system_root: SystemRoot::default(),
            is_this_machine: false,
            is_demonstration: false,
            launcher: LauncherFiles::default(),
        },
        adapters: vec![
            tesla_t4(7_048_070, "D8", "PCIROOT(0)#PCI(1B00)", "0004"),
            tesla_t4(7_098_126, "E0", "PCIROOT(0)#PCI(1C00)", "0005"),
        ],
        ..HostSnapshot::default()
    };
    assert_eq!(recorded("aws-t4-two.yaml"), wanted);
}

#[test]
fn the_azure_host_has_a_tesla_m60_and_the_hyper_v_adapter() {
    let HostSnapshot { host, adapters, .. } = recorded("azure-m60.yaml");
    assert_eq!(host.display_version.as_deref(), Some("1809"));
    assert_eq!(host.build, "10.0.17763.4010".parse().ok());
    assert_eq!(host.hcs_schemas, [HcsSchema { major: 2, minor: 1 }]);
    let [m60, hyper_v] = adapters.as_slice() else { panic!("two adapters") };

    let store = m60.driver_store.as_ref().unwrap();
    let files = ["nvcuda_loader64.dll", "nvidia-smi.exe"].map(String::from);
    assert_eq!(store.files, StoreFiles::Listed(BTreeSet::from(files)));
    let loader = values(&[&["nvcuda_loader64.dll", "nvcuda.dll"]]);
    assert_eq!(store.copy_to_vm, BTreeMap::from([(key("CopyToVmWhenNewer"), loader)]));

    let wanted = Adapter {
        luid: Luid(55002),
        attributes: [Attribute::D3d11Graphics].into_iter().collect(),
        hardware: true,
        integrated: false,
        detachable: false,
        indirect_display: false,
        hardware_id: HardwareId { vendor: 0x1414, device: 0x5353, subsystem: 0, revision: 0 },
        driver_description: "Microsoft Hyper-V Video".to_owned(),
        driver_version: None,
        dedicated_memory_mib: Some(0),
        load: None,
        nvidia: NvidiaFacts::default(),
        pnp: Some(PnpDevice {
            id: PnpId::new(
                r"VMBUS\{da0a7802-e377-4aac-8e77-0558eb1073f8}\{5620e0c7-8062-4dce-aeb7-520c7ef76171}",
            ),
            description: "Microsoft Hyper-V Video".to_owned(),
            manufacturer: "Microsoft".to_owned(),
            driver_key: Some(DriverKey::new(r"{4d36e968-e325-11ce-bfc1-08002be10318}\0000")),
            location_paths: Vec::new(),
            driver_date: None,
            numa_node: Some(0),
            problem_code: 0,
        }),
        driver_store: Some(DriverStore {
            path: r"C:\Windows\System32\DriverStore\FileRepository\wvmbusvideo.inf_amd64_0000000000000000".to_owned(),
            files: StoreFiles::Listed(BTreeSet::new()),
            copy_to_vm: BTreeMap::new(),
        }),
    };
    assert_eq!(*hyper_v, wanted);
}

#[test]
fn every_inventory_is_written_back_unchanged() {
    let folder = std::fs::read_dir(fixture(".")).unwrap();
    let files = folder.map(|entry| entry.unwrap().path());
    let hosts: Vec<PathBuf> =
        files.filter(|p| p.extension().is_some_and(|e| e == "yaml")).collect();
    assert!(hosts.len() >= 2, "{hosts:?}");
    for host in hosts {
        let snapshot = config::inventory::read(&host).unwrap();
        let text = config::inventory::to_yaml(&snapshot).unwrap();
        assert_eq!(
            config::inventory::parse("written", &text).unwrap(),
            snapshot,
            "{}",
            host.display()
        );
    }
}

/// What is written looks like what people keep in their repositories.
#[test]
fn the_layout_of_a_written_inventory() {
    let text = config::inventory::to_yaml(&recorded("azure-m60.yaml")).unwrap();
    insta::assert_snapshot!(text.replace(env!("CARGO_PKG_VERSION"), "VERSION"));
}
