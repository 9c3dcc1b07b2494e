//! Valid files, and the errors for invalid ones.

use devices::{
    AllocationPolicy, DriverModel, MultiDevice, RuntimeMounts, SharedRequests, Visibility,
};
use host::{DeviceKind, FileName, Vendor};
use proptest::prelude::*;

use crate::environment::{
    SECTIONS, TestEnvironment, beside_inputs, configured, effective, every_key, keys, report,
    reports,
};

const WDDM: [DriverModel; 1] = [DriverModel::Wddm];
const BOTH: [DriverModel; 2] = [DriverModel::Wddm, DriverModel::Mcdm];

/// Keys of every mapping, in different spellings.
const SPELLINGS: &str = r"
MULTITENANCY: 4
includeintegrated: true
IncludeDetachable: true
ADDITIONALMOUNTS:
  NVIDIA:
  - {Source: nvml.dll, DESTINATION: nvml2.dll}
  - {source: sub/folder\x.dll}
  '0x1a03': []
additionalMountsWoW64:
  amd: [{source: B026261\amfrt32.dll, destination: amfrt32.dll}]
runtimeMounts: Always
runtimeFilesWow64: false
excludeMounts: [nvcuda.dll, OpenCL.dll]
allocationPolicy: packed
multiDevice: reject
DEVICECLASS: '{1024e4c9-47c9-48d3-b4a8-f9df78523b53}'
sharedRequests: ONE
renameShared: true
publishNuma: true
removalGraceSeconds: 5
environmentHints: false
Visibility: OFF
CordonedDevices: ['PCIROOT(0)#PCI(1B00)', 'PCI\VEN_10DE\1']
resourceName: example.com/gpu
resources:
- name: example.com/t4
  match: {vendor: nvidia, KIND: Gpu, description: 'tesla t4', pciId: '10de:1eb8', minMemoryMiB: 15000, driverModel: wddm}
  multitenancy: 2
  allocationPolicy: distributed
  VISIBILITY: Off
- Name: example.com/slot
  Match: {LocationPath: 'PCIROOT(0)*'}
- name: example.com/rest
";

#[test]
fn every_key_changes_what_its_example_says() {
    let config = configured(&every_key(str::to_owned), &WDDM).unwrap();
    insta::assert_snapshot!(effective(&config));
    assert_eq!(config.notices, Vec::<String>::new());
    let settings = config.models[0].settings.iter();
    let unchanged: Vec<&str> = settings.filter(|s| s.is_default).map(|s| s.key).collect();
    // Its other values contradict the example of `environmentHints`.
    assert_eq!(unchanged, ["visibility"]);
}

#[test]
fn every_key_is_matched_without_case() {
    let expected = effective(&configured(&every_key(str::to_owned), &WDDM).unwrap());
    for spell in [str::to_ascii_lowercase, str::to_ascii_uppercase] {
        assert_eq!(effective(&configured(&every_key(spell), &WDDM).unwrap()), expected);
    }
}

#[test]
fn keys_and_values_in_any_case() {
    let config = configured(SPELLINGS, &WDDM).unwrap();
    assert_eq!(config.notices, Vec::<String>::new());
    let policy = &config.policy.models[0];
    assert_eq!(policy.sharing.replicas.get(), 4);
    assert_eq!(policy.sharing.allocation, AllocationPolicy::Packed);
    assert_eq!((policy.include_integrated, policy.include_detachable), (true, true));
    assert_eq!((policy.publish_numa, policy.removal_grace.as_secs()), (true, 5));
    let container = &policy.container;
    assert_eq!(container.runtime_mounts, RuntimeMounts::Always);
    assert!(container.omit_wow64);
    assert_eq!(
        (container.multi_device, container.omit_environment_hints),
        (MultiDevice::Reject, true)
    );
    let excluded: Vec<&str> = container.exclude_mounts.iter().map(FileName::as_str).collect();
    assert_eq!(excluded, ["nvcuda.dll", "OpenCL.dll"]);
    let nvidia = &container.additional[&Vendor::Nvidia];
    assert_eq!(nvidia[1].source.as_str(), r"sub\folder\x.dll");
    assert_eq!(nvidia[1].destination.as_str(), "x.dll");
    assert_eq!(container.additional[&Vendor::Other(0x1A03)], []);
    assert_eq!(container.additional_wow64[&Vendor::Amd].len(), 1);
    let names: Vec<&str> = policy.rules.iter().map(|r| r.name.as_str()).collect();
    assert_eq!(
        names,
        ["example.com/t4.shared", "example.com/slot.shared", "example.com/rest.shared"]
    );
    assert_eq!(policy.resource.as_str(), "example.com/gpu.shared");
    assert_eq!(policy.sharing.shared_requests, SharedRequests::One);
    let rule = &policy.rules[0];
    assert_eq!(rule.replicas.map(std::num::NonZero::get), Some(2));
    assert_eq!(rule.allocation, Some(AllocationPolicy::Distributed));
    assert_eq!(rule.visibility, Some(Visibility::Off));
    assert_eq!(rule.matches.kind, Some(DeviceKind::Gpu));
    assert!(rule.matches.description.as_ref().unwrap().matches("NVIDIA Tesla T4"));
}

