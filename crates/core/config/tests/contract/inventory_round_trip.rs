//! Every host that is written reads back the same.

use std::collections::BTreeSet;

use config::inventory::{parse, to_yaml};
use host::{
    Adapter, Attribute, ComputeCapability, ConstantLoad, Containerd, CopyToVmKey, CopyToVmKind,
    CopyToVmValue, DriverDate, DriverKey, DriverStore, DriverVersion, HardwareId, HcsFailure,
    HcsFailureKind, HcsSchema, HostBuild, HostFacts, HostSnapshot, Hypervisor, LauncherFiles,
    License, LicenseState, LocationPath, Luid, NodeSoftware, NvidiaFacts, NvidiaGpu, Nvml,
    Platform, PnpDevice, PnpId, Program, StoreFiles, UtcTime, Wow64,
};
use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use strum::VariantArray;

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
    (
        option::of(text()),
        option::of(text()),
        option::of(build),
        vec(schema, 0..3),
        select(vec![Wow64::Present, Wow64::Absent]),
        any::<bool>(),
        select(vec![r"C:\Windows", r"D:\WinNT"]),
        option::of(select(vec![Hypervisor::None, Hypervisor::Own, Hypervisor::Guest])),
    )
        .prop_map(
            |(
                product,
                display_version,
                build,
                hcs_schemas,
                wow64,
                inside_container,
                root,
                hypervisor,
            )| {
                HostFacts {
                    hypervisor,
                    platform: Platform::Windows,
                    product,
                    display_version,
                    build,
                    hcs_schemas,
                    wow64,
                    inside_container,
                    system_root: root.parse().expect("a folder on a drive"),
                    is_this_machine: false,
                    is_demonstration: false,
                    launcher: LauncherFiles::default(),
                }
            },
        )
}

fn program() -> impl Strategy<Value = Program> {
    let version = prop_oneof![
        "v?[0-9]{1,3}\\.[0-9]{1,3}\\.[0-9]{1,3}([-+][!-~]{0,6})?"
            .prop_map(|text| Ok(text.parse().expect("the pattern is that of a version"))),
        text().prop_map(Err),
    ];
    prop_oneof![
        vec(text(), 1..3).prop_map(Program::NotFound),
        (filled(), version).prop_map(|(path, version)| Program::Found { path, version }),
    ]
}

fn containerd() -> impl Strategy<Value = Containerd> {
    (program(), option::of(vec(text(), 0..3))).prop_map(|(program, plugins)| {
        let is_found = matches!(program, Program::Found { .. });
        Containerd { program, disabled_plugins: plugins.filter(|_| is_found) }
    })
}

fn nvml() -> impl Strategy<Value = Nvml> {
    let gpu = (any::<u32>(), text(), text(), text()).prop_map(
        |(index, name, driver_version, driver_model)| NvidiaGpu {
            index,
            name,
            driver_version,
            driver_model,
        },
    );
    let gpus = prop_oneof![vec(gpu, 0..3).prop_map(Ok), text().prop_map(Err)];
    (option::of(filled()), gpus).prop_map(|(library, gpus)| Nvml { library, gpus })
}

fn node() -> impl Strategy<Value = NodeSoftware> {
    let failure = (select(HcsFailureKind::VARIANTS.to_vec()), text())
        .prop_map(|(kind, message)| HcsFailure { kind, message });
    (option::of(failure), option::of(containerd()), option::of(program()), option::of(nvml()))
        .prop_map(|(hcs_failure, containerd, kubelet, nvml)| NodeSoftware {
            hcs_failure,
            containerd,
            kubelet,
            nvml,
        })
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
        option::of(0_u64..20_000_000),
    )
        .prop_map(
            |(id, description, manufacturer, key, paths, numa_node, problem_code, days)| {
                PnpDevice {
                    id: PnpId::new(id),
                    description,
                    manufacturer,
                    driver_key: key.map(DriverKey::new),
                    location_paths: paths.into_iter().map(LocationPath::new).collect(),
                    driver_date: days.map(|days| DriverDate::from_filetime(days * 864_000_000_000)),
                    numa_node,
                    problem_code,
                }
            },
        )
}

fn copy_to_vm_key() -> impl Strategy<Value = CopyToVmKey> {
    let subkey = filled().prop_map(|text| text.replace('\\', "/"));
    (select(CopyToVmKind::ALL.to_vec()), option::of(subkey))
        .prop_map(|(kind, subkey)| CopyToVmKey { kind, subkey })
}

