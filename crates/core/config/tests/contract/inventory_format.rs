//! The format: what it accepts, and the errors for everything else.

use std::collections::BTreeMap;

use config::inventory::{WriteError, parse, to_yaml};
use host::{
    Adapter, AdapterWarning, Attribute, ComputeCapability, Containerd, CopyToVmKey, CopyToVmKind,
    CopyToVmValue, DriverStore, HardwareId, HcsFailure, HcsFailureKind, HostFacts, Luid,
    NodeSoftware, NvidiaFacts, NvidiaGpu, Nvml, PnpDevice, PnpId, Program, StoreFiles,
    WarningEffect,
};
use proptest::prelude::*;

use crate::environment::beside_inputs;

const SMALLEST: &str = "\
schema: directx-inventory/v1
adapters:
- luid: -5
  attributes: [npu]
  hardware: true
  hardwareId: {vendor: 0x8086, device: 0x7D1D}
  pnp: {id: 'PCI\\X\\1'}
  driverStore: {path: 'C:\\x'}
";

#[test]
fn the_windows_folder_is_the_usual_one_unless_the_file_says_otherwise() {
    let root = |host: &str| {
        let text = format!("schema: directx-inventory/v1\nhost: {host}\nadapters: []\n");
        config::inventory::parse("f.yaml", &text)
            .map(|snapshot| snapshot.host.system_root.to_string())
    };
    assert_eq!(root("{}").unwrap(), r"C:\Windows");
    assert_eq!(root(r"{systemRoot: 'D:\WinNT'}").unwrap(), r"D:\WinNT");
    assert!(root(r"{systemRoot: '\\server\share'}").is_err());
}

#[test]
fn a_configuration_and_a_part_of_an_inventory_are_named() {
    let error = parse("f.yaml", "Multitenancy: 4").unwrap_err();
    assert_eq!(
        error.to_string(),
        "f.yaml:1: unknown key `Multitenancy`: this is a configuration, not an inventory"
    );
    assert_eq!(error.hint(), Some("name it with --config"));
    let part =
        "schema: directx-inventory/v1\nrecordedBy: 0.1.0\nadapters:\n- luid: 1\n  attributes: []";
    let error = parse("f.yaml", part).unwrap_err();
    assert_eq!(error.to_string(), "f.yaml:5: adapters[0]: missing keys `hardware`, `hardwareId`");
    assert!(error.hint().unwrap().starts_with("the inventory may be cut off"));
    let object = "apiVersion: v1\nkind: ConfigMap\ndata:\n  host.yaml: 'schema: x'";
    let error = parse("f.yaml", object).unwrap_err();
    let what =
        "unknown key `apiVersion`: this is a Kubernetes object (ConfigMap), not the inventory";
    assert_eq!(error.to_string(), format!("f.yaml:1: {what}"));
    assert!(error.hint().unwrap().contains("`data.host.yaml`"), "{error:?}");
}

#[test]
fn optional_keys_have_defaults() {
    let wanted = Adapter {
        luid: Luid(-5),
        attributes: [Attribute::Npu].into_iter().collect(),
        hardware: true,
        integrated: false,
        detachable: false,
        indirect_display: false,
        hardware_id: HardwareId { vendor: 0x8086, device: 0x7D1D, subsystem: 0, revision: 0 },
        driver_description: String::new(),
        driver_version: None,
        dedicated_memory_mib: None,
        load: None,
        nvidia: NvidiaFacts::default(),
        pnp: Some(PnpDevice {
            id: PnpId::new(r"PCI\X\1"),
            description: String::new(),
            manufacturer: String::new(),
            driver_key: None,
            location_paths: Vec::new(),
            driver_date: None,
            numa_node: None,
            problem_code: 0,
        }),
        driver_store: Some(DriverStore {
            path: r"C:\x".to_owned(),
            files: StoreFiles::EveryNamed,
            copy_to_vm: BTreeMap::new(),
        }),
    };
    let snapshot = parse("f.yaml", SMALLEST).unwrap();
    assert_eq!((snapshot.host, snapshot.adapters), (HostFacts::default(), vec![wanted]));
}

