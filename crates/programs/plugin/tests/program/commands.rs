//! The output of the commands, and the errors of wrong usage.

use std::process::Stdio;

use crate::harness::{capacities, inventories, outcome, program, recorded};

/// Runs the program, and replaces the folder of the recorded hosts in its output.
fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut program = program();
    // Text is compared, so no line is broken.
    program.env("COLUMNS", "1000").args(["--log-level", "error"]).args(arguments);
    let (status, out, err) = outcome(&program.output().unwrap());
    let folder = recorded("").display().to_string();
    (status, out.replace(&folder, "FIXTURES/"), err.replace(&folder, "FIXTURES/"))
}

/// The hosts whose output is compared: together they show every line that the output can have.
/// What differs from host to host otherwise is decided, and tested, in the crate `devices`.
const DEVICES_SHOWN: [&str; 4] = [
    "made-up-devices-without-adapter.yaml",
    "made-up-npu-beside-gpu.yaml",
    "made-up-remote-session.yaml",
    "made-up-vgpu.yaml",
];
const SIMULATIONS_SHOWN: [&str; 2] = ["aws-t4-two.yaml", "made-up-npu-beside-gpu.yaml"];

#[test]
fn devices_of_recorded_hosts_as_text_and_json() {
    for name in inventories() {
        let path = recorded(&name).display().to_string();
        for form in ["text", "json"] {
            let (status, out, err) = run(&["devices", "--inventory", &path, "--output", form]);
            assert_eq!((status, err.as_str()), (Some(0), ""), "{name}");
            if DEVICES_SHOWN.contains(&&*name) {
                insta::assert_snapshot!(format!("devices-{name}-{form}"), out);
            }
        }
    }
}

/// The resource of each device, or why it has none.
fn resources_of_devices(arguments: &[&str], variables: &[(&str, &str)]) -> (Vec<String>, String) {
    let mut devices = program();
    devices.args(["devices", "--output", "json"]).args(arguments);
    let output = devices.envs(variables.iter().copied()).output().unwrap();
    let (status, out, err) = outcome(&output);
    assert_eq!(status, Some(0), "{err}");
    let document: serde_json::Value = serde_json::from_str(&out).unwrap();
    let resource = |device: &serde_json::Value| {
        let [resource, why] = ["resource", "notAdvertised"].map(|key| device[key].as_str());
        assert!(resource.is_some() != why.is_some(), "{device}");
        resource.or(why).unwrap().to_owned()
    };
    (document["devices"].as_array().unwrap().iter().map(resource).collect(), err)
}

#[test]
fn devices_have_the_resource_of_the_configuration() {
    let display = "directx.microsoft.com/display";
    let host = recorded("aws-t4-two.yaml").display().to_string();
    let inventory = ["--inventory", host.as_str()];
    let of = |options: &[&str], variables: &[(&str, &str)]| {
        resources_of_devices(&[&inventory, options].concat(), variables)
    };
    assert_eq!(of(&[], &[]).0, [display, display]);
    assert_eq!(of(&["--driver-model", "legacy"], &[]).0, ["microsoft.com/directx"; 2]);
    let renamed = ("WDDM_DEVICE_PLUGIN_RESOURCE_NAME", "example.com/gpu");
    assert_eq!(of(&[], &[renamed]).0, ["example.com/gpu"; 2]);
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.yaml");
    let rule = "resources: [{name: example.com/slot, match: {locationPath: PCIROOT(0)#PCI(1C00)}}]";
    std::fs::write(&config, rule).unwrap();
    let config = ["--config", config.to_str().unwrap()];
    assert_eq!(of(&config, &[]).0, [display, "example.com/slot"]);
    let only_mcdm = of(&["--driver-model", "mcdm"], &[]).0;
    assert!(only_mcdm[0].starts_with("not matched by any enabled driver model"), "{only_mcdm:?}");

    // The devices of a node are listed also if its configuration is invalid.
    let invalid = ("WDDM_DEVICE_PLUGIN_MULTITENANCY", "-1");
    let (resources, err) = of(&[], &[invalid]);
    assert_eq!(resources, ["the configuration is invalid"; 2]);
    let warning = "warning: the configuration is invalid: variable WDDM_DEVICE_PLUGIN_MULTITENANCY";
    assert!(err.starts_with(warning), "{err}");
    let (status, out, err) = run(&["devices", "--inventory", &host, "--config", "/missing.yaml"]);
    assert_eq!((status, out.as_str()), (Some(2), ""));
    assert!(err.contains("/missing.yaml"), "{err}");
}

