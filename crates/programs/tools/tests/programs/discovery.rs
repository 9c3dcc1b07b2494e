//! `test-device-discovery`.

use crate::fixtures::{MadeUp, folder, inventories, inventory};
use crate::outcome::{Outcome, TEST_DEVICE_DISCOVERY, program};

fn discover(arguments: &[&str]) -> Outcome {
    Outcome::of(&mut program(TEST_DEVICE_DISCOVERY, arguments))
}

#[test]
fn the_output_is_the_published_one() {
    let host = inventory("aws-t4-two.yaml");
    let outcome = discover(&["--inventory", host.to_str().unwrap()]);
    let file = folder().join("expected/test-device-discovery.txt");
    let published = std::fs::read_to_string(file).unwrap();
    assert_eq!(outcome.stdout, published);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""));
}

/// Other hosts differ only in their devices. The crate `devices` decides about those.
#[test]
fn every_recorded_host_is_listed_and_two_show_the_layout_with_what_is_left_out() {
    for (name, path) in inventories() {
        let outcome = discover(&["--verbose", "--inventory", path.to_str().unwrap()]);
        assert_eq!(outcome.code, Some(0), "{name}: {outcome}");
        if ["made-up-npu-beside-gpu", "made-up-two-vendors"].contains(&&*name) {
            insta::assert_snapshot!(format!("discovery_{name}"), outcome);
        }
    }
}

#[test]
fn filters_leave_devices_out() {
    let host = inventory("azure-m60.yaml");
    let count = |arguments: &[&str]| {
        let outcome = discover(&[arguments, &["--inventory", host.to_str().unwrap()]].concat());
        assert_eq!(outcome.code, Some(0), "{outcome}");
        outcome.stdout.lines().nth(1).unwrap().to_owned()
    };
    assert_eq!(count(&[]), "Discovered 2 devices.");
    assert_eq!(count(&["--filter", "compute"]), "Discovered 1 devices.");
    assert_eq!(count(&["--filter", "DISPLAY-ONLY"]), "Discovered 1 devices.");
    assert_eq!(count(&["--filter", "compute-only"]), "Discovered 0 devices.");
    let built_in = MadeUp::new(
        "\n- {luid: 1, attributes: [d3d12-graphics], hardware: true, integrated: true, \
         detachable: true, hardwareId: {vendor: 1, device: 2}, pnp: {id: 'PCI\\A\\1'}}",
    );
    for (flag, devices) in
        [("--verbose", 1), ("--exclude-integrated", 0), ("--exclude-detachable", 0)]
    {
        let outcome = discover(&[flag, "--inventory", built_in.path().to_str().unwrap()]);
        let line = format!("Discovered {devices} devices.");
        assert_eq!(outcome.stdout.lines().nth(1), Some(line.as_str()), "{flag}");
    }
}

/// A compute-only device used to be listed without compute, and one `REG_SZ` value
/// used to hide its neighbors.
#[test]
fn compute_only_devices_and_odd_registry_values_are_told_truly() {
    let host = MadeUp::new(
        "\n- luid: -5\n  attributes: [d3d12-core-compute]\n  hardware: true\n  \
         hardwareId: {vendor: 0x8086, device: 1}\n  \
         pnp: {id: 'PCI\\NPU\\1', description: NPU, manufacturer: Intel Corporation}\n  \
         driverStore:\n    path: 'C:\\Windows\\System32\\DriverStore\\FileRepository\\x'\n    copyToVm:\n      CopyToVmOverwrite:\n        \
         a: one.dll\n        b: ['..\\evil.dll']\n        c: [sub\\three.dll, 3.dll]",
    );
    let outcome = discover(&["--verbose", "--inventory", host.path().to_str().unwrap()]);
    insta::assert_snapshot!("compute_only", outcome);
}

#[test]
fn bad_input_is_told_with_file_line_and_advice() {
    let outcome = discover(&["--inventory", "no-such-file.yaml"]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""));
    assert!(outcome.stderr.starts_with("error: cannot read the inventory `no-such-file.yaml`"));
    let host = MadeUp::new("\n- {luid: 1, attribute: []}");
    let outcome = discover(&["--inventory", host.path().to_str().unwrap()]);
    assert_eq!(outcome.code, Some(2), "{outcome}");
    assert!(outcome.stderr.contains("host.yaml:3"), "{outcome}");
    let outcome = discover(&["--filter", "gpu"]);
    assert_eq!(outcome.code, Some(2), "{outcome}");
    assert!(outcome.stderr.contains("`gpu` is not a filter"), "{outcome}");
}

#[cfg(not(windows))]
#[test]
fn elsewhere_than_on_windows_an_inventory_is_needed() {
    insta::assert_snapshot!("discovery_elsewhere", discover(&[]));
}