#[test]
fn a_load_may_be_all_that_the_adapter_has() {
    for load in [
        "load: {usedMemoryMiB: 0}",
        "dedicatedMemoryMiB: 8\n  load: {utilizationPercent: 100, usedMemoryMiB: 8}",
    ] {
        let text = SMALLEST.replace("hardware: true", &format!("hardware: true\n  {load}"));
        assert!(parse("f.yaml", &text).unwrap().adapters[0].load.is_some(), "{load}");
    }
}

/// Programs without the key read the inventory of a host without indirect displays.
#[test]
fn an_indirect_display_is_written_only_if_there_is_one() {
    let text = SMALLEST.replace("hardware: true", "hardware: true\n  indirectDisplay: true");
    let mut snapshot = parse("f.yaml", &text).unwrap();
    assert!(snapshot.adapters[0].indirect_display);
    let written = to_yaml(&snapshot).unwrap();
    assert!(written.contains("\n  indirectDisplay: true\n"), "{written}");
    assert_eq!(parse("f.yaml", &written).unwrap(), snapshot);
    snapshot.adapters[0].indirect_display = false;
    let written = to_yaml(&snapshot).unwrap();
    assert!(!written.contains("indirectDisplay"), "{written}");
    assert_eq!(parse("f.yaml", SMALLEST).unwrap(), snapshot);
}

/// Programs without the key read the inventory of a host whose GPUs NVML was not asked about.
#[test]
fn what_nvml_reports_is_written_only_if_it_is_known() {
    let key = "hardware: true\n  nvidia: {computeCapability: '8.6', license: {state: Licensed, \
               expires: 2026-12-01T10:00:00Z}}";
    let mut snapshot = parse("f.yaml", SMALLEST.replace("hardware: true", key)).unwrap();
    let nvidia = &snapshot.adapters[0].nvidia;
    assert_eq!(nvidia.compute_capability, Some(ComputeCapability { major: 8, minor: 6 }));
    assert_eq!(nvidia.license.unwrap().to_string(), "licensed until 2026-12-01T10:00:00Z");
    let written = to_yaml(&snapshot).unwrap();
    assert!(
        written.contains("\n  nvidia:\n    computeCapability: \"8.6\"\n    license:\n"),
        "{written}"
    );
    assert_eq!(parse("f.yaml", &written).unwrap(), snapshot);
    snapshot.adapters[0].nvidia =
        NvidiaFacts { uuid: Some("GPU-1".to_owned()), ..NvidiaFacts::default() };
    let written = to_yaml(&snapshot).unwrap();
    assert!(!written.contains("nvidia:") && !written.contains("GPU-1"), "{written}");
    for (bad, key) in [
        ("{license: {state: rented}}", "nvidia.license.state"),
        ("{license: {state: licensed, expires: tomorrow}}", "nvidia.license.expires"),
        ("{license: {}}", "nvidia.license"),
        ("{computeCapability: '8'}", "nvidia.computeCapability"),
        ("{uuid: GPU-1}", "nvidia"),
    ] {
        let bad = SMALLEST.replace("hardware: true", &format!("hardware: true\n  nvidia: {bad}"));
        let error = parse("f.yaml", bad).unwrap_err().to_string();
        assert!(error.starts_with("f.yaml:") && error.contains(key), "{error}");
    }
}

#[test]
fn a_key_without_a_value_counts_as_left_out() {
    let sections = "\
host: {platform: , product: , build: , hcsSchemas: , wow64: , container: , systemRoot: }
node: {hcsError: , containerd: , kubelet: , nvml: }
adapters:
";
    let text = SMALLEST
        .replace("adapters:\n", sections)
        .replace("hardware: true", "hardware: true\n  nvidia: {computeCapability: , license: }")
        .replace("{path: 'C:\\x'}", "{path: 'C:\\x', files: }")
        .replace("{id: 'PCI\\X\\1'}", "{id: 'PCI\\X\\1', driverKey: , driverDate: , numaNode: }");
    assert_eq!(parse("f.yaml", text).unwrap(), parse("f.yaml", SMALLEST).unwrap());
}