#[test]
fn simulations_of_recorded_hosts_as_text() {
    // In memory, the output has a note about it.
    if device_plugin::unix_sockets::skips_test() {
        return;
    }
    for name in inventories() {
        let path = recorded(&name).display().to_string();
        let (status, out, err) = run(&["simulate", "--inventory", &path]);
        assert_eq!((status, err.as_str()), (Some(0), ""), "{name}");
        if SIMULATIONS_SHOWN.contains(&&*name) {
            insta::assert_snapshot!(format!("simulate-{name}"), out);
        }
    }
}

/// The pods of the table, and whether each is admitted.
fn admitted(text: &str) -> Vec<(&str, &str)> {
    let table = text.lines().skip_while(|line| !line.starts_with("pod ")).skip(1);
    let rows = table.take_while(|line| !line.is_empty()).filter(|line| !line.starts_with(' '));
    rows.filter_map(|line| {
        let mut words = line.split_whitespace();
        let row = (words.next()?, words.next()?);
        matches!(row.1, "yes" | "no").then_some(row)
    })
    .collect()
}

#[test]
fn by_default_two_gpus_are_simulated_with_three_pods() {
    let (status, out, _) = run(&["simulate"]);
    assert_eq!(status, Some(0));
    assert_eq!(admitted(&out), [("pod-1", "yes"), ("pod-2", "yes"), ("pod-3", "no")], "{out}");
    assert_eq!(
        out.lines().next(),
        Some(
            "host: Microsoft Windows Server 2022 Datacenter, build 10.0.20348.1547, 2 adapters (a \
             recorded host for demonstration, not this one)"
        )
    );
    // It fits in a terminal of the usual height.
    assert!(out.lines().count() < 24, "{out}");
}

#[test]
fn a_simulation_fails_if_a_pod_of_the_user_is_refused() {
    let pod = |count| format!("--pod=one=directx.microsoft.com/display:{count}");
    for (count, expected) in [(2, 0), (3, 1)] {
        let (status, out, err) = run(&["simulate", &pod(count)]);
        assert_eq!((status, err.as_str()), (Some(expected), ""), "{out}");
        let verdict = if expected == 1 { "no" } else { "yes" };
        assert_eq!(admitted(&out), [("one", verdict)], "{out}");
    }
}

#[test]
fn a_refused_pod_says_what_the_node_has() {
    let (_, out, _) = run(&["simulate", "--pod=one=directx.microsoft.com/display:5"]);
    assert!(out.contains("  this node can never have more than 2\n"), "{out}");
    let pods = ["one", "two"].map(|name| format!("--pod={name}=directx.microsoft.com/display:2"));
    let (_, out, _) = run(&["simulate", &pods[0], &pods[1]]);
    assert!(out.contains("  the pods before hold 2 of 2\n"), "{out}");
    let (_, out, _) = run(&["simulate", "--pod=one=example.com/gpu:1"]);
    assert!(out.contains("  unknown resource\n"), "{out}");
    assert!(out.contains("\n     this node advertises directx.microsoft.com/display, "), "{out}");
    for (name, advice) in [
        ("Display", "names of resources differ by case: write directx.microsoft.com/display"),
        ("dispaly", "did you mean directx.microsoft.com/display?"),
    ] {
        let (_, out, _) = run(&["simulate", &format!("--pod=one=directx.microsoft.com/{name}:1")]);
        assert!(out.contains(advice), "{out}");
    }
    let (_, out, _) = run(&["simulate", "--verbose", "--pod=one=directx.microsoft.com/display:5"]);
    let never = "requests 5 of directx.microsoft.com/display, this node can never have more than 2";
    assert!(out.contains(never), "{out}");
}

