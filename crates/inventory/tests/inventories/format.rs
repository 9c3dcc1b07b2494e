//! The format: what it takes, what it refuses in which words, and that whatever is
//! written reads back.

use std::collections::{BTreeMap, BTreeSet};

use devices::{
    Adapter, AdapterWarning, Attachment, Attribute, CopyToVmKey, CopyToVmKind, CopyToVmValue,
    DriverKey, DriverStore, DriverVersion, HardwareId, HcsSchema, HostBuild, HostFacts,
    HostSnapshot, Kept, LocationPath, Luid, Placement, PnpDevice, PnpId, Realness, StoreFiles,
    Wow64,
};
use inventory::{WriteError, parse, to_yaml};
use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

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
fn what_may_be_left_out_has_a_meaning() {
    let wanted = Adapter {
        luid: Luid(-5),
        attributes: [Attribute::Npu].into_iter().collect(),
        realness: Realness::Hardware,
        placement: Placement::Discrete,
        attachment: Attachment::Fixed,
        hardware_id: HardwareId { vendor: 0x8086, device: 0x7D1D, subsystem: 0, revision: 0 },
        driver_description: String::new(),
        driver_version: None,
        dedicated_memory_mib: None,
        pnp: Some(PnpDevice {
            id: PnpId::new(r"PCI\X\1"),
            description: String::new(),
            manufacturer: String::new(),
            driver_key: None,
            location_paths: Vec::new(),
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
fn json_is_read_with_its_tabs_and_escapes() {
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

/// The error, with its hint, of [`SMALLEST`] with `from` replaced by `to`.
fn refused(from: &str, to: &str) -> String {
    let text = SMALLEST.replacen(from, to, 1);
    assert_ne!(text, SMALLEST, "{from}");
    match parse("f.yaml", &text) {
        Ok(_) => format!("read: {from} -> {to}"),
        Err(error) => match error.hint() {
            Some(hint) => format!("{error}\nhint: {hint}"),
            None => error.to_string(),
        },
    }
}

#[test]
fn bad_input_is_refused_with_file_line_and_key() {
    let store = |lines: &str| format!("driverStore:\n    path: x\n{lines}");
    let pnp = |lines: &str| format!("pnp:\n    id: x\n    {lines}");
    let two = |second: &str| {
        format!("{}{second}", SMALLEST.lines().skip(2).fold(String::new(), |all, l| all + l + "\n"))
    };
    let table: Vec<String> = [
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
        ("adapters:\n", "host: {vendor: x}\nadapters:\n".into()),
        ("adapters:\n", "host:\nadapters:\n".into()),
        ("luid: -5", "luid: abc".into()),
        ("luid: -5", "luid: '5'".into()),
        ("luid: -5", "luid: 9223372036854775808".into()),
        ("luid: -5", "luid: ".into()),
        ("luid: -5\n", "luid: 5\n  luid: 6\n".into()),
        ("- luid: -5\n  attributes", "- attributes".into()),
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
        ("- luid: -5\n", two("- luid: -5\n")),
        ("- luid: -5\n", two("- luid: 6\n").replace("PCI", "pci")),
        (SMALLEST, String::new()),
        (SMALLEST, "[]".into()),
        (SMALLEST, "schema: directx-inventory/v1\n\tadapters: []".into()),
    ]
    .into_iter()
    .map(|(from, to)| refused(from, &to))
    .collect();
    insta::assert_snapshot!(table.join("\n"));
}

#[test]
fn what_the_format_cannot_hold_is_told() {
    let mut snapshot = parse("f.yaml", SMALLEST).unwrap();
    snapshot.warnings.push(AdapterWarning {
        luid: Luid(-5),
        text: "no\nversion".to_owned(),
        kept: Kept::InPart,
    });
    let store = snapshot.adapters[0].driver_store.as_mut().unwrap();
    let strings = ["a", "b", "c\n- luid: 1"].map(String::from).to_vec();
    let values = BTreeMap::from([("1".to_owned(), CopyToVmValue::Multi(strings))]);
    store.copy_to_vm.insert("CopyToVmOverwrite".parse().unwrap(), values);
    let text = to_yaml(&snapshot).unwrap();
    assert!(text.contains("# adapter -5: \"no\\nversion\"\n"), "{text}");
    assert!(
        text.contains("# left out: \"1\" Multi([\"a\", \"b\", \"c\\n- luid: 1\"])\n"),
        "{text}"
    );
    let read = parse("f.yaml", &text).unwrap();
    assert_eq!(read.adapters[0].driver_store.as_ref().unwrap().copy_to_vm.len(), 1);

    snapshot.adapters[0].driver_store.as_mut().unwrap().files = StoreFiles::OnDisk;
    assert_eq!(to_yaml(&snapshot), Err(WriteError::FilesNotListed(Luid(-5))));
}

/// Any text, and text that is known to be hard on YAML.
fn text() -> BoxedStrategy<String> {
    let hard = vec![
        "true",
        "null",
        "~",
        "",
        " ",
        "- a",
        "a: b",
        "a #b",
        "#",
        "0x10",
        "1e5",
        "10",
        "1_0",
        "'",
        "\"",
        "\\",
        "é\u{301}",
        "\u{0}",
        "\u{7f}",
        "\u{85}",
        "\u{feff}",
        "\u{2028}",
        "\r\n",
        "\t",
        "%a",
        "@a",
        "`a",
        "&a",
        "*a",
        "!a",
        "|",
        ">",
        "{a}",
        "[a]",
        "a,b",
        "---",
        "...",
        "<<",
        "=",
        "21H2",
        "2.5",
        "PCI\\VEN_10DE&DEV_1EB8\\3&13C0B0C5&1&D8",
        "a\n\nb\n",
        " a ",
        "\u{fffe}",
        "😀",
        "a\\",
    ];
    prop_oneof![any::<String>(), select(hard).prop_map(str::to_owned), "[ -~]{0,12}"].boxed()
}

fn filled() -> BoxedStrategy<String> {
    text().prop_filter("empty", |text| !text.is_empty()).boxed()
}

fn folded(text: &str) -> String {
    text.to_lowercase()
}

fn host() -> impl Strategy<Value = HostFacts> {
    let build = any::<[u32; 4]>().prop_map(|[major, minor, build, revision]| HostBuild {
        major,
        minor,
        build,
        revision,
    });
    let schema = any::<(u32, u32)>().prop_map(|(major, minor)| HcsSchema { major, minor });
    (option::of(text()), option::of(text()), option::of(build), vec(schema, 0..3)).prop_map(
        |(product, display_version, build, hcs_schemas)| HostFacts {
            product,
            display_version,
            build,
            hcs_schemas,
            wow64: Wow64::Present,
        },
    )
}

fn pnp() -> impl Strategy<Value = PnpDevice> {
    (
        filled(),
        text(),
        text(),
        option::of(filled()),
        vec(filled(), 0..3),
        option::of(any::<u32>()),
        any::<u32>(),
    )
        .prop_map(|(id, description, manufacturer, key, paths, numa_node, problem_code)| {
            PnpDevice {
                id: PnpId::new(id),
                description,
                manufacturer,
                driver_key: key.map(DriverKey::new),
                location_paths: paths.into_iter().map(LocationPath::new).collect(),
                numa_node,
                problem_code,
            }
        })
}

fn copy_to_vm_key() -> impl Strategy<Value = CopyToVmKey> {
    let subkey = filled().prop_map(|text| text.replace('\\', "/"));
    (select(CopyToVmKind::ALL.to_vec()), option::of(subkey))
        .prop_map(|(kind, subkey)| CopyToVmKey { kind, subkey })
}

fn driver_store() -> impl Strategy<Value = DriverStore> {
    let value = prop_oneof![
        vec(text(), 1..=2).prop_map(CopyToVmValue::Multi),
        text().prop_map(CopyToVmValue::Single)
    ];
    let name = prop_oneof![text(), Just("long ".repeat(300)), Just("é\n".repeat(700))];
    let values = btree_map(name, value, 0..4).prop_map(|mut values| {
        let mut seen = BTreeSet::new();
        values.retain(|name, _| seen.insert(folded(name)));
        values
    });
    let keys = btree_map(copy_to_vm_key(), values, 0..4).prop_map(|mut keys| {
        let mut seen = BTreeSet::new();
        keys.retain(|key, _| seen.insert(folded(&key.to_string())));
        keys
    });
    let files = prop_oneof![
        Just(StoreFiles::EveryNamed),
        btree_set(text(), 0..4).prop_map(StoreFiles::Listed)
    ];
    (filled(), files, keys).prop_map(|(path, files, copy_to_vm)| DriverStore {
        path,
        files,
        copy_to_vm,
    })
}

fn adapter() -> impl Strategy<Value = Adapter> {
    let hardware_id = any::<[u32; 4]>().prop_map(|[vendor, device, subsystem, revision]| {
        HardwareId { vendor, device, subsystem, revision }
    });
    (
        any::<i64>(),
        subsequence(Attribute::ALL.to_vec(), 0..=9),
        select(vec![Realness::Hardware, Realness::Software]),
        select(vec![Placement::Integrated, Placement::Discrete]),
        select(vec![Attachment::Detachable, Attachment::Fixed]),
        hardware_id,
        text(),
        (option::of(any::<u64>()), option::of(any::<u64>())),
        option::of(pnp()),
        option::of(driver_store()),
    )
        .prop_map(
            |(
                luid,
                attributes,
                realness,
                placement,
                attachment,
                hardware_id,
                text,
                (version, memory),
                pnp,
                store,
            )| {
                Adapter {
                    luid: Luid(luid),
                    attributes: attributes.into_iter().collect(),
                    realness,
                    placement,
                    attachment,
                    hardware_id,
                    driver_description: text,
                    driver_version: version.map(DriverVersion),
                    dedicated_memory_mib: memory,
                    pnp,
                    driver_store: store,
                }
            },
        )
}

/// Adapters that one host can have: no LUID and no `PnP` id twice.
fn adapters() -> impl Strategy<Value = Vec<Adapter>> {
    vec(adapter(), 0..3).prop_map(|mut adapters| {
        let (mut luids, mut ids) = (BTreeSet::new(), BTreeSet::new());
        adapters.retain(|adapter| {
            let id = adapter.pnp.as_ref().map(|pnp| pnp.id.as_str().to_uppercase());
            luids.insert(adapter.luid) && id.is_none_or(|id| ids.insert(id))
        });
        adapters
    })
}

proptest! {
    #[test]
    fn what_is_written_reads_back(host in host(), adapters in adapters()) {
        let snapshot = HostSnapshot { host, adapters, warnings: Vec::new() };
        let text = to_yaml(&snapshot).unwrap();
        let read = parse("f.yaml", &text).map_err(|e| TestCaseError::fail(format!("{e}\n{text}")))?;
        prop_assert_eq!(read, snapshot, "{}", text);
    }

    #[test]
    fn anything_else_is_refused_without_a_panic(at in 0..SMALLEST.len(), junk in "[ -~\\n\\t]{0,6}") {
        let text = format!("{}{junk}{}", &SMALLEST[..at], &SMALLEST[at..]);
        if let Err(error) = parse("f.yaml", &text) {
            prop_assert!(error.to_string().starts_with("f.yaml:"), "{}", error);
        }
    }
}