fn driver_store() -> impl Strategy<Value = DriverStore> {
    let value = prop_oneof![
        vec(text(), 0..=4).prop_map(CopyToVmValue::Multi),
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

/// Inventories do not contain UUIDs.
fn nvidia() -> impl Strategy<Value = NvidiaFacts> {
    let capability =
        any::<[u32; 2]>().prop_map(|[major, minor]| ComputeCapability { major, minor });
    let states = [LicenseState::NotRequired, LicenseState::Licensed, LicenseState::Unlicensed];
    // The first one is not a time.
    let expires = select(vec![[0; 6], [1601, 1, 1, 0, 0, 0], [2026, 12, 1, 10, 0, 1]])
        .prop_map(UtcTime::from_calendar);
    let license =
        (select(states.to_vec()), expires).prop_map(|(state, expires)| License { state, expires });
    (option::of(capability), option::of(license)).prop_map(|(compute_capability, license)| {
        NvidiaFacts { uuid: None, compute_capability, license }
    })
}

fn adapter() -> impl Strategy<Value = Adapter> {
    let hardware_id = any::<[u32; 4]>().prop_map(|[vendor, device, subsystem, revision]| {
        HardwareId { vendor, device, subsystem, revision }
    });
    (
        any::<i64>(),
        subsequence(Attribute::ALL.to_vec(), 0..=9),
        any::<[bool; 4]>(),
        hardware_id,
        text(),
        (option::of(any::<u64>()), option::of((any::<u64>(), option::of(0..=100_u32))), nvidia()),
        option::of(pnp()),
        option::of(driver_store()),
    )
        .prop_map(
            |(
                luid,
                attributes,
                [hardware, integrated, detachable, indirect_display],
                hardware_id,
                text,
                (version, memory, nvidia),
                pnp,
                store,
            )| {
                Adapter {
                    luid: Luid(luid),
                    attributes: attributes.into_iter().collect(),
                    hardware,
                    integrated,
                    detachable,
                    indirect_display,
                    hardware_id,
                    driver_description: text,
                    driver_version: version.map(DriverVersion),
                    dedicated_memory_mib: memory.map(|(memory, _)| memory),
                    load: memory.and_then(|(memory, utilization_percent)| {
                        let utilization_percent = utilization_percent?;
                        Some(ConstantLoad { utilization_percent, used_memory_mib: memory / 2 })
                    }),
                    nvidia,
                    pnp,
                    driver_store: store,
                }
            },
        )
}

/// Adapters and devices without an adapter that one host can have: no LUID and no `PnP` id twice.
fn adapters_and_devices() -> impl Strategy<Value = (Vec<Adapter>, Vec<PnpDevice>)> {
    (vec(adapter(), 0..3), vec(pnp(), 0..3)).prop_map(|(mut adapters, mut devices)| {
        let mut luids = BTreeSet::new();
        let mut ids = BTreeSet::new();
        adapters.retain(|adapter| {
            let id = adapter.pnp.as_ref().map(|pnp| pnp.id.as_str().to_uppercase());
            luids.insert(adapter.luid) && id.is_none_or(|id| ids.insert(id))
        });
        devices.retain(|device| {
            device.problem_code != 0 && ids.insert(device.id.as_str().to_uppercase())
        });
        (adapters, devices)
    })
}

proptest! {
    // Each case reads the text once for each of its lines.
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_written_inventory_reads_back_unchanged(
        host in host(),
        mut node in node(),
        (adapters, devices_without_adapter) in adapters_and_devices(),
    ) {
        // A host with schemas has no failure that explains why they are missing.
        node.hcs_failure = node.hcs_failure.filter(|_| host.hcs_schemas.is_empty());
        let snapshot = HostSnapshot {
            host,
            node,
            adapters,
            devices_without_adapter,
            ..HostSnapshot::default()
        };
        let text = to_yaml(&snapshot).unwrap();
        let read = parse("f.yaml", &text).map_err(|e| TestCaseError::fail(format!("{e}\n{text}")))?;
        prop_assert_eq!(read, snapshot, "{}", text);
        // Every part of the file is refused, wherever a copy ended.
        for (end, _) in text.match_indices('\n').filter(|(end, _)| end + 1 < text.len()) {
            let part = &text[..=end];
            prop_assert!(parse("f.yaml", part).is_err(), "{}", part);
        }
    }
}