#[test]
fn json_with_tabs_and_escapes_is_read() {
    let json = "{\n\t\"schema\": \"directx-inventory/v1\",\n\t\"adapters\": [{\n\t\t\"luid\": -5,\n\t\t\
                \"attributes\": [\"npu\"],\n\t\t\"hardware\": true,\n\t\t\
                \"hardwareId\": {\"vendor\": 32902, \"device\": 32029},\n\t\t\
                \"driverDescription\": \"\\ud83d\\ude00 \\u00ae\",\n\t\t\
                \"pnp\": {\"id\": \"PCI\\\\X\\\\1\"},\n\t\t\"driverStore\": {\"path\": \"C:\\\\x\"}\n\t}]\n}";
    let mut wanted = parse("f.yaml", SMALLEST).unwrap();
    wanted.adapters[0].driver_description = "😀 ®".to_owned();
    assert_eq!(parse("f.json", json).unwrap(), wanted);
}

#[test]
fn a_value_may_be_reg_sz() {
    let text = SMALLEST.replace(
        "{path: 'C:\\x'}",
        "\n    path: x\n    copyToVm: {'softgpukmd\\copytovmoverwrite': {01: a.dll, '': [b.dll]}}",
    );
    let snapshot = parse("f.yaml", &text).unwrap();
    let store = snapshot.adapters[0].driver_store.clone().unwrap();
    let key = CopyToVmKey { kind: CopyToVmKind::Overwrite, subkey: Some("softgpukmd".to_owned()) };
    let values = BTreeMap::from([
        ("01".to_owned(), CopyToVmValue::Single("a.dll".to_owned())),
        (String::new(), CopyToVmValue::Multi(vec!["b.dll".to_owned()])),
    ]);
    assert_eq!(store.copy_to_vm, BTreeMap::from([(key, values)]));
}

#[test]
fn the_documented_software_of_a_node_is_read() {
    let section = "\
node:
  hcsError: {kind: unresponsive, message: access denied}
  containerd:
    path: 'C:\\containerd.exe'
    version: v1.7.22-k3s1
    disabledPlugins: [io.containerd.grpc.v1.cri]
  kubelet: {notFoundIn: [the service `kubelet`, PATH]}
  nvml:
    library: 'C:\\Windows\\System32\\nvml.dll'
    gpus:
    - {index: 0, name: NVIDIA Tesla T4, driverVersion: 528.49, driverModel: TCC}
adapters:
";
    let node = parse("f.yaml", SMALLEST.replace("adapters:\n", section)).unwrap().node;
    let gpu = NvidiaGpu {
        index: 0,
        name: "NVIDIA Tesla T4".to_owned(),
        driver_version: "528.49".to_owned(),
        driver_model: "TCC".to_owned(),
    };
    let expected = NodeSoftware {
        hcs_failure: Some(HcsFailure {
            kind: HcsFailureKind::Unresponsive,
            message: "access denied".to_owned(),
        }),
        containerd: Some(Containerd {
            program: Program::Found {
                path: r"C:\containerd.exe".to_owned(),
                version: Ok("1.7.22-k3s1".parse().unwrap()),
            },
            disabled_plugins: Some(vec!["io.containerd.grpc.v1.cri".to_owned()]),
        }),
        kubelet: Some(Program::NotFound(vec![
            "the service `kubelet`".to_owned(),
            "PATH".to_owned(),
        ])),
        nvml: Some(Nvml {
            library: Some(r"C:\Windows\System32\nvml.dll".to_owned()),
            gpus: Ok(vec![gpu]),
        }),
    };
    assert_eq!(node, expected);
}

#[test]
fn an_inventory_without_node_knows_nothing_about_its_software() {
    for section in ["", "node: {}\n"] {
        let text = SMALLEST.replace("adapters:\n", &format!("{section}adapters:\n"));
        let snapshot = parse("f.yaml", &text).unwrap();
        assert_eq!(snapshot.node, NodeSoftware::default());
        assert!(!to_yaml(&snapshot).unwrap().contains("node:"));
    }
}

