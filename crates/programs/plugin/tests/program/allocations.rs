//! Each rule that makes an allocation correct on Windows, through `simulate` on recorded
//! hosts.

use serde_json::json;

use crate::harness::{Simulation, capacities, devices, mounts, notes, outcome, pod, recorded};

const T4: &str = "aws-t4-two.yaml";
const SERVER_2019: &str = "azure-m60.yaml";
const SERVER_2025: &str = "made-up-l4-2025.yaml";
const TWO_VENDORS: &str = "made-up-two-vendors.yaml";
const NPU: &str = "made-up-npu-beside-gpu.yaml";
const DDA_GUEST: &str = "made-up-dda-guest.yaml";
const REMOTE_SESSION: &str = "made-up-remote-session.yaml";

const DISPLAY: &str = "directx.microsoft.com/display";
const COMPUTE: &str = "directx.microsoft.com/compute";
const CLASS: &str = "class/5B45201D-F2F2-4F3B-85BB-30FF1F953599";

fn pod_flag(name: &str, resource: &str, count: u32) -> String {
    format!("--pod={name}={resource}:{count}")
}

#[test]
fn one_device_by_location_path_and_several_by_class() {
    let one = pod_flag("one", DISPLAY, 1);
    let two = pod_flag("two", DISPLAY, 2);
    for (host, flags, device) in [
        (T4, &one, "vpci-location-path://PCIROOT(0)#PCI(1B00)"),
        (T4, &two, CLASS),
        (SERVER_2019, &one, CLASS),
        (SERVER_2025, &one, "vpci-location-path://PCIROOT(0)#PCI(0100)#PCI(0000)"),
        (TWO_VENDORS, &two, CLASS),
    ] {
        let document = Simulation { host, flags: &[flags.as_str()], ..Default::default() }.run();
        let pod = &document["pods"][0];
        assert_eq!(devices(pod), [device], "{host} {flags}");
        assert_eq!(pod["container"]["devices"][0]["containerPath"], "");
        assert_eq!(pod["container"]["devices"][0]["permissions"], "");
    }
}

/// A GPU that Hyper-V passes to a virtual machine: its path contains `#` and `{}` in parentheses.
#[test]
fn a_gpu_on_vmbus_is_allocated_matched_and_cordoned_by_its_location_path() {
    let path = |gpu: u32| {
        format!(
            "ACPI(_SB_)#ACPI(VMOD)#ACPI(VMBS)#VMBUS({{44C4F61D-4444-4400-9D52-802E27EDE19F}}#\
             {{0B4A8C1E-000{gpu}-0000-3130-444531454238}})#VPCI(0)#PCI(0000)"
        )
    };
    let run = |config: &str, flags: &[&str]| {
        Simulation { host: DDA_GUEST, config, flags, ..Default::default() }.run()
    };
    let one = pod_flag("one", DISPLAY, 1);
    let document = run("", &[&one]);
    let pod = &document["pods"][0];
    assert_eq!(devices(pod), [format!("vpci-location-path://{}", path(1))]);
    assert_eq!(pod["container"]["envs"]["DIRECTX_DEVICE_0_LOCATION_PATH"], path(1));
    let id = r"PCI\VEN_10DE&DEV_1EB8&SUBSYS_12A210DE&REV_A1\6&1E2B8A3&0&0\0";
    assert_eq!(pod["deviceIds"], json!([id]));

    // A rule matches one GPU, and the beginning of the paths both, without regard to case.
    let second = path(2).to_lowercase();
    let prefix = second.split_once("0b4a8c1e").unwrap().0;
    for (pattern, counts) in [(second.clone(), [1, 1]), (format!("{prefix}*"), [0, 2])] {
        let rule = format!("resources:\n- name: a.b/slot\n  match:\n    locationPath: {pattern}\n");
        let document = run(&rule, &[]);
        let found = [DISPLAY, "a.b/slot"].map(|resource| capacity(&document, resource));
        assert_eq!(found, counts, "{pattern}");
    }

    for names in [format!("[\"{second}\"]"), format!("\n- {second}")] {
        let document = run(&format!("cordonedDevices: {names}"), &[&one]);
        let mut resources = document["resources"].as_array().unwrap().iter();
        let display = resources.find(|resource| resource["name"] == DISPLAY).unwrap();
        assert_eq!((&display["capacity"], &display["allocatable"]), (&2.into(), &1.into()));
        assert_eq!(devices(&document["pods"][0]), [format!("vpci-location-path://{}", path(1))]);
    }
}