/// Another resource of the host has devices.
#[test]
fn a_resource_without_devices_names_what_the_configuration_excludes_from_it() {
    let host = recorded("generated/npu-beside-gpu.yaml").display().to_string();
    let pod = "--pod=one=directx.microsoft.com/display:1";
    let (_, out, _) = run(&["simulate", "--inventory", &host, pod]);
    let gpu = "Qualcomm(R) Adreno(TM) X1-85 GPU (LUID 90001)";
    let reason = "adapter is integrated and includeIntegrated is false";
    let fix = "to advertise it, set `includeIntegrated: true`";
    assert!(out.contains(&format!("  this node has none; {gpu}: {reason}; {fix}\n")), "{out}");
    let note = format!(
        "note: {gpu} is not advertised: {reason}; directx.microsoft.com/display has no device: {fix}\n"
    );
    assert!(out.contains(&note), "{out}");
    // The NPU is another resource's device, and the software adapter nobody's.
    assert_eq!(out.matches(" has no device: ").count(), 1, "{out}");
    let (_, out, _) = run(&["simulate", "--pod=one=directx.microsoft.com/compute:1"]);
    assert!(out.contains("  this node has none\n"), "{out}");
}

#[test]
fn with_many_replicas_there_is_still_a_refused_pod() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.yaml");
    std::fs::write(&config, "multitenancy: 20").unwrap();
    let (status, out, _) = run(&["simulate", "--config", config.to_str().unwrap()]);
    assert_eq!(status, Some(0));
    let pods = admitted(&out);
    assert_eq!(pods.len(), 16, "{out}");
    assert_eq!(pods[14..], [("pod-15", "yes"), ("pod-16", "no")], "{out}");
    assert!(out.contains("  the pods before hold 15 of 40\n"), "{out}");
    let note = "note: 15 of 40 pods with one device of directx.microsoft.com/display are simulated";
    assert!(out.contains(note), "{out}");
}

#[test]
fn details_of_a_simulation_are_only_in_its_verbose_output() {
    let pod = "--pod=one=directx.microsoft.com/display:1";
    let (_, short, _) = run(&["simulate", pod]);
    assert!(
        !short.contains("  device   vpci") && short.contains("--verbose shows each pod's"),
        "{short}"
    );
    let (_, long, _) = run(&["simulate", "--verbose", pod]);
    for detail in [
        "pod one requests 1 of directx.microsoft.com/display: admitted\n",
        "  device   vpci-location-path://PCIROOT(0)#PCI(1B00)\n",
        "  files    14 from the driver, 3 from the plugin's defaults\n",
        "             vulkaninfo-x86.exe -> C:\\Windows\\SysWOW64\\vulkaninfo.exe\n",
        "  env      DIRECTX_VISIBLE_DEVICES=7048070\n",
        "  why      NVIDIA Tesla T4 (LUID 7048070): each device is allocated to one container\n",
    ] {
        assert!(long.contains(detail), "{detail}: {long}");
    }
    assert!(!long.contains("--verbose"), "{long}");
}

#[test]
fn a_host_with_the_gpus_and_the_windows_of_the_user_is_simulated() {
    let gpus = ["T4", "H100:mcdm", "AMD Radeon PRO W7900"].map(|gpu| ["--gpu", gpu]).concat();
    let (status, out, err) = run(&[&["simulate", "--windows", "2025"], gpus.as_slice()].concat());
    assert_eq!((status, err.as_str()), (Some(0), ""));
    insta::assert_snapshot!("simulate-gpus", out);
    let (_, json, _) = run(&["simulate", "--gpu", "T4", "--gpu", "T4", "--output", "json"]);
    let document: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(document["host"]["source"], "gpus");
    assert_eq!(document["resources"][1]["capacity"], 2);
}

/// What differs between versions of Windows: the device entry, and who gives containers the files.
#[test]
fn the_same_gpus_are_simulated_on_each_version_of_windows() {
    for (windows, device, files) in [
        ("2019", "class/5B45201D-F2F2-4F3B-85BB-30FF1F953599", 17),
        ("2022", "vpci-location-path://PCIROOT(0)#PCI(1B00)", 17),
        ("2025", "vpci-location-path://PCIROOT(0)#PCI(1B00)", 0),
    ] {
        let (_, json, _) = run(&["simulate", "--windows", windows, "--output", "json"]);
        let document: serde_json::Value = serde_json::from_str(&json).unwrap();
        let container = &document["pods"][0]["container"];
        assert_eq!(container["devices"][0]["hostPath"], device, "{windows}");
        assert_eq!(container["mounts"].as_array().unwrap().len(), files, "{windows}");
    }
}