/// The change, and the error with its hint, of [`SMALLEST`] with `from` replaced by `to`.
fn refused(from: &str, to: &str) -> (String, String) {
    let text = SMALLEST.replacen(from, to, 1);
    assert_ne!(text, SMALLEST, "{from}");
    let from = if from == SMALLEST { "the file" } else { from.trim_end() };
    let result = match parse("f.yaml", &text) {
        Ok(_) => "read".to_owned(),
        Err(error) => match error.hint() {
            Some(hint) => format!("{error}\nhint: {hint}"),
            None => error.to_string(),
        },
    };
    (format!("{from}\nis replaced by\n{to}"), result)
}

#[test]
fn bad_input_is_refused_with_file_line_and_key() {
    let store = |lines: &str| format!("driverStore:\n    path: x\n{lines}");
    let pnp = |lines: &str| format!("pnp:\n    id: x\n    {lines}");
    let without_adapter = |device: &str| format!("devicesWithoutAdapter:\n- {device}\nadapters:\n");
    let two = |second: &str| {
        format!("{}{second}", SMALLEST.lines().skip(2).fold(String::new(), |all, l| all + l + "\n"))
    };
    let table = [
        ("schema: directx-inventory/v1\n", String::new()),
        ("inventory/v1", "inventory/v2".into()),
        ("schema:", "shcema:".into()),
        ("adapters:", "adapters: []\nadapterz:".into()),
        (&SMALLEST[SMALLEST.find("adapters").unwrap()..], String::new()),
        ("adapters:\n", "adapters:\n  luid: 5\nx:\n".into()),
        ("adapters:\n", "host: {build: 10.0.x.1}\nadapters:\n".into()),
        ("adapters:\n", "host: {build: 10.0}\nadapters:\n".into()),
        ("adapters:\n", "host: {hcsSchemas: 2.5}\nadapters:\n".into()),
        ("adapters:\n", "host: {hcsSchemas: ['2,5']}\nadapters:\n".into()),
        ("adapters:\n", "host: {product: true}\nadapters:\n".into()),
        ("adapters:\n", "host: {platform: linux-dxg}\nadapters:\n".into()),
        ("adapters:\n", "host: {vendor: x}\nadapters:\n".into()),
        ("adapters:\n", "host:\nadapters:\n".into()),
        ("luid: -5", "luid: abc".into()),
        ("luid: -5", "luid: '5'".into()),
        ("luid: -5", "luid: 9223372036854775808".into()),
        ("luid: -5", "luid: ".into()),
        ("luid: -5\n", "luid: 5\n  luid: 6\n".into()),
        ("- luid: -5\n  attributes", "- attributes".into()),
        ("  attributes: [npu]\n  hardware: true\n", String::new()),
        ("[npu]", "npu".into()),
        ("[npu]", "[nqu]".into()),
        ("[npu]", "[d3d12]".into()),
        ("[npu]", "[gpu, 5]".into()),
        ("hardware: true", "hardware: yes".into()),
        ("hardware: true", "hardware: 1".into()),
        ("hardware: true", "hardware: true\n  detachable: 'false'".into()),
        ("vendor: 0x8086", "vendor: -1".into()),
        ("vendor: 0x8086", "vendor: 0x100000000".into()),
        ("vendor: 0x8086, ", String::new()),
        ("device: 0x7D1D", "device: 7D1D".into()),
        ("hardware: true", "hardware: true\n  driverVersion: 31.0".into()),
        ("hardware: true", "hardware: true\n  dedicatedMemoryMiB: -1".into()),
        ("hardware: true", "hardware: true\n  dedicatedMemoryMib: 1".into()),
        ("hardware: true", "hardware: true\n  load: {utilizationPercent: 101}".into()),
        ("hardware: true", "hardware: true\n  load: {usedMemoryMiB: 1}".into()),
        (
            "hardware: true",
            "hardware: true\n  dedicatedMemoryMiB: 8\n  load: {usedMemoryMiB: 9}".into(),
        ),
        ("hardware: true", "hardware: true\n  load: {percent: 1}".into()),
        ("{id: 'PCI\\X\\1'}", "{}".into()),
        ("{id: 'PCI\\X\\1'}", "{id: ''}".into()),
        ("{id: 'PCI\\X\\1'}", "~".into()),
        ("pnp: {id: 'PCI\\X\\1'}", pnp("numaNode: none")),
        ("pnp: {id: 'PCI\\X\\1'}", pnp("problemCode: -1")),
        ("pnp: {id: 'PCI\\X\\1'}", pnp("locationPaths: PCIROOT(0)")),
        ("pnp: {id: 'PCI\\X\\1'}", pnp("locationPaths: ['']")),
        ("driverStore: {path: 'C:\\x'}", "driverStore: {files: []}".into()),
        ("driverStore: {path: 'C:\\x'}", store("    files:")),
        ("driverStore: {path: 'C:\\x'}", store("    files: [a.dll, [b.dll]]")),
        ("driverStore: {path: 'C:\\x'}", store("    copyToVm: []")),
        ("driverStore: {path: 'C:\\x'}", store("    copyToVm: {CopyToVm: {}}")),
        ("driverStore: {path: 'C:\\x'}", store("    copyToVm: {CopyToVmOverwrite: [a]}")),
        ("driverStore: {path: 'C:\\x'}", store("    copyToVm: {CopyToVmOverwrite: {'01': []}}")),
        (
            "driverStore: {path: 'C:\\x'}",
            store("    copyToVm: {CopyToVmOverwrite: {'01': [a, b, c]}}"),
        ),
        ("driverStore: {path: 'C:\\x'}", store("    copyToVm: {CopyToVmOverwrite: {'01': true}}")),
        (
            "driverStore: {path: 'C:\\x'}",
            store("    copyToVm: {CopyToVmOverwrite: {a: b},\n      copytovmoverwrite: {}}"),
        ),
        (
            "driverStore: {path: 'C:\\x'}",
            store("    copyToVm: {CopyToVmOverwrite: {a: b,\n      A: c}}"),
        ),
        ("adapters:\n", without_adapter("{id: x}")),
        ("adapters:\n", without_adapter("{description: NVIDIA A2, problemCode: 43}")),
        ("adapters:\n", without_adapter("{id: x, problemCode: 43, luid: 1}")),
        ("adapters:\n", without_adapter("{id: 'pci\\x\\1', problemCode: 43}")),
        ("adapters:\n", "devicesWithoutAdapter:\nadapters:\n".into()),
        ("- luid: -5\n", two("- luid: -5\n")),
        ("- luid: -5\n", two("- luid: 6\n").replace("PCI", "pci")),
        (SMALLEST, String::new()),
        (SMALLEST, "[]".into()),
        (SMALLEST, "schema: directx-inventory/v1\n\tadapters: []".into()),
    ]
    .map(|(from, to)| refused(from, &to));
    insta::assert_snapshot!(beside_inputs(table));
}