/// The number of devices of a resource.
fn capacity(document: &serde_json::Value, resource: &str) -> u64 {
    let mut resources = capacities(document).into_iter();
    resources.find(|(name, _)| name == resource).unwrap().1
}

/// No driver model advertises an adapter that is not a GPU. `legacy` selects adapters only by name.
#[test]
fn displays_and_basic_adapters_are_never_allocated_as_gpus() {
    let basic = "generated/basic-adapters.yaml";
    for (host, name, expected) in [
        (REMOTE_SESSION, "display", 0),
        (REMOTE_SESSION, "nvidia", 1),
        (basic, "microsoft", 0),
        (basic, "e", 0),
    ] {
        let flags = ["--driver-model", "legacy"];
        let variables = [("DIRECTX_GPU_MATCH_NAME", name)];
        let simulation = Simulation { host, flags: &flags, variables: &variables, config: "" };
        let document = simulation.run();
        assert_eq!(capacity(&document, "microsoft.com/directx"), expected, "{host} {name}");
    }
    let document = Simulation { host: REMOTE_SESSION, ..Default::default() }.run();
    assert_eq!(capacity(&document, DISPLAY), 1, "the GPU stays in service");
    let document = Simulation { host: basic, ..Default::default() }.run();
    assert_eq!(capacity(&document, DISPLAY), 0);
    let config = "resources:\n- name: a.b/video\n  match: {pciId: '1414:5353'}\n";
    let document = Simulation { host: basic, config, ..Default::default() }.run();
    assert_eq!([DISPLAY, "a.b/video"].map(|name| capacity(&document, name)), [0, 1]);
}

/// With the display adapter class such a container would start without its GPUs.
#[test]
fn several_gpus_without_a_display_are_refused_unless_a_class_is_configured() {
    let host = "made-up-h100-mcdm.yaml";
    let all = pod_flag("all", COMPUTE, 8);
    let run = |config| Simulation { host, config, flags: &[&all], ..Default::default() }.run();
    let refused = run("");
    let pod = &refused["pods"][0];
    assert_eq!(pod["admitted"], false);
    let reason = pod["reason"].as_str().unwrap();
    assert!(reason.starts_with("CreateContainerConfigError: "), "{reason}");
    assert!(reason.contains("deviceClass is not set for the driver model mcdm"), "{reason}");
    let class = "1024E4C9-47C9-48D3-B4A8-F9DF78523B53";
    assert!(reason.contains(class), "{reason}");
    let admitted = run(&format!("deviceClass:\n  mcdm: '{{{}}}'", class.to_lowercase()));
    assert_eq!(devices(&admitted["pods"][0]), [format!("class/{class}")]);
    let notes = notes(&admitted["pods"][0]);
    assert!(notes.contains(&format!("all devices of the class {class} of the host")), "{notes}");
}

/// The manifests of the earlier plugin's names set this variable.
#[test]
fn a_variable_gives_a_container_the_first_of_several_compute_only_devices() {
    let all = pod_flag("all", COMPUTE, 8);
    let variables = [("MCDM_DEVICE_PLUGIN_MULTI_DEVICE", "first")];
    let simulation = Simulation {
        host: "made-up-h100-mcdm.yaml",
        flags: &[&all],
        variables: &variables,
        ..Default::default()
    };
    let document = simulation.run();
    let pod = pod(&document, "all");
    assert_eq!(pod["admitted"], true, "{pod}");
    assert_eq!(pod["deviceIds"].as_array().unwrap().len(), 8, "the kubelet has allocated all");
    let granted = devices(pod);
    let [device] = granted.as_slice() else { panic!("{pod}") };
    let path = device.strip_prefix("vpci-location-path://").unwrap();
    let envs = &pod["container"]["envs"];
    assert_eq!(envs["DIRECTX_DEVICE_0_LOCATION_PATH"], path);
    assert_eq!(envs["DIRECTX_DEVICE_1_LOCATION_PATH"], json!(null));
    let warning = "warning: requested 8 devices, but Windows supports one device entry per \
                   container and multiDevice is first: only `PCI";
    assert!(notes(pod).contains(warning), "{}", notes(pod));

    // The variable belongs to MCDM.
    let two = pod_flag("two", DISPLAY, 2);
    let document =
        Simulation { host: T4, flags: &[&two], variables: &variables, ..Default::default() }.run();
    assert!(notes(&document["pods"][0]).contains("all display adapters"), "{document}");
}