#[test]
fn an_empty_file_and_empty_keys_set_nothing() {
    let wanted = effective(&configured("", &BOTH).unwrap());
    let defaults = effective(&TestEnvironment::default().load(&BOTH).unwrap());
    assert_eq!(wanted.replace(r#"["c.yaml"]"#, "[]"), defaults);
    let empty = keys("").join(":\n") + ":\n";
    assert_eq!(effective(&configured(&empty, &BOTH).unwrap()), wanted);
}

/// One file may serve several driver models, which need different classes.
#[test]
fn a_device_class_is_for_every_driver_model_or_for_each() {
    let classes = |text: &str| {
        let config = configured(text, &BOTH).unwrap();
        let models = config.policy.models.into_iter();
        models
            .map(|m| m.device_class().map_or("none".to_owned(), |class| class.to_string()))
            .collect::<Vec<_>>()
    };
    let display = "5B45201D-F2F2-4F3B-85BB-30FF1F953599";
    let arrival = "1024E4C9-47C9-48D3-B4A8-F9DF78523B53";
    assert_eq!(classes(""), [display, "none"]);
    assert_eq!(classes("deviceClass: {}"), [display, "none"]);
    assert_eq!(classes(&format!("deviceClass: {arrival}")), [arrival, arrival]);
    assert_eq!(classes(&format!("deviceClass:\n  MCDM: {arrival}")), [display, arrival]);
    let both = format!("deviceClass: {{mcdm: '{{{display}}}', wddm: {arrival}}}");
    assert_eq!(classes(&both), [arrival, display]);
}

#[test]
fn json_is_read() {
    let json = "{\n\t\"multitenancy\": 3,\n\t\"includeIntegrated\": true\n}";
    let config = configured(json, &WDDM).unwrap();
    assert_eq!(config.policy.models[0].sharing.replicas.get(), 3);
}

#[test]
fn bad_values_are_refused_with_file_line_key_and_hint() {
    let mounts = |mount: &str| format!("additionalMounts:\n  nvidia:\n  - {mount}");
    let rule = |rule: &str| format!("resources:\n- name: a/b\n  {rule}");
    let condition = |condition: &str| format!("resources:\n- name: a/b\n  match:\n    {condition}");
    let table = [
        "multitenancy: -1".to_owned(),
        "multitenancy: 1025".into(),
        "multitenancy: 1.5".into(),
        "multitenancy: 'four'".into(),
        "multitenancy: [1]".into(),
        "multitenancy: 1\nMultiTenancy: 2".into(),
        "multitenacy: 1".into(),
        "replicas: 1".into(),
        "version: v1\nsharing: {}".into(),
        "flags: {migStrategy: none}".into(),
        "sharing:\n  timeSlicing:\n    resources: [{name: nvidia.com/gpu, replicas: 4}]".into(),
        "timeSlicing: {renameByDefault: true}".into(),
        "failRequestsGreaterThanOne: true".into(),
        "RenameByDefault: true".into(),
        rule("replicas: 4"),
        "includeIntegrated: 1".into(),
        "includeDetachable: 'yes'".into(),
        "runtimeMounts: sometimes".into(),
        "runtimeMounts: false".into(),
        "runtimeMounts: nevr".into(),
        "excludeMounts: nvcuda.dll".into(),
        r"excludeMounts: [System32\nvcuda.dll]".into(),
        "allocationPolicy: spread".into(),
        "multiDevice: refuse".into(),
        "deviceClass: display".into(),
        "deviceClass: '{1024E4C9-47C9-48D3-B4A8-F9DF78523B53'".into(),
        "deviceClass: 1".into(),
        "deviceClass: [1024E4C9-47C9-48D3-B4A8-F9DF78523B53]".into(),
        "deviceClass:\n  npu: 1024E4C9-47C9-48D3-B4A8-F9DF78523B53".into(),
        "deviceClass:\n  mcdm: display".into(),
        "deviceClass:\n  mcdm:".into(),
        "sharedRequests: two".into(),
        "renameShared: maybe".into(),
        format!("multitenancy: 2\nrenameShared: true\nresourceName: a/{}", "b".repeat(63)),
        "publishNuma: 0".into(),
        "removalGraceSeconds: -1".into(),
        "removalGraceSeconds: 86401".into(),
        "removalGraceSeconds: 60s".into(),
        "environmentHints: []".into(),
        "visibility: on".into(),
        "visibility: false".into(),
        "visibility: launcher\nenvironmentHints: false".into(),
        "OnDriverChange: taint".into(),
        "CDIDevices: true".into(),
        "resourceName: gpu".into(),
        "resourceName: requests.x.com/gpu".into(),
        "additionalMounts: []".into(),
        "additionalMounts: {'Advanced Micro Devices, Inc.': []}".into(),
        "additionalMounts: {nvidia: {source: a}}".into(),
        "additionalMounts: {nvidia: [],\n  NVIDIA: []}".into(),
        "additionalMounts: {nvidia: [],\n  '0x10de': []}".into(),
        mounts("source"),
        mounts("{destination: x.dll}"),
        mounts("{source: x.dll, target: y.dll}"),
        mounts(r"{source: ..\..\x.dll}"),
        mounts(r"{source: a\..\..\x.dll, destination: x.dll}"),
        mounts(r"{source: 'C:\x.dll'}"),
        mounts(r"{source: '\\?\C:\x.dll'}"),
        mounts("{source: 'x.dll:stream'}"),
        mounts("{source: 'x.dll. '}"),
        mounts("{source: ''}"),
        mounts(r"{source: x.dll, destination: drivers\x.dll}"),
        mounts("{source: x.dll, destination: NUL}"),
        mounts("{source: x.dll, destination: ''}"),
        mounts("{source: x.dll, destination: NtDll.dll}"),
        mounts("{source: x.dll, destination: drivers}"),
        mounts(r"{source: sub\lsass.exe}"),
        "resources: {}".into(),
        "resources:\n- match: {}".into(),
        "resources:\n- name: kubernetes.io/gpu".into(),
        "resources:\n- name: ~".into(),
        rule("multitenancy: -4"),
        rule("allocationPolicy: both"),
        rule("visibility: filter"),
        rule("visibility: launcher\nenvironmentHints: false"),
        rule("match: nvidia"),
        rule("match:"),
        condition("vendor: Advanced Micro Devices, Inc."),
        condition("vendor:"),
        condition("description: 'T4('"),
        condition("description: ''"),
        condition("pciId: 10de"),
        condition("pciId: 10DE:1EB8:0"),
        condition("minMemoryMiB: 0"),
        condition("minMemoryMiB: 99999999999"),
        condition("minMemoryMiB: 16GiB"),
        condition("driverModel: wdm"),
        condition("kind: gpus"),
        condition("locationPath: '*'"),
        condition("busId: 1"),
        "- multitenancy: 1".into(),
        "multitenancy: 1\n---\nmultitenancy: 2".into(),
        "multitenancy: 1\n\tincludeIntegrated: true".into(),
    ];
    insta::assert_snapshot!(reports(table));
}

#[test]
fn rules_that_contradict_each_other_are_refused() {
    let table = [
        // Two rules have the same name and different settings.
        "resources:\n- {name: a/b, match: {vendor: amd}, multitenancy: 2}\n- {name: a/b, match: {vendor: intel}}",
        "resources:\n- {name: a/b, match: {vendor: amd}, allocationPolicy: packed}\n- {name: a/b, match: {vendor: intel}}",
        "resources:\n- {name: directx.microsoft.com/display, multitenancy: 3}",
        "multitenancy: 2\nresourceName: a/b\nresources:\n- {name: a/b, match: {vendor: amd}, multitenancy: 4}",
        "resources:\n- {name: a/b, match: {vendor: amd}, visibility: launcher}\n- {name: a/b, match: {vendor: intel}}",
        // Two names lead to the same variable.
        "resources:\n- {name: a.b/c-d, match: {vendor: amd}}\n- {name: a-b/C_d, match: {vendor: intel}}",
        "resources:\n- {name: directx.microsoft.com/Display, match: {vendor: intel}}",
        // The second rule can match nothing, because the first one matches everything that it
        // would.
        "resources:\n- {name: a/b}\n- {name: c/d, match: {vendor: amd}}",
        "resources:\n- {name: a/b, match: {}}\n- {name: c/d}",
        "resources:\n- {name: a/b, match: {vendor: amd}}\n- {name: c/d, match: {vendor: AMD, minMemoryMiB: 5}}",
        "resources:\n- {name: a/b, match: {pciId: '10de:*'}}\n- {name: c/d, match: {pciId: '10DE:1EB8'}}",
        "resources:\n- {name: a/b, match: {minMemoryMiB: 100}}\n- {name: c/d, match: {minMemoryMiB: 200}}",
        "resources:\n- {name: a/b, match: {locationPath: 'PCIROOT(0)*'}}\n- {name: c/d, match: {locationPath: 'pciroot(0)#PCI(1)*'}}",
    ];
    insta::assert_snapshot!(reports(table));
}

#[test]
fn similar_rules_are_accepted() {
    for text in [
        "resources:\n- {name: a/b, match: {vendor: amd}, multitenancy: 2}\n- {name: a/b, match: {vendor: intel}, multitenancy: 2}",
        "multitenancy: 2\nresources:\n- {name: a/b, match: {vendor: amd}, multitenancy: 2}\n- {name: a/b, match: {vendor: intel}}",
        "resources:\n- {name: directx.microsoft.com/display, match: {vendor: amd}, multitenancy: 1}",
        "resources:\n- {name: a/b, match: {vendor: amd, minMemoryMiB: 5}}\n- {name: c/d, match: {vendor: amd}}\n- {name: e/f}",
        "resources:\n- {name: a/b, match: {description: T4}}\n- {name: c/d, match: {description: A10}}",
        "resources:\n- {name: a/b, match: {pciId: '10de:1eb8'}}\n- {name: c/d, match: {pciId: '10de:*'}}",
        "resources:\n- {name: a/b, match: {locationPath: 'PCIROOT(0)'}}\n- {name: c/d, match: {locationPath: 'PCIROOT(0)*'}}",
        "resources:\n- {name: a/b, match: {driverModel: wddm}}\n- {name: c/d, match: {driverModel: mcdm}}",
        "visibility: launcher\nresources:\n- {name: a/b, match: {vendor: amd}, visibility: launcher}\n- {name: a/b, match: {vendor: intel}}",
        // Without environment variables for containers, no name is ambiguous.
        "environmentHints: false\nresources:\n- {name: a.b/c, match: {vendor: amd}}\n- {name: a-b/c}",
    ] {
        assert!(configured(text, &BOTH).is_ok(), "{text}: {}", report(configured(text, &BOTH)));
    }
}

#[test]
fn driver_models_with_one_resource_must_agree() {
    let shared = "resources:\n- {name: a/b, match: {vendor: amd}}";
    let table = [
        TestEnvironment::default()
            .file("/here/wddm.yaml", shared)
            .file("/here/mcdm.yaml", shared)
            .variable("MCDM_DEVICE_PLUGIN_MULTITENANCY", "4"),
        TestEnvironment::default()
            .file("/here/wddm.yaml", "removalGraceSeconds: 5\nresourceName: a/b")
            .file("/here/mcdm.yaml", "resourceName: a/b"),
        TestEnvironment::default()
            .variable("WDDM_DEVICE_PLUGIN_RESOURCE_NAME", "directx.microsoft.com/compute")
            .variable("WDDM_DEVICE_PLUGIN_MULTITENANCY", "2"),
        TestEnvironment::default()
            .variable("WDDM_DEVICE_PLUGIN_RESOURCE_NAME", "a/b")
            .variable("MCDM_DEVICE_PLUGIN_RESOURCE_NAME", "a/b")
            .file("/here/mcdm.yaml", "multitenancy: 2"),
    ];
    let errors = table.map(|environment| environment.report(&BOTH));
    insta::assert_snapshot!(beside_inputs(errors));
    let alike = "resourceName: a/b\nmultitenancy: 2\n";
    assert!(configured(alike, &BOTH).is_ok());
    // A rule for one driver model does not affect the other.
    let one = format!("{shared}\n").replace("{vendor: amd}", "{driverModel: wddm}");
    let environment = TestEnvironment::default()
        .file("/here/wddm.yaml", &one)
        .file("/here/mcdm.yaml", &one)
        .variable("MCDM_DEVICE_PLUGIN_MULTITENANCY", "4");
    assert!(environment.load(&BOTH).is_ok());
}

#[test]
fn bad_files_and_limits_are_refused_with_a_hint() {
    let table = [
        "schema: directx-inventory/v1\nadapters: []",
        "multitenancy: [4",
        "multitenancy 4",
        "# An earlier plugin.\nmultitenancy = 4\n[additional_mounts]",
        "[additional_mounts]\nnvidia = []",
        "cordonedDevices: ['']",
        "UnhealthyAfterResets: {count: 3, minutes: 60}",
    ];
    insta::assert_snapshot!(reports(table));
}

fn notices(environment: &TestEnvironment) -> Vec<String> {
    let notices = environment.load(&BOTH).expect("it is valid").notices.into_iter();
    notices.map(|notice| notice.replace('\\', "/")).collect()
}

/// The earlier plugins read these default files.
#[test]
fn an_earlier_default_file_is_reported_with_what_to_do() {
    let folders = ["/here", "/etc/directx-device-plugins"];
    let extensions = [
        ".toml",
        ".properties",
        ".props",
        ".prop",
        ".hcl",
        ".tfvars",
        ".dotenv",
        ".env",
        ".ini",
        "",
    ];
    for (folder, extension) in folders.iter().flat_map(|f| extensions.map(|e| (f, e))) {
        for model in ["wddm", "mcdm"] {
            let path = format!("{folder}/{model}{extension}");
            let environment = TestEnvironment::default().file(&path, "multitenancy: 5");
            assert_eq!(
                notices(&environment),
                [format!("the file `{path}` is ignored: write its keys to {model}.yaml, as YAML")]
            );
        }
    }
}

/// They read one file in a folder: of two files, the first one in the order of their library.
#[test]
fn a_file_that_no_plugin_would_read_is_not_reported() {
    let both = |other| {
        let environment = TestEnvironment::default().file("/here/wddm.yaml", "multitenancy: 2");
        notices(&environment.file(other, "multitenancy: 5"))
    };
    assert_eq!(both("/here/wddm"), Vec::<String>::new());
    assert_eq!(both("/here/wddm.ini"), Vec::<String>::new());
    assert_eq!(
        both("/here/wddm.toml"),
        ["the file `/here/wddm.toml` is ignored: write its keys to wddm.yaml, as YAML"]
    );
}

#[test]
fn the_variable_of_legacy_is_reported_without_legacy() {
    let environment = TestEnvironment::default().variable("DIRECTX_GPU_MATCH_NAME", "radeon");
    assert_eq!(
        notices(&environment),
        ["variable DIRECTX_GPU_MATCH_NAME has no effect without --driver-model legacy"]
    );
    let legacy = TestEnvironment::default().variable("DIRECTX_GPU_MATCH_NAME", "radeon");
    assert!(legacy.load(&[DriverModel::Legacy]).unwrap().notices.is_empty());
}

#[test]
fn what_has_no_effect_is_a_notice() {
    let rules = "resources:\n- {name: a/b, match: {driverModel: mcdm}}\n- {name: c/d}";
    let config = configured(rules, &WDDM).unwrap();
    assert_eq!(config.policy.models[0].rules.len(), 1);
    assert_eq!(
        config.notices,
        [
            "c.yaml:2: the rule for `a/b` has no effect: this file does not configure driver model mcdm"
        ]
    );
    assert_eq!(configured(rules, &BOTH).unwrap().notices, Vec::<String>::new());
    let separate = TestEnvironment::default().file("/here/wddm.yaml", rules).load(&BOTH).unwrap();
    assert_eq!(separate.notices.len(), 1, "{:?}", separate.notices);

    let config =
        configured("runtimeMounts: never\nmultitenancy: 2", &[DriverModel::Legacy]).unwrap();
    assert_eq!(
        config.notices,
        ["c.yaml: runtimeMounts has no effect with the driver model legacy"]
    );
}

proptest! {
    #[test]
    fn garbage_in_a_file_is_refused_without_a_panic(
        at in 0..SPELLINGS.len(),
        junk in "[ -~\\n\\t]{0,6}",
    ) {
        let text = format!("{}{junk}{}", &SPELLINGS[..at], &SPELLINGS[at..]);
        if let Err(error) = configured(&text, &BOTH) {
            prop_assert!(error.to_string().starts_with("c.yaml:"), "{}", error);
        }
    }

    #[test]
    fn a_truncated_file_is_refused_without_a_panic(at in 0..SPELLINGS.len()) {
        if let Err(error) = configured(&SPELLINGS[..at], &BOTH) {
            prop_assert!(error.to_string().starts_with("c.yaml:"), "{}", error);
        }
    }

    #[test]
    fn any_value_of_any_variable_is_accepted_or_refused(
        name in proptest::sample::select(config::VARIABLES.to_vec()),
        value in "\\PC{0,12}",
    ) {
        let name = name.replace("{MODEL}", "LEGACY");
        let environment = TestEnvironment::default().variable(&name, &value);
        if let Err(error) = environment.load(&[DriverModel::Legacy]) {
            prop_assert!(error.to_string().contains(&name), "{}", error);
        }
    }
}

#[test]
fn visibility_is_for_a_driver_model_and_its_rules() {
    let file = "visibility: launcher\nresources:\n- {name: a/b, match: {vendor: amd}, visibility: off}\n- {name: c/d, match: {vendor: intel}}";
    let config = configured(file, &BOTH).unwrap();
    let catalog = devices::Catalog::new(config.policy);
    let specs = catalog.resources().iter().map(|spec| (spec.name.as_str(), spec.visibility));
    assert_eq!(
        specs.collect::<Vec<_>>(),
        [
            ("directx.microsoft.com/display", Visibility::Launcher),
            ("directx.microsoft.com/compute", Visibility::Launcher),
            ("a/b", Visibility::Off),
            ("c/d", Visibility::Launcher),
        ]
    );
    let uses =
        |text| devices::Catalog::new(configured(text, &WDDM).unwrap().policy).mounts_launcher();
    assert!(catalog.mounts_launcher() && !uses("") && !uses("visibility: off"));
    assert!(uses("resources: [{name: a/b, match: {vendor: amd}, visibility: launcher}]"));
    assert!(uses("visibility: Required"));
    // Without this file, only 32-bit programs are not filtered.
    assert!(uses("visibility: required\nexcludeMounts: [directx-visible-filter32.dll]"));
    assert!(uses("visibility: launcher\nexcludeMounts: [directx-visible.exe]"));
}

/// No container could ever start.
#[test]
fn what_keeps_required_files_out_of_containers_is_refused() {
    for (text, expected) in [
        (
            "visibility: required\nenvironmentHints: false",
            "c.yaml:1: visibility: directx-visible needs the variables that environmentHints: false",
        ),
        (
            "environmentHints: false\nresources:\n- {name: a/b, visibility: required}",
            "c.yaml:3: resources[0]: directx-visible needs the variables",
        ),
        (
            "visibility: required\nexcludeMounts: [Directx-Visible.EXE]",
            "c.yaml:1: visibility: directx-visible is required, and excludeMounts keeps \
             `Directx-Visible.EXE` out of containers",
        ),
        (
            "resources:\n- {name: a/b, visibility: required}\nexcludeMounts: [directx-visible-filter.dll]",
            "c.yaml:2: resources[0]: directx-visible is required, and excludeMounts keeps",
        ),
        (
            "visibility: required\nadditionalMounts: {nvidia: [{source: a, destination: directx-visible.exe}]}",
            "c.yaml:1: visibility: directx-visible is required, and additionalMounts keeps",
        ),
    ] {
        let error = report(configured(text, &WDDM));
        assert!(error.starts_with(expected) && error.contains("\nhint: remove"), "{error}");
    }
}

/// Helm charts and `envsubst` put values in quotes, which the earlier plugins accepted.
#[test]
fn quoted_numbers_and_booleans_are_accepted() {
    let file = "multitenancy: \"4\"\nincludeIntegrated: \"true\"\nremovalGraceSeconds: '5'\n\
                publishNuma: 'False'\nresources:\n- {name: a/b, multitenancy: \"2\", match: {minMemoryMiB: '1'}}";
    let config = configured(file, &WDDM).unwrap();
    let policy = &config.policy.models[0];
    assert_eq!((policy.sharing.replicas.get(), policy.include_integrated), (4, true));
    assert_eq!((policy.removal_grace.as_secs(), policy.publish_numa), (5, false));
    let rule = &policy.rules[0];
    assert_eq!(rule.replicas.map(std::num::NonZero::get), Some(2));
    assert_eq!(rule.matches.min_memory_mib, Some(1));
}

#[test]
fn only_resources_whose_devices_are_shared_are_renamed() {
    let file = "renameShared: true\nresources:\n- {name: a/one}\n- {name: a/two, multitenancy: 2}";
    let file = file.replace("{name: a/one}", "{name: a/one, match: {vendor: amd}}");
    let policy = &configured(&file, &WDDM).unwrap().policy.models[0];
    let names: Vec<&str> = policy.rules.iter().map(|rule| rule.name.as_str()).collect();
    assert_eq!(names, ["a/one", "a/two.shared"]);
    assert_eq!(policy.resource.as_str(), "directx.microsoft.com/display");
}

#[test]
fn every_key_in_another_section_is_said_to_belong_to_its_own() {
    let sections = SECTIONS.map(|(start, place)| (start, place, keys(start)));
    let mut misplaced = 0;
    for (start, _, own) in &sections {
        for key in sections.iter().flat_map(|(_, _, keys)| keys) {
            if own.contains(key) {
                continue;
            }
            let places: Vec<&str> = sections
                .iter()
                .filter(|(_, _, keys)| keys.contains(key))
                .map(|(_, place, _)| *place)
                .collect();
            for spelled in [key.clone(), key.to_ascii_uppercase()] {
                let error = configured(&format!("{start}{spelled}: 1"), &[]).unwrap_err();
                assert!(error.to_string().ends_with(&format!("unknown key `{spelled}`")));
                let hint = format!("`{key}` belongs {}", places.join(" or "));
                // It may also be another word for a key of this mapping.
                let text = error.hint().unwrap_or_default();
                let is_said = text == hint || text.contains(&format!("? {hint}"));
                assert!(is_said, "{start}: {text}");
            }
            misplaced += 1;
        }
    }
    assert!(misplaced > 80, "{misplaced}");
}

#[test]
fn a_key_of_another_section_is_recognized_although_it_is_misspelled_or_too_deep() {
    let table = [
        "resources:\n- name: a/b\n  renameShard: true",
        "resources:\n- name: a/b\n  match: {alocationPolicy: packed}",
        "vendr: nvidia",
        "additionalMounts:\n  nvidia: []\n  multitenancy: 4",
        "additionalMountsWow64:\n  source: x.dll",
        "deviceClass:\n  MultiDevice: reject",
        // Keys of NVIDIA's device plugin, in a rule.
        "resources:\n- name: nvidia.com/gpu\n  flags: true",
        "resources:\n- name: nvidia.com/gpu\n  renameByDefault: true",
        "resources:\n- name: nvidia.com/gpu\n  failRequestsGreaterThanOne: true",
        "resources:\n- name: nvidia.com/gpu\n  rename: nvidia.com/gpu.shared",
        "resources:\n- name: nvidia.com/gpu\n  devices: all",
    ];
    insta::assert_snapshot!(reports(table));
}

#[test]
fn a_kubernetes_object_is_not_the_configuration_in_it() {
    let head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
    let table = [
        format!("{head}data:\n  wddm.yaml: |\n    multitenancy: 4\n"),
        format!("data:\n  a: b\n  c: d\n{head}"),
        "kind: ConfigMap\ndata:\n  a: x\napiVersion: v1".to_owned(),
        "{\"kind\": \"Secret\", \"apiVersion\": \"v1\", \"data\": {\"a\": \"YQ==\"}}".to_owned(),
        format!("{head}data: {{}}"),
        "metadata: {}\nspec: {}\nkind: DaemonSet\napiVersion: apps/v1".to_owned(),
        format!("{head}---\n{head}"),
        "kind: gpu".to_owned(),
        "data: {a: b}".to_owned(),
        "data:\n  wddm.yaml: |\n    multitenancy: 4\n".to_owned(),
        "wddm.yaml: |\n  multitenancy: 4\n".to_owned(),
        "wddm.yaml: |\n  multitenancy: 4\nmcdm.yaml: |\n  multitenancy: 2\n".to_owned(),
        "wddm.yaml: {multitenancy: 4}".to_owned(),
        "config: |\n  multitenancy: 4\n".to_owned(),
        "metadata: {name: a}\ndata:\n  wddm.yaml: ''\n".to_owned(),
    ];
    insta::assert_snapshot!(reports(table));
}

#[test]
fn a_word_for_another_key_has_the_key_in_its_hint() {
    let condition = |key: &str| format!("resources:\n- name: a/b\n  match: {{{key}: x}}");
    let words =
        ["product", "model", "name", "device", "deviceId", "pci_id", "memory", "type", "gpuName"];
    let more = ["driver", "slot", "manufacturer", "vendor-name", "resourceName", "count"];
    let conditions = words.iter().chain(&more).map(|word| condition(word));
    let others = [
        "resources:\n- resourceName: a/b\n",
        "resources:\n- {name: a/b, selector: {vendor: amd}}\n",
        "resources:\n- {name: a/b, count: 2}\n",
        "rules:\n- name: a/b\n",
        "resources:\n- name: a/b\n  match: {driverModel: tcc}\n",
        "name: a/b\n",
        "grace-period: 5\n",
        "additionalMounts:\n  amd: [{src: a.dll}]\n",
        "additionalMounts:\n  amd: [{source: a.dll, target: b.dll}]\n",
    ];
    let table = conditions.chain(others.map(str::to_owned));
    insta::assert_snapshot!(reports(table));
}

#[test]
fn a_line_that_is_indented_by_mistake_is_named() {
    let table = [
        "multitenancy: 4\n  renameShared: true",
        "# x\nresourceName: example.com/gpu\n\n  multitenancy: 2\n",
        "visibility: off\n  packed\n",
        "multitenancy: 4\n renameShared: true\n sharedRequests: one\n",
        "resources:\n- name: a/b\n   match: {vendor: amd}\n",
        "resources:\n- name: a/b\n  match:\n    description: tesla\n      kind: gpu\n",
        "additionalMounts:\n  nvidia:\n  - source: a.dll\n      destination: b.dll\n",
        "excludeMounts:\n- a.dll\n  - b.dll\n",
        "cordonedDevices:\n  - PCIROOT(0)#PCI(1B00)\n    - PCIROOT(0)#PCI(1C00)\n",
        "multitenancy: '4'\n  renameShared: true\n",
        "resources:\n- name: a/b\n  match: {vendor: amd}\n    multitenancy: 2\n",
        "resources:\n- name: a/b\n match: {vendor: amd}\n",
        "  multitenancy: 4\nrenameShared: true\n",
        "---\n# x\n  multitenancy: 4\nrenameShared: true\n",
        "resources:\n  - name: a/b\n    multitenancy: 2\n - name: a/c\n",
    ];
    insta::assert_snapshot!(reports(table));
}

#[test]
fn the_line_with_a_tab_is_named() {
    let table = [
        "multitenancy: 4\n\tsharedRequests: one\n",
        "# x\n\n \tmultitenancy: 4\n \tsharedRequests: one",
        "multitenancy: 4\n\n# x\n\tsharedRequests: one\n",
        "resources:\n\t- name: a/b\n",
        "resources:\n- name: a/b\n\tmultitenancy: 4\n",
        "resources:\n- name: a/b\n  match:\n\t  vendor: amd\n",
        "resources:\n- name: a/b\n  match:\n  \tvendor: amd\n",
        "resources:\r\n- name: a/b\r\n\tmultitenancy: 4\r\n",
        "resourceName: 'a/b'\n\tmultitenancy: 4\n",
        "excludeMounts: [a.dll]\n\tmultitenancy: 4\n",
        "excludeMounts:\n- a.dll\n\t- b.dll\n",
        "additionalMounts:\n  amd:\n\t- source: x.dll\n",
        "deviceClass:\n\tmcdm: 1024E4C9-47C9-48D3-B4A8-F9DF78523B53\n",
        "multitenancy: 4\n\t\n\tsharedRequests: one",
    ];
    insta::assert_snapshot!(reports(table));
    // Other tabs are valid.
    for text in [
        "multitenancy:\t4",
        "\tmultitenancy: 4\n",
        "multitenancy: 4\t# x",
        "{\n\t\"multitenancy\": 4\n}",
    ] {
        assert!(configured(text, &WDDM).is_ok(), "{text}: {}", report(configured(text, &WDDM)));
    }
    let error = report(configured("{\n\t\"multitenancy\" 4\n}", &WDDM));
    assert!(!error.contains("tab"), "{error}");
}

#[test]
fn a_name_that_ends_with_shared_is_not_renamed_again() {
    let table = [
        "renameShared: true\nmultitenancy: 2\nresourceName: nvidia.com/gpu.shared",
        "renameShared: true\nresources:\n- {name: nvidia.com/gpu.Shared, multitenancy: 2}",
        "multitenancy: 4\nrenameShared: true\nresources:\n- {name: a/b.shared}",
    ];
    let environment = TestEnvironment::default()
        .file("/here/wddm.yaml", "renameShared: true\nmultitenancy: 2")
        .variable("WDDM_DEVICE_PLUGIN_RESOURCE_NAME", "nvidia.com/gpu.shared");
    let of_variable = beside_inputs([environment.report(&WDDM)]);
    insta::assert_snapshot!(format!("{}\n{of_variable}", reports(table)));
    for text in [
        "multitenancy: 2\nresourceName: nvidia.com/gpu.shared",
        "renameShared: true\nresourceName: nvidia.com/gpu.shared",
        "renameShared: true\nmultitenancy: 2\nresources:\n- {name: a/b.shared, multitenancy: 1}",
        "renameShared: true\nmultitenancy: 2\nresourceName: a/sharedshared",
    ] {
        assert!(configured(text, &WDDM).is_ok(), "{text}: {}", report(configured(text, &WDDM)));
    }
}

#[test]
fn folders_of_additional_mounts_may_be_patterns() {
    let mounts = |source: &str| format!("additionalMounts: {{amd: [{{source: {source}}}]}}");
    for source in [r"B*\vulkan64.dll", r"'*\*\vulkan64.dll'", r"a/B*x/vulkan64.dll"] {
        let config = configured(&mounts(source), &WDDM).unwrap();
        let mount = &config.policy.models[0].container.additional[&Vendor::Amd][0];
        assert_eq!(mount.destination.as_str(), "vulkan64.dll", "{source}");
    }
    let table = [
        r"B*\vulkan*.dll",
        "'*.dll'",
        r"'**\vulkan64.dll'",
        r"B?\vulkan64.dll",
        r"B*\..\..\vulkan64.dll",
        r"'\B*\vulkan64.dll'",
        r"'C:\B*\vulkan64.dll'",
        r"*\vulkan64.dll",
    ];
    insta::assert_snapshot!(reports(table.map(mounts)));
}