#[test]
fn what_people_write_instead_is_refused_with_a_hint() {
    let pnp = |lines: &str| format!("pnp:\n    id: x\n    {lines}");
    let table = [
        ("vendor: 0x8086", "vendor: AMD".into()),
        ("device: 0x7D1D", "device: Radeon".into()),
        ("hardware: true", "hardware: true\n  dedicatedMemoryMiB: 16 GB".into()),
        ("pnp: {id: 'PCI\\X\\1'}", pnp("problemCode: Code 43")),
        ("hardware: true", "hardwar: true".into()),
        ("hardware: true", "hardware: true\n  name: NVIDIA T4".into()),
        ("hardware: true", "hardware: true\n  memory: 5".into()),
        ("hardware: true", "hardware: true\n  vendor: 5".into()),
        ("hardware: true", "hardware: true\n  locationPaths: []".into()),
        ("adapters:", "gpus:".into()),
        ("hardware: true", "hardware: true\n    integrated: true".into()),
        ("  attributes", "   attributes".into()),
        ("hardware: true", "hardware: true\n  vendorId: 5".into()),
        ("schema: directx-inventory/v1\n", "  schema: directx-inventory/v1\n".into()),
        (SMALLEST, format!("data:\n  host.yaml: |\n    {}", SMALLEST.replace('\n', "\n    "))),
    ];
    insta::assert_snapshot!(beside_inputs(table.map(|(from, to)| refused(from, &to))));
}