/// Pods that request this resource need not know the mode of a GPU.
#[test]
fn a_rule_for_gpus_has_those_of_both_driver_models() {
    let config = "resources: [{name: example.com/gpu, match: {kind: gpu}}]";
    let document =
        Simulation { host: "made-up-wddm-and-mcdm.yaml", config, ..Default::default() }.run();
    let names = [DISPLAY, COMPUTE, "example.com/gpu"];
    assert_eq!(names.map(|name| capacity(&document, name)), [0, 0, 2]);
    let document = Simulation { host: NPU, config, ..Default::default() }.run();
    assert_eq!(names.map(|name| capacity(&document, name)), [0, 1, 1]);
}

#[test]
fn devices_of_two_resources_cause_a_warning() {
    let flag = format!("{},{COMPUTE}:1", pod_flag("both", DISPLAY, 1));
    let config = "includeDetachable: true";
    let flags = [flag.as_str()];
    let document = Simulation { host: NPU, config, flags: &flags, ..Default::default() }.run();
    for pod in document["pods"].as_array().unwrap() {
        assert_eq!(pod["admitted"], true);
        assert_eq!((&pod["resource"], &pod["count"]), (&DISPLAY.into(), &1.into()));
        let request = |resource| json!({"resource": resource, "count": 1});
        assert_eq!(pod["requests"], json!([request(DISPLAY), request(COMPUTE)]));
        assert_eq!(pod["deviceIds"].as_array().unwrap().len(), 2);
        assert_eq!(devices(pod).len(), 1, "the kubelet keeps one device entry");
        let notes = notes(pod);
        assert!(notes.contains("warning: the kubelet drops device vpci-location"), "{notes}");
        assert!(notes.contains("devices of several resources"), "{notes}");
        // The hints of both resources survive, although the kubelet keeps one value of a name.
        let envs = &pod["container"]["envs"];
        let of = |resource| envs[format!("DIRECTX_VISIBLE_DEVICES_{resource}")].as_str().unwrap();
        let both = [of("DIRECTX_MICROSOFT_COM_DISPLAY"), of("DIRECTX_MICROSOFT_COM_COMPUTE")];
        assert_ne!(both[0], both[1]);
        assert!(both.contains(&envs["DIRECTX_VISIBLE_DEVICES"].as_str().unwrap()));
    }
}

/// A container with two resources has the launcher once, whichever answer the kubelet keeps.
#[test]
fn visibility_mounts_the_launcher_once_without_touching_the_disk() {
    let flag = format!("{},{COMPUTE}:1", pod_flag("both", DISPLAY, 1));
    let launcher = [
        r"System32\directx-visible.exe",
        r"System32\directx-visible-filter.dll",
        r"SysWOW64\directx-visible-filter32.dll",
    ];
    // A prediction counts the files as provided.
    for (visibility, expected) in
        [("launcher", &launcher[..]), ("required", &launcher), ("off", &[])]
    {
        let config = format!("includeDetachable: true\nvisibility: {visibility}");
        let config = config.as_str();
        let flags = [flag.as_str()];
        let document = Simulation { host: NPU, config, flags: &flags, ..Default::default() }.run();
        for pod in document["pods"].as_array().unwrap() {
            let paths = mounts(pod).into_iter().filter(|path| path.contains("directx-visible"));
            assert_eq!(paths.collect::<Vec<_>>(), expected);
            let explained = notes(pod).contains("directx-visible is mounted");
            assert_eq!(explained, visibility != "off", "{}", notes(pod));
            let mounts = pod["container"]["mounts"].as_array().unwrap();
            assert!(mounts.iter().all(|mount| mount["readOnly"] == true));
        }
    }
    // Rules decide for themselves, and so does the driver model `legacy`.
    let config = "resources: [{name: example.com/one, match: {locationPath: 'PCIROOT(0)#PCI(1B00)'}, visibility: launcher}]";
    let document = Simulation { host: T4, config, ..Default::default() }.run();
    assert!(mounts(pod(&document, "one-1")).contains(&launcher[0]));
    assert!(!mounts(pod(&document, "display-1")).contains(&launcher[0]));
    let flags = ["--driver-model", "legacy"];
    let config = "visibility: launcher";
    let document = Simulation { host: T4, config, flags: &flags, ..Default::default() }.run();
    assert_eq!(mounts(pod(&document, "pod-1")), launcher);
}

