//! `gen-device-mounts`.

use crate::fixtures::{MadeUp, inventories, inventory};
use crate::outcome::{GEN_DEVICE_MOUNTS, Outcome, program};
use crate::reference::values;

fn mounts(arguments: &[&str]) -> Outcome {
    Outcome::of(&mut program(GEN_DEVICE_MOUNTS, arguments))
}

fn on(host: &std::path::Path, arguments: &[&str]) -> Outcome {
    mounts(&[arguments, &["--inventory", host.to_str().unwrap()]].concat())
}

/// The hosts whose flags are compared: one gives each device by its path and mounts files of two
/// drivers, the other one gives the class of its devices.
const SHOWN: [&str; 2] = ["azure-m60", "made-up-two-vendors"];

#[test]
fn every_front_end_gets_flags_for_every_inventory() {
    let [program, ..] = tools::programs();
    let frontends = values(&program, "frontend");
    for (name, path) in inventories() {
        for frontend in &frontends {
            let outcome = on(&path, &["--all", "--verbose", "--frontend", frontend]);
            assert_eq!(outcome.code, Some(0), "{name}: {outcome}");
            if SHOWN.contains(&&*name) {
                insta::assert_snapshot!(format!("mounts_{name}_{frontend}"), outcome);
            }
        }
    }
}