#[test]
fn bad_software_of_a_node_is_refused_with_file_line_and_key() {
    let node = |section: &str| format!("node: {{{section}}}\nadapters:\n");
    let sections = [
        node("containerd: {}"),
        node("containerd: {path: x}"),
        node("containerd: {path: x, version: 1.7}"),
        node("containerd: {path: x, version: 1.7.x}"),
        node("containerd: {path: x, version: 1.7.0, versionError: x}"),
        node("containerd: {path: '', version: 1.7.0}"),
        node("containerd: {path: x, notFoundIn: [PATH]}"),
        node("containerd: {notFoundIn: PATH}"),
        node("containerd: {notFoundIn: [PATH], disabledPlugins: [cri]}"),
        node("containerd: {path: x, version: 1.7.0, disabledPlugins: cri}"),
        node("kubelet: {notFoundIn: [PATH], version: 1.31.0}"),
        node("kubelet: {notFoundIn: [PATH], versionError: x}"),
        node("kubelet: {path: x, version: 1.31.0, disabledPlugins: []}"),
        node("kubelet: 1.31.0"),
        node("kubelets: {}"),
        node("nvml: {}"),
        node("nvml: {gpus: [], gpusError: x}"),
        node("nvml: {gpus: [{index: 0}]}"),
        node("nvml: {gpus: [{index: '0', name: x, driverVersion: x, driverModel: WDDM}]}"),
        node("hcsError: {kind: absent, message: x}"),
        node("hcsError: {kind: missing}"),
        node("hcsError: no service"),
        "node:\nadapters:\n".to_owned(),
        "node:\n  nvml:\nadapters:\n".to_owned(),
    ];
    let table = sections.map(|section| refused("adapters:\n", &section));
    insta::assert_snapshot!(beside_inputs(table));
}

#[test]
fn warnings_become_comments() {
    let mut snapshot = parse("f.yaml", SMALLEST).unwrap();
    snapshot.warnings.push(AdapterWarning {
        luid: Luid(-5),
        text: "no\nversion".to_owned(),
        effect: WarningEffect::Incomplete,
    });
    let store = snapshot.adapters[0].driver_store.as_mut().unwrap();
    let strings = ["a", "b", "c\n- luid: 1"].map(String::from).to_vec();
    let values = BTreeMap::from([("1".to_owned(), CopyToVmValue::Multi(strings))]);
    store.copy_to_vm.insert("CopyToVmOverwrite".parse().unwrap(), values);
    let text = to_yaml(&snapshot).unwrap();
    assert!(text.contains("# adapter -5: \"no\\nversion\"\n"), "{text}");
    let read = parse("f.yaml", &text).unwrap();
    assert_eq!(read.adapters, snapshot.adapters);

    snapshot.adapters[0].driver_store.as_mut().unwrap().files = StoreFiles::OnDisk;
    let error = to_yaml(&snapshot).unwrap_err();
    assert!(matches!(error, WriteError::FilesNotListed(Luid(-5))), "{error}");
}

proptest! {
    #[test]
    fn other_text_is_refused_without_a_panic(at in 0..SMALLEST.len(), junk in "[ -~\\n\\t]{0,6}") {
        let text = format!("{}{junk}{}", &SMALLEST[..at], &SMALLEST[at..]);
        if let Err(error) = parse("f.yaml", &text) {
            prop_assert!(error.to_string().starts_with("f.yaml:"), "{}", error);
        }
    }
}