#[test]
fn files_are_mounted_by_build_and_by_configuration() {
    let skip = [("WDDM_DEVICE_PLUGIN_SKIP_RUNTIME_MOUNTS", "true")];
    for (host, config, variables, count) in [
        (T4, "", &[][..], 17),
        (T4, "runtimeMounts: never", &[], 0),
        (T4, "", &skip, 0),
        (T4, "runtimeMounts: always", &[], 17),
        (T4, "excludeMounts: [NVCUDA.dll, vulkaninfo.exe]", &[], 13),
        (SERVER_2019, "", &[], 2),
        (SERVER_2025, "", &[], 0),
        (SERVER_2025, "runtimeMounts: always", &[], 4),
        (SERVER_2025, "runtimeMounts: extra", &[], 1),
        (T4, "runtimeMounts: extra", &[], 3),
    ] {
        let one = pod_flag("one", DISPLAY, 1);
        let flags = [one.as_str()];
        let document = Simulation { host, config, variables, flags: &flags }.run();
        let pod = pod(&document, "one");
        assert_eq!(mounts(pod).len(), count, "{host} {config}");
        // The reason comes from the plan.
        let has_reason = notes(pod).contains("no runtime files are mounted: runtimeMounts is ");
        assert_eq!(has_reason, count == 0, "{}", notes(pod));
    }
}

/// Windows Server 2025 does not provide the programs that the earlier plugins mounted by default.
#[test]
fn defaults_that_are_left_out_with_the_files_of_the_driver_are_explained() {
    let run = |config| Simulation { host: SERVER_2025, config, ..Default::default() }.run();
    let auto = run("");
    let left_out = r"\nvidia-smi.exe, named by the defaults, is left out with the driver's files; set `runtimeMounts: extra`";
    assert!(notes(&auto["pods"][0]).contains(left_out), "{auto}");
    let extra = run("runtimeMounts: extra");
    assert_eq!(mounts(&extra["pods"][0]), [r"System32\nvidia-smi.exe"]);
    assert!(!notes(&extra["pods"][0]).contains(left_out), "{extra}");
}

#[test]
fn files_for_32_bit_programs_that_are_left_out_are_explained() {
    let one = pod_flag("one", DISPLAY, 1);
    let config = "runtimeFilesWow64: false";
    let document = Simulation { host: T4, config, flags: &[&one], ..Default::default() }.run();
    let pod = pod(&document, "one");
    assert_eq!(mounts(pod).len(), 10);
    let expected = "OpenCL32.dll, named by the driver, is for 32-bit programs, and \
                    runtimeFilesWow64 is false";
    assert!(notes(pod).contains(expected), "{}", notes(pod));
}