#[test]
fn devices_are_selected_by_index_luid_or_path() {
    let host = inventory("aws-t4-two.yaml");
    let second = on(&host, &["--index", "1"]);
    assert_eq!(second.code, Some(0), "{second}");
    assert!(second.stdout.starts_with(r#""--device" "vpci-location-path://PCIROOT(0)#PCI(1C00)""#));
    assert_eq!(second.stdout.matches("--device").count(), 1);
    for choice in [["--luid", "7098126"], ["--path", "pciroot(0)#pci(1c00)"]] {
        assert_eq!(on(&host, &choice).stdout, second.stdout, "{choice:?}");
    }
    let both = on(&host, &["--index", "1", "--luid", "7048070", "--index", "1"]);
    assert_eq!(both.stdout, on(&host, &["--all"]).stdout);
    assert_eq!(both.stdout.matches("--device").count(), 2);
}

/// A path with `#` and `{}` stays one word of the command line.
#[test]
fn the_location_path_of_a_gpu_on_vmbus_is_quoted() {
    let host = inventory("made-up-dda-guest.yaml");
    let path = "ACPI(_SB_)#ACPI(VMOD)#ACPI(VMBS)#VMBUS({44C4F61D-4444-4400-9D52-802E27EDE19F}#\
                {0B4A8C1E-0002-0000-3130-444531454238})#VPCI(0)#PCI(0000)";
    let second = on(&host, &["--path", path]);
    assert_eq!(second.code, Some(0), "{second}");
    let device = format!(r#""--device" "vpci-location-path://{path}""#);
    assert!(second.stdout.starts_with(&device), "{second}");
    assert_eq!(on(&host, &["--index", "1"]).stdout, second.stdout);
    // Hyper-V's display keeps its index, and only its name selects it.
    let display = on(&host, &["--index", "2"]);
    assert_eq!((display.code, display.stdout.matches("#VMBUS({DA0A7802").count()), (Some(0), 1));
    assert!(display.stderr.contains("one of Microsoft's basic adapters"), "{display}");
    let all = on(&host, &["--all", "--verbose"]);
    assert_eq!(all.stdout.matches("vpci-location-path://").count(), 2, "{all}");
    assert!(all.stderr.contains("not a GPU; `--index 2` selects it"), "{all}");
}

#[test]
fn devices_are_selected_by_comma_separated_lists() {
    let host = inventory("aws-t4-two.yaml");
    let all = on(&host, &["--all"]).stdout;
    for selection in [
        &["--index", "0,1"][..],
        &["--index=1,0"],
        &["--luid", "7048070,7098126"],
        &["--path", "pciroot(0)#pci(1c00),PCIROOT(0)#PCI(1B00)"],
        &["--index", "0", "--luid=7098126"],
    ] {
        assert_eq!(on(&host, selection).stdout, all, "{selection:?}");
    }
    let negative = MadeUp::new(&HEALTHY.replace("luid: 3", "luid: -7"));
    let twice = on(&negative.path(), &["--luid", "-7,-7"]);
    assert_eq!(twice.code, Some(0), "{twice}");
    assert_eq!(on(&negative.path(), &["--luid=-7"]).stdout, twice.stdout);
    assert!(on(&host, &["--luid", "-7,7048070"]).stderr.contains("LUID -7"));
}

#[test]
fn a_wrong_value_in_a_list_is_named() {
    let host = inventory("aws-t4-two.yaml");
    for (selection, message) in [
        (
            ["--index", "0,x"],
            "invalid value 'x' for '--index <N>': expected the number of a device",
        ),
        (["--index", "0,"], "invalid value '' for '--index <N>': expected the number of a device"),
        (["--index", "-1"], "unexpected argument '-1' found"),
        (["--luid", "7048070,1e3"], "invalid value '1e3' for '--luid <N>': expected a LUID"),
        (["--luid", "--all"], "invalid value '--all' for '--luid <N>'"),
        (["--output", "yaml"], "invalid value 'yaml' for '--output <FORMAT>'"),
    ] {
        let outcome = on(&host, &selection);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""), "{outcome}");
        assert!(outcome.stderr.contains(message), "{outcome}");
    }
    let beyond = on(&host, &["--index", "0,2"]);
    assert_eq!(beyond.code, Some(1), "{beyond}");
    assert!(beyond.stderr.contains("index 2"), "{beyond}");
}

#[test]
fn flags_accept_boolean_values() {
    let host = inventory("aws-t4-two.yaml");
    let all = on(&host, &["--all"]);
    for same in [&["--all=true"][..], &["--all=1"], &["--all=T", "--run=false", "--verbose=false"]]
    {
        let outcome = on(&host, same);
        assert_eq!((&outcome.stdout, &outcome.stderr), (&all.stdout, &all.stderr), "{same:?}");
    }
    let first = on(&host, &["--index", "0"]).stdout;
    assert_eq!(on(&host, &["--all=false", "--index", "0"]).stdout, first);
    let none = on(&host, &["--all=false"]);
    assert_eq!((none.code, &none.stderr), (Some(2), &on(&host, &[]).stderr));
    let wrong = on(&host, &["--all=yes"]);
    assert_eq!(wrong.code, Some(2), "{wrong}");
    assert!(wrong.stderr.contains("invalid value 'yes' for '--all[=<BOOL>]'"), "{wrong}");
}

/// The original program printed byte values instead of text.
#[test]
fn json_is_an_array_of_strings() {
    let host = inventory("aws-t4-two.yaml");
    let outcome = on(&host, &["--index", "0", "--format", "json"]);
    // `--format` is the option of the original program.
    assert_eq!(on(&host, &["--index", "0", "--output", "json"]).stdout, outcome.stdout);
    let flags: Vec<String> = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(flags[..2], ["--device", "vpci-location-path://PCIROOT(0)#PCI(1B00)"]);
    let store =
        r"C:\Windows\System32\DriverStore\FileRepository\nvgridsw_aws.inf_amd64_1b50ef32b191cff1";
    let first = format!(
        r"src={store}\nvcudadebugger.dll,dst=C:\Windows\System32\nvcudadebugger.dll,options=ro"
    );
    assert_eq!(flags[2..4], ["--mount".to_owned(), first]);
    // 14 files from the registry, and 3 that are only in the folder.
    assert_eq!(flags.iter().filter(|flag| *flag == "--mount").count(), 17);
}

#[test]
fn runtime_mounts_decide_about_runtime_files() {
    let host = inventory("aws-t4-two.yaml");
    let count = |when| {
        let outcome = on(&host, &["--all", "--runtime-mounts", when]);
        outcome.stdout.matches("--mount").count()
    };
    assert_eq!(["auto", "always", "never", "extra"].map(count), [17, 17, 0, 3]);
    let newer = inventory("made-up-l4-2025.yaml");
    let server_2025 = on(&newer, &["--all", "--verbose"]);
    assert!(!server_2025.stdout.contains("--mount"), "{server_2025}");
    let reason = "not mounting runtime files of adapter 81234: runtimeMounts is auto and Windows";
    assert!(server_2025.stderr.contains(reason), "{server_2025}");
    let default = r"\nvidia-smi.exe: left out with the driver's files; `--runtime-mounts extra`";
    assert!(server_2025.stderr.contains(default), "{server_2025}");
    let extra = on(&newer, &["--all", "--runtime-mounts", "extra", "--verbose"]);
    assert_eq!(extra.stdout.matches("nvidia-smi.exe,dst=").count(), 1, "{extra}");
    assert!(!extra.stderr.contains("left out"), "{extra}");
}

#[test]
fn hints_set_variables_that_name_the_devices() {
    let host = inventory("aws-t4-two.yaml");
    let flags = on(&host, &["--all", "--hints"]).stdout;
    assert!(flags.contains(r#""--env" "DIRECTX_VISIBLE_DEVICES=7048070,7098126""#), "{flags}");
    // The plugin's variable of a resource: here, there is none.
    assert!(!flags.contains("DIRECTX_VISIBLE_DEVICES_"), "{flags}");
    assert!(!on(&host, &["--all"]).stdout.contains("--env"));
}

#[test]
fn a_selection_without_match_lists_the_devices() {
    let host = inventory("aws-t4-two.yaml");
    for (number, choice) in
        [["--index", "2"], ["--luid", "-7"], ["--path", "PCIROOT(9)"]].iter().enumerate()
    {
        insta::assert_snapshot!(format!("no_such_device_{number}"), on(&host, choice));
    }
    insta::assert_snapshot!("nothing_selected", on(&host, &[]));
    let empty = on(&MadeUp::new(" []").path(), &["--all"]);
    assert_eq!(empty.code, Some(1));
    assert_eq!(empty.stderr, "error: this host has no DirectX device\n");
}

const UNHEALTHY_AND_DISPLAY_ONLY: &str = "
- {luid: 1, attributes: [d3d12-graphics], hardware: true, hardwareId: {vendor: 1, device: 2},
   driverDescription: Unhealthy, pnp: {id: 'PCI\\A\\1', locationPaths: [A], problemCode: 43}}
- {luid: 2, attributes: [d3d11-graphics], hardware: true, hardwareId: {vendor: 1, device: 2},
   driverDescription: Screen, pnp: {id: 'PCI\\A\\2', locationPaths: [B]}}";
const HEALTHY: &str = "
- {luid: 3, attributes: [npu], hardware: true, integrated: true, detachable: true,
   hardwareId: {vendor: 1, device: 2}, driverDescription: Chip,
   pnp: {id: 'PCI\\A\\3', locationPaths: ['PCIROOT(0)#PCI(0300) & more']}}";

#[test]
fn devices_that_the_plugin_would_not_allocate_are_refused_or_skipped() {
    let unhealthy = MadeUp::new(UNHEALTHY_AND_DISPLAY_ONLY);
    insta::assert_snapshot!("unhealthy_by_index", on(&unhealthy.path(), &["--index", "0"]));
    insta::assert_snapshot!("unhealthy_all", on(&unhealthy.path(), &["--all"]));
    let some = MadeUp::new(&format!("{UNHEALTHY_AND_DISPLAY_ONLY}{HEALTHY}"));
    insta::assert_snapshot!("one_of_three", on(&some.path(), &["--all"]));
}

/// The plugin has no resource for such a device, but the user of this program asks for it.
#[test]
fn a_device_that_only_displays_is_given_by_name_with_a_warning() {
    let host = MadeUp::new(&format!("{UNHEALTHY_AND_DISPLAY_ONLY}{HEALTHY}"));
    let screen = on(&host.path(), &["--index", "1", "--verbose"]);
    insta::assert_snapshot!("display_only_by_index", screen);
    for name in [["--luid", "2"], ["--path", "b"]] {
        let outcome = on(&host.path(), &name);
        assert_eq!((outcome.code, &outcome.stdout), (Some(0), &screen.stdout), "{outcome}");
        assert!(outcome.stderr.starts_with("warning: the device plugin"), "{outcome}");
    }
    // It has its place in the host's list, and `--all` still leaves out the unhealthy device.
    let both = on(&host.path(), &["--all", "--luid", "2", "--hints"]);
    assert!(both.stdout.contains(r#""DIRECTX_VISIBLE_DEVICES=2,3""#), "{both}");
    assert_eq!(both.stdout.matches("vpci-location-path://").count(), 2, "{both}");
    let without_path = MadeUp::new(&UNHEALTHY_AND_DISPLAY_ONLY.replace(", locationPaths: [B]", ""));
    for choice in [&["--index", "1"][..], &["--all"]] {
        let outcome = on(&without_path.path(), choice);
        assert_eq!(outcome.code, Some(1), "{outcome}");
        assert!(outcome.stderr.contains("Windows reports no location path"), "{outcome}");
        assert!(!outcome.stderr.contains("selects it"), "{outcome}");
    }
    let unhealthy = UNHEALTHY_AND_DISPLAY_ONLY.replace("[B]", "[B], problemCode: 31");
    let unhealthy = on(&MadeUp::new(&unhealthy).path(), &["--index", "1"]);
    assert_eq!(unhealthy.code, Some(1), "{unhealthy}");
    assert!(unhealthy.stderr.starts_with("error: device 1 (Screen) is unhealthy"), "{unhealthy}");
}

/// Unlike the kubelet, these front ends give a container several device entries.
#[test]
fn several_compute_only_devices_need_no_class() {
    let second =
        HEALTHY.replace("luid: 3", "luid: 4").replace("0300", "0400").replace(r"A\3", r"A\4");
    let host = MadeUp::new(&format!("{HEALTHY}{second}"));
    let outcome = on(&host.path(), &["--all"]);
    assert_eq!(outcome.code, Some(0), "{outcome}");
    assert_eq!(outcome.stdout.matches("vpci-location-path://").count(), 2, "{outcome}");
}

#[test]
fn flags_that_cannot_be_quoted_for_both_shells_need_json() {
    let odd = HEALTHY.replace("& more", "%PATH%, \"more\"");
    let host = MadeUp::new(&odd);
    insta::assert_snapshot!("unquotable", on(&host.path(), &["--all"]));
    let json = on(&host.path(), &["--all", "--output", "json"]);
    let flags: Vec<String> = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(flags[1], r#"vpci-location-path://PCIROOT(0)#PCI(0300) %PATH%, "more""#);
}

#[test]
fn container_arguments_need_run_and_crictl_does_not_run() {
    let host = inventory("aws-t4-two.yaml");
    let unused = on(&host, &["--all"]).stdout;
    for container in [&["image", "name", "cmd"][..], &["image", "name", "--", "cmd", "--flag"]] {
        let outcome =
            mounts(&[&["--all", "--inventory", host.to_str().unwrap()], container].concat());
        assert_eq!((outcome.code, &outcome.stdout), (Some(0), &unused));
        assert!(
            outcome
                .stderr
                .starts_with("warning: image, name and command are ignored without `--run`"),
            "{outcome}"
        );
    }
    let crictl = on(&host, &["--all", "--run", "--frontend", "crictl"]);
    assert_eq!((crictl.code, crictl.stdout.as_str()), (Some(2), ""), "{crictl}");
}