#[test]
fn the_known_gpus_are_listed() {
    let (status, out, err) = run(&["simulate", "--list-gpus"]);
    assert_eq!((status, err.as_str()), (Some(0), ""));
    insta::assert_snapshot!("simulate-list-gpus", out);
}

/// An inventory of the page about them, in the order of the page.
fn example(n: usize) -> &'static str {
    let page = include_str!("../../../../../docs/reference/inventory.md");
    page.split("```yaml\n").nth(n + 1).and_then(|rest| rest.split("```").next()).unwrap()
}

/// The inventory of the page with a GPU in MCDM mode, an NPU and a GPU of AMD.
#[test]
fn the_devices_of_the_page_about_inventories_are_simulated() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("host.yaml");
    std::fs::write(&path, example(1)).unwrap();
    let path = path.to_str().unwrap();
    let document = |command| {
        let (_, out, err) = run(&[command, "--output", "json", "--inventory", path]);
        serde_json::from_str::<serde_json::Value>(&out).unwrap_or_else(|_| panic!("{err}"))
    };
    let simulation = document("simulate");
    assert_eq!(simulation["notes"], serde_json::json!([]));
    assert_eq!(
        capacities(&simulation),
        [("directx.microsoft.com/compute".into(), 2), ("directx.microsoft.com/display".into(), 1)]
    );
    let devices = document("devices")["devices"].take();
    let devices = devices.as_array().unwrap().iter();
    let kinds: Vec<String> = devices.map(|d| format!("{} {}", d["vendor"], d["kind"])).collect();
    assert_eq!(kinds, [r#""nvidia" "gpu""#, r#""intel" "npu""#, r#""amd" "gpu""#]);
}

/// The smallest inventory of its page.
#[test]
fn the_smallest_inventory_has_a_pod_with_its_gpu_and_one_without_pnp_says_why_it_has_none() {
    let smallest = example(0);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("host.yaml");
    std::fs::write(&path, smallest).unwrap();
    let arguments = ["simulate", "--inventory", path.to_str().unwrap()];
    let (status, out, err) = run(&arguments);
    assert_eq!((status, err.as_str()), (Some(0), ""));
    assert_eq!(admitted(&out), [("pod-1", "yes"), ("pod-2", "no")], "{out}");

    let stopped = smallest.replace("pnp: {", "pnp: {problemCode: 43, ");
    std::fs::write(&path, stopped).unwrap();
    let (_, out, _) = run(&arguments);
    let text = "\nno device of this host is healthy, so there is no pod to simulate\n";
    assert!(out.contains(text) && out.contains("Windows reports problem code 43"), "{out}");

    let without_pnp: Vec<&str> = smallest.lines().filter(|line| !line.contains("pnp:")).collect();
    std::fs::write(&path, without_pnp.join("\n")).unwrap();
    let (status, out, _) = run(&arguments);
    assert_eq!(status, Some(0));
    for text in [
        "\nno device of this host is advertised, so there is no pod to simulate\n",
        "\nnote: NVIDIA Tesla T4 (LUID 1) is not advertised: no PnP device has the LUID of the adapter\n",
        "\nhint: give the adapter in the inventory the key `pnp` with `id` and `locationPaths`",
    ] {
        assert!(out.contains(text), "{text}: {out}");
    }
}

/// As `doctor` says it.
#[test]
fn a_host_without_a_device_to_advertise_has_the_advice_about_each_cause() {
    let hints = |inventory: &str| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("host.yaml");
        std::fs::write(&path, format!("schema: directx-inventory/v1\n{inventory}")).unwrap();
        let (status, out, _) = run(&["simulate", "--inventory", path.to_str().unwrap()]);
        assert_eq!(status, Some(0));
        let (_, hints) = out.split_once("\nhint: ").unwrap_or_default();
        hints.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let none = hints("adapters: []\n");
    assert!(none.starts_with("install the GPU vendor's driver, or assign a GPU"), "{none}");
    let tcc = hints(
        "node: {nvml: {library: 'C:\\nvml.dll', gpus: [{index: 0, name: Tesla T4, driverVersion: \
         '538.15', driverModel: TCC}]}}\nadapters: []\n",
    );
    assert!(tcc.starts_with("for compute only, switch the GPU with"), "{tcc}");
    let stopped = hints(
        "adapters: []\ndevicesWithoutAdapter: [{id: 'PCI\\VEN_10DE&DEV_2684\\1', description: GPU, \
         problemCode: 43}]\n",
    );
    assert!(stopped.starts_with("GPU (PCI\\VEN_10DE&DEV_2684\\1): restart the host"), "{stopped}");
    let integrated = hints(
        "adapters: [{luid: 1, attributes: [d3d11-graphics, d3d12-graphics], hardware: true, \
         integrated: true, hardwareId: {vendor: 0x8086, device: 1}, driverDescription: iGPU, pnp: \
         {id: 'PCI\\VEN_8086&DEV_1\\1', locationPaths: ['PCIROOT(0)#PCI(0200)']}}]\n",
    );
    assert_eq!(integrated, "", "the note has the fix");
}

#[test]
fn a_simulation_warns_of_a_misspelt_variable() {
    for format in ["text", "json"] {
        let mut simulate = program();
        simulate.env("WDDM_DEVICE_PLUGIN_MULTITENANZY", "4").args(["simulate", "--output", format]);
        let (status, out, err) = outcome(&simulate.output().unwrap());
        let meant = "did you mean WDDM_DEVICE_PLUGIN_MULTITENANCY?";
        assert!(status == Some(0) && err.ends_with(&format!("{meant}\n")), "{err}");
        assert!(err.starts_with("warning: ") && err.lines().count() == 1, "{err}");
        assert_eq!(out.contains(meant), format == "json", "{out}");
    }
}

#[test]
fn a_recorded_inventory_reads_back_the_same() {
    for name in inventories() {
        let path = recorded(&name);
        let (status, out, _) = run(&["record", "--inventory", &path.display().to_string()]);
        assert_eq!(status, Some(0));
        let again = config::inventory::parse("again", &out).unwrap();
        assert_eq!(again, config::inventory::read(&path).unwrap());
    }
}

#[test]
fn wrong_usage_exits_2_with_a_fix() {
    let folder = tempfile::tempdir().unwrap();
    let broken = folder.path().join("broken.yaml");
    std::fs::write(&broken, "schema: directx-inventory/v1\nadapters:\n- luid: seven\n").unwrap();
    let broken = broken.display().to_string();
    let t4 = recorded("aws-t4-two.yaml").display().to_string();
    // On Windows, these read the live host.
    let without_inventory: &[&[&str]] =
        if cfg!(windows) { &[] } else { &[&["serve"], &["devices"], &["record"]] };
    let cases: &[&[&str]] = &[
        &["devices", "--filter", "gpus", "--inventory", &t4],
        &["devices", "--inventory", "/no/such/file.yaml"],
        &["simulate", "--inventory", &broken],
        &["simulate", "--gpu", "L4S"],
        &["simulate", "--gpu", "T4:tcc"],
        &["simulate", "--gpu", "T4:npu"],
        &["simulate", "--gpu", "T4:mcdm", "--windows", "2019"],
        &["simulate", "--gpu", "T4", "--inventory", &t4],
        &["simulate", "--windows", "2025", "--inventory", &t4],
        &["simulate", "--pod", "x"],
        &["simulate", "--pod", "x=directx.microsoft.com/display:0"],
        &["simulate", "--pod", "x=directx.microsoft.com/display:-1"],
        &["simulate", "--pod", "x=gpu:1"],
        &["simulate", "--output", "node", "--pod", "x=directx.microsoft.com/display:1"],
        &["simulate", "--output", "node", "--verbose"],
        &["simulate", "--pod", "x=a/b:1", "--pod", "x=a/b:2"],
        &["simulate", "--driver-model", "vulkan"],
        &["simulate", "--driver-model", "legacy", "--driver-model", "wddm"],
        &["simulate", "--config", "/no/such/config.yaml"],
        &["simulate", "--gpu", "T4", "A10"],
        &["simulate", "--driver-model", "wddm", "mcdm"],
        &["simulate", "--pod", "a=a/b:1,b=a/b:1"],
        &["simulate", "--driver-model", "tcc"],
        &["simulate", "--driver-model", "nvidia"],
        &["simulate", "--driver-model", "wddm2"],
        &["simulate", "--version"],
        &["doctor", "host.yaml"],
        &["doctor", "--image-os-version", "21H2"],
        &["serve", "--multitenancy", "4"],
        &["serve", "--min-memory-mib=4"],
        &["serve", "--replicas", "4"],
        &["--driver-model", "wddm", "serve"],
        &["record", "host.yaml"],
        &["version"],
        &["usage"],
        &["serve", "help"],
        &["service", "start"],
        &["service", "disable"],
        &["service", "delete"],
        &["service", "install", "--", "--multitenancy", "4"],
        &["restart"],
    ];
    let not_found = std::fs::read("/no/such/file.yaml").unwrap_err().to_string();
    for arguments in without_inventory.iter().chain(cases) {
        let (status, out, err) = run(arguments);
        assert_eq!((status, out.as_str()), (Some(2), ""), "{arguments:?}: {err}");
        let message = err
            .replace(&folder.path().display().to_string(), "FOLDER")
            .replace("FOLDER\\", "FOLDER/")
            .replace("directx-device-plugin.exe", "directx-device-plugin")
            .replace(&not_found, "No such file or directory (os error 2)");
        let name = arguments
            .join(" ")
            .replace(&folder.path().display().to_string(), "FOLDER")
            .replace(&recorded("").display().to_string(), "FIXTURES/");
        insta::with_settings!({description => name.clone(), omit_expression => true}, {
            let id = name.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
            insta::assert_snapshot!(format!("wrong-{id}"), message);
        });
    }
}

/// A comma is part of a value of `--pod`.
#[test]
fn every_repeatable_option_takes_its_values_with_commas() {
    fn check(command: &clap::Command, found: &mut usize) {
        for option in command.get_arguments().filter(|option| option.get_long().is_some()) {
            if matches!(option.get_action(), clap::ArgAction::Append) {
                let name = option.get_long().unwrap();
                let help = option.get_help().unwrap().to_string();
                let commas = option.get_value_delimiter() == Some(',');
                assert_eq!(commas, name != "pod", "{} --{name}", command.get_name());
                let says = if commas { "repeatable, or separated by commas" } else { "repeatable" };
                assert!(help.contains(says), "--{name}: {help}");
                *found += 1;
            }
        }
        command.get_subcommands().for_each(|command| check(command, found));
    }
    let mut found = 0;
    for command in plugin::programs() {
        check(&command, &mut found);
    }
    assert!(found > 8, "{found}");
    for [option, value] in [["--gpu", "T4,A10"], ["--driver-model", "wddm,mcdm"]] {
        let (status, _, err) = run(&["simulate", option, value]);
        assert_eq!((status, err.as_str()), (Some(0), ""), "{option}");
    }
}

#[test]
fn invalid_environment_variables_are_named() {
    let t4 = recorded("aws-t4-two.yaml").display().to_string();
    for (name, value) in [
        ("WDDM_DEVICE_PLUGIN_CONFIG_FILE", "relative.yaml"),
        ("WDDM_DEVICE_PLUGIN_CONFIG_FILE", "/no/such/file.yaml"),
        ("MCDM_DEVICE_PLUGIN_MULTITENANCY", "-1"),
        ("WDDM_DEVICE_PLUGIN_INCLUDE_INTEGRATED", "maybe"),
    ] {
        let output =
            program().env(name, value).args(["simulate", "--inventory", &t4]).output().unwrap();
        let (status, _, err) = outcome(&output);
        assert_eq!(status, Some(2), "{name}={value}: {err}");
        assert!(err.contains(name) && err.contains(value), "{err}");
    }
}

#[test]
fn a_closed_pipe_is_no_failure() {
    let mut child = program()
        .args(["simulate", "--log-level", "error"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let (status, _, err) = outcome(&child.wait_with_output().unwrap());
    assert_eq!((status, err.as_str()), (Some(0), ""));
}

/// On Windows they run the daemon on the live host.
#[cfg(not(windows))]
#[test]
fn earlier_program_names_run_the_daemon_for_one_driver_model() {
    for program in
        [env!("CARGO_BIN_EXE_device-plugin-wddm"), env!("CARGO_BIN_EXE_device-plugin-mcdm")]
    {
        let output = std::process::Command::new(program).output().unwrap();
        let (status, _, err) = outcome(&output);
        assert_eq!(status, Some(2));
        assert!(err.contains("--inventory FILE"), "{err}");
    }
}

/// On Windows, a program of the daemon asks NVML in a child process with this argument.
#[cfg(not(windows))]
#[test]
fn a_process_that_asks_nvml_is_refused_here_and_not_documented() {
    for program in [
        env!("CARGO_BIN_EXE_directx-device-plugin"),
        env!("CARGO_BIN_EXE_device-plugin-wddm"),
        env!("CARGO_BIN_EXE_device-plugin-mcdm"),
    ] {
        let run = |arguments: &[&str]| {
            outcome(&std::process::Command::new(program).args(arguments).output().unwrap())
        };
        let (status, out, err) = run(&["--report-nvml", "a folder"]);
        let error = "error: --report-nvml is not supported on this system: NVML is asked only on \
                     Windows\n";
        assert_eq!((status, out.as_str(), err.as_str()), (Some(2), "", error));
        let (status, help, _) = run(&["--help"]);
        assert_eq!(status, Some(0));
        assert!(!help.contains("nvml"), "{help}");
        // Only the first argument counts.
        let (status, _, err) = run(&["--log-level", "warn", "--report-nvml"]);
        assert_eq!(status, Some(2));
        assert!(err.contains("unexpected argument"), "{err}");
    }
}

/// A result is not mixed with log lines, unless `--log-level` requests them.
#[test]
fn the_default_log_level_is_warn_for_commands_and_info_for_the_daemon() {
    let t4 = recorded("aws-t4-two.yaml").display().to_string();
    let stderr = |arguments: &[&str]| {
        let output = program().args(arguments).output().unwrap();
        outcome(&output).2
    };
    let simulate = ["simulate", "--inventory", &t4];
    assert_eq!(stderr(&simulate), "");
    for command in ["devices", "record", "doctor"] {
        assert_eq!(stderr(&[command, "--inventory", &t4]), "", "{command}");
    }
    let with_level = |level| stderr(&[&["--log-level", level], &simulate[..]].concat());
    assert!(with_level("info").contains("info: "), "{}", with_level("info"));
}

/// The report of a simulation has what the daemon would log.
#[test]
fn a_simulation_logs_what_the_daemon_would_log_only_on_request() {
    // A device has problem code 43.
    let unhealthy = recorded("made-up-npu-beside-gpu.yaml").display().to_string();
    let simulate = ["simulate", "--inventory", &unhealthy];
    for (level, lines) in
        [(&[][..], 0), (&["--log-level", "warn"], 1), (&["--log-level", "error"], 0)]
    {
        let output = program().args([&simulate[..], level].concat()).output().unwrap();
        let (_, out, err) = outcome(&output);
        assert!(out.contains("\n  Unhealthy  PCI\\VEN_10DE&DEV_2684&"), "{out}");
        assert!(out.contains("note: ") && out.contains(" is unhealthy: "), "{out}");
        let warnings = err.lines().filter(|line| line.starts_with("warning: device is unhealthy "));
        assert_eq!(warnings.count(), lines, "{err}");
    }
}

#[test]
fn a_service_is_not_installed_with_wrong_options() {
    let path = std::path::absolute(recorded("aws-t4-two.yaml")).unwrap();
    let inventory = path.to_str().unwrap();
    for (options, error, hint) in [
        (&["--nonsense"][..], "unexpected argument '--nonsense'", "--help"),
        (&["--driver-model", "wddn"], "wddn", ""),
        (&["--config", "plugin.yaml"], "`--config plugin.yaml` is not an absolute path", "hint: "),
        (&["--inventory", inventory, "--config", "/missing.yaml"], "missing.yaml", ""),
    ] {
        let arguments = [&["service", "install", "--"], options].concat();
        let (status, out, err) = run(&arguments);
        assert_eq!((status, out.as_str()), (Some(2), ""), "{err}");
        assert!(err.contains(error) && err.contains(hint), "{err}");
    }
}

#[cfg(not(windows))]
#[test]
fn a_service_needs_windows() {
    let path = std::path::absolute(recorded("aws-t4-two.yaml")).unwrap();
    let inventory = path.to_str().unwrap();
    for arguments in [
        &["service", "install", "--", "--inventory", inventory][..],
        &["service", "uninstall"],
        &["service", "run"],
    ] {
        let (status, _, err) = run(arguments);
        assert_eq!(status, Some(2), "{err}");
        assert!(err.contains("`service` works only on Windows\nhint: "), "{err}");
    }
}