#[test]
fn missing_and_colliding_files_are_explained() {
    let two = pod_flag("two", DISPLAY, 2);
    let document = Simulation { host: TWO_VENDORS, flags: &[&two], ..Default::default() }.run();
    let pod = pod(&document, "two");
    assert_eq!(
        mounts(pod),
        [
            r"System32\OpenCL.dll",
            r"System32\nvcuda.dll",
            r"System32\nvidia-smi.exe",
            r"System32\amfrt64.dll",
            r"System32\atio6axx.dll",
            r"SysWOW64\OpenCL.dll",
        ]
    );
    let notes = notes(pod);
    assert!(
        notes.contains(r"B026261\amdvlk64.dll, named by the driver, does not exist"),
        "{notes}"
    );
    assert!(
        notes.contains(r"B026261\amd_opencl64.dll, named by the driver: C:\Windows\System32\DriverStore\FileRepository\nvgridsw.inf_amd64_0000000000000002\OpenCL64.dll is mounted at"),
        "{notes}"
    );
}

#[test]
fn hints_name_the_devices_and_can_be_disabled() {
    let two = pod_flag("two", DISPLAY, 2);
    let run = |config| Simulation { host: T4, config, flags: &[&two], ..Default::default() }.run();
    let document = run("");
    let envs = &pod(&document, "two")["container"]["envs"];
    assert_eq!(envs["DIRECTX_VISIBLE_DEVICES"], "7048070,7098126");
    assert_eq!(envs["DIRECTX_DEVICE_1_NAME"], "NVIDIA Tesla T4");
    assert_eq!(envs["DIRECTX_DEVICE_1_LOCATION_PATH"], "PCIROOT(0)#PCI(1C00)");
    let document = run("environmentHints: false");
    assert_eq!(pod(&document, "two")["container"]["envs"], serde_json::json!({}));
}

#[test]
fn rules_move_devices_to_their_own_resources() {
    let config = r"
resources:
- name: nvidia.com/gpu
  match: {vendor: nvidia}
  multitenancy: 3
- name: intel.com/npu
  match: {description: AI Boost, driverModel: mcdm}
- name: amd.com/gpu
  match: {vendor: amd}
";
    let run = |host| Simulation { host, config, ..Default::default() }.run();
    let names = |list: &[(&str, u64)]| -> Vec<(String, u64)> {
        list.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect()
    };
    let document = run(TWO_VENDORS);
    assert_eq!(
        capacities(&document),
        names(&[
            ("amd.com/gpu", 1),
            (COMPUTE, 0),
            (DISPLAY, 0),
            ("intel.com/npu", 0),
            ("nvidia.com/gpu", 3),
        ])
    );
    assert_eq!(document["notes"][0], "a rule of intel.com/npu matches no device");
    let document = run(NPU);
    assert_eq!(capacities(&document)[3], ("intel.com/npu".to_owned(), 1));
    // The unhealthy GPU counts as capacity and is not allocatable.
    assert_eq!(document["resources"][4]["capacity"], 3);
    assert_eq!(document["resources"][4]["allocatable"], 0);
}

#[test]
fn shared_devices_are_distributed_or_packed() {
    let pods = [pod_flag("a", DISPLAY, 1), pod_flag("b", DISPLAY, 1), pod_flag("c", DISPLAY, 2)];
    let flags: Vec<&str> = pods.iter().map(String::as_str).collect();
    let device = |id: &str| if id.contains("&D8\\") { 'D' } else { 'E' };
    for (config, expected) in
        [("multitenancy: 4", "DE"), ("multitenancy: 4\nallocationPolicy: packed", "DD")]
    {
        let document = Simulation { host: T4, config, flags: &flags, ..Default::default() }.run();
        let got = |name| -> String {
            let ids = pod(&document, name)["deviceIds"].as_array().unwrap();
            ids.iter().map(|id| device(id.as_str().unwrap())).collect()
        };
        assert_eq!(got("a") + &got("b"), expected, "{config}");
        // No container gets two replicas of a device while another device is free.
        assert_eq!(got("c"), "DE", "{config}");
    }
}

#[test]
fn the_legacy_model_supports_manifests_of_2019() {
    let flags = ["--driver-model", "legacy"];
    let variables = [("LEGACY_DEVICE_PLUGIN_RESOURCE_NAME", "windows.alibabacloud.com/directx")];
    for (variables, name) in
        [(&[][..], "microsoft.com/directx"), (&variables, "windows.alibabacloud.com/directx")]
    {
        let document =
            Simulation { host: T4, flags: &flags, variables, ..Default::default() }.run();
        assert_eq!(capacities(&document), [(name.to_owned(), 2)]);
        let pod = pod(&document, "pod-1");
        assert_eq!(devices(pod), [CLASS]);
        assert_eq!(mounts(pod).len(), 0);
        let envs = &pod["container"]["envs"];
        assert_eq!(envs["DIRECTX_GPU_Name"], "NVIDIA Tesla T4");
        assert!(envs["DIRECTX_GPU_PNPDeviceID"].as_str().unwrap().starts_with("PCI\\VEN_10DE"));
        assert_eq!(envs["DIRECTX_GPU_DriverVersion"], "");
    }
    let variables = [("DIRECTX_GPU_MATCH_NAME", "radeon")];
    let simulation =
        Simulation { host: TWO_VENDORS, flags: &flags, variables: &variables, config: "" };
    let document = simulation.run();
    assert_eq!(capacities(&document), [("microsoft.com/directx".to_owned(), 1)]);
    // Kubernetes' own test of device plugins on Windows sets a blank.
    for (searched, count) in [(" ", 2), ("", 1), ("a10 ", 0)] {
        let variables = [("DIRECTX_GPU_MATCH_NAME", searched)];
        let document =
            Simulation { host: TWO_VENDORS, flags: &flags, variables: &variables, config: "" }
                .run();
        let expected = [("microsoft.com/directx".to_owned(), count)];
        assert_eq!(capacities(&document), expected, "{searched:?}");
    }
}

/// A file of the driver's folder `B026261`, whose name the next driver changes.
#[test]
fn a_pattern_mounts_a_file_of_this_driver_and_of_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    let next = folder.path().join("next.yaml");
    let host = std::fs::read_to_string(recorded(TWO_VENDORS)).unwrap();
    std::fs::write(&next, host.replace("B026261", "B999999")).unwrap();
    let next = next.to_str().unwrap();
    let mount = |source: &str| {
        format!(
            "runtimeMounts: extra\nadditionalMounts: {{amd: [{{source: '{source}', destination: amf.dll}}]}}\n\
             resources: [{{name: amd.com/gpu, match: {{vendor: amd}}}}]"
        )
    };
    let flag = pod_flag("pod", "amd.com/gpu", 1);
    let pattern = mount(r"B*\amfrt64.dll");
    let none = mount(r"C*\amfrt64.dll");
    for (host, config, mounted) in [
        (TWO_VENDORS, &*pattern, &[r"System32\amf.dll"][..]),
        (next, &pattern, &[r"System32\amf.dll"]),
        (next, &mount(r"B026261\amfrt64.dll"), &[]),
        (next, &none, &[]),
    ] {
        let document = Simulation { host, config, flags: &[&flag], ..Default::default() }.run();
        assert_eq!(mounts(pod(&document, "pod")), mounted, "{host} {config}");
    }
    let document =
        Simulation { host: next, config: &none, flags: &[&flag], ..Default::default() }.run();
    let notes = notes(pod(&document, "pod"));
    assert!(
        notes.contains(r"\C*\amfrt64.dll, named by the configuration, matches no file"),
        "{notes}"
    );
}

#[test]
fn a_pod_with_an_unknown_resource_learns_which_resources_exist() {
    let wrong = pod_flag("wrong", "nvidia.com/gpu", 1);
    let document = Simulation { host: T4, flags: &[&wrong], ..Default::default() }.run();
    let pod = pod(&document, "wrong");
    assert_eq!(pod["admitted"], false);
    assert!(
        notes(pod).contains(&format!(
            "this node advertises {DISPLAY}, {COMPUTE}, but not nvidia.com/gpu"
        ))
    );
}

/// Nothing is registered with an invalid configuration.
#[test]
fn an_invalid_configuration_is_refused_before_anything_starts() {
    let output = Simulation { host: T4, config: "multiTenants: 2", ..Default::default() }.output();
    let (status, out, err) = outcome(&output);
    assert_eq!((status, &*out), (Some(2), ""), "{err}");
    assert!(err.contains("config.yaml:1: unknown key `multiTenants`"), "{err}");
}
