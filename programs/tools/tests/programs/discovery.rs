//! `test-device-discovery`.

use crate::fixtures::{MadeUp, folder, inventories, inventory};
use crate::outcome::{Outcome, TEST_DEVICE_DISCOVERY, program};

fn discover(arguments: &[&str]) -> Outcome {
    Outcome::of(&mut program(TEST_DEVICE_DISCOVERY, arguments))
}

#[test]
fn output_equals_the_published_output_except_for_the_version() {
    let host = inventory("aws-t4-two.yaml");
    let outcome = discover(&["--inventory", host.to_str().unwrap()]);
    let published = folder().join("expected/test-device-discovery.txt");
    let published = std::fs::read_to_string(published).unwrap();
    let (first, rest) = published.split_once('\n').unwrap();
    assert_eq!(first, "DirectX device discovery library version 0.0.1");
    let version = env!("CARGO_PKG_VERSION");
    let expected = format!("DirectX device discovery library version {version}\n{rest}");
    assert_eq!(outcome.stdout, expected);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""));
}

#[test]
fn every_inventory_is_listed_with_skipped_adapters() {
    for (name, path) in inventories() {
        let outcome = discover(&["--verbose", "--inventory", path.to_str().unwrap()]);
        insta::assert_snapshot!(format!("discovery_{name}"), outcome.without_version());
    }
}

#[test]
fn filters_skip_devices() {
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

/// The original program listed a compute-only device without compute, and one `REG_SZ`
/// value hid the other values of its key.
#[test]
fn compute_only_devices_and_odd_registry_values_are_listed() {
    let host = MadeUp::new(
        "\n- luid: -5\n  attributes: [d3d12-core-compute]\n  hardware: true\n  \
         hardwareId: {vendor: 0x8086, device: 1}\n  \
         pnp: {id: 'PCI\\NPU\\1', description: NPU, manufacturer: Intel Corporation}\n  \
         driverStore:\n    path: 'C:\\store'\n    copyToVm:\n      CopyToVmOverwrite:\n        \
         a: one.dll\n        b: ['..\\evil.dll']\n        c: [sub\\three.dll, 3.dll]",
    );
    let outcome = discover(&["--verbose", "--inventory", host.path().to_str().unwrap()]);
    insta::assert_snapshot!("compute_only", outcome.without_version());
}

#[test]
fn errors_name_the_file_and_line() {
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

/// The original Go program parsed its options with Go's package `flag`.
#[test]
fn long_options_take_one_dash_or_two() {
    let host = inventory("made-up-npu-beside-gpu.yaml");
    let host = host.to_str().unwrap();
    let verbose = discover(&["--verbose", "--inventory", host]);
    assert!(!verbose.stderr.is_empty());
    for same in [
        &["-verbose", "-inventory", host][..],
        &["-verbose=true", "--inventory", host],
        &["-v", "-inventory", host],
    ] {
        let outcome = discover(same);
        assert_eq!((&outcome.stdout, &outcome.stderr), (&verbose.stdout, &verbose.stderr));
    }
    assert_eq!(discover(&["-verbose=false", "-inventory", host]).stderr, "");
    let equals = format!("-inventory={host}");
    let display = discover(&["--filter", "display", "--inventory", host]).stdout;
    assert_eq!(discover(&["-filter=display", &equals]).stdout, display);
    assert_ne!(display, verbose.stdout);
    for help in ["-h", "-help", "--help"] {
        let outcome = discover(&[help]);
        assert_eq!(outcome.code, Some(0), "{outcome}");
        assert!(outcome.stdout.contains("Usage: test-device-discovery"), "{outcome}");
    }
    let wrong = discover(&["-verbose=maybe", "-inventory", host]);
    assert_eq!((wrong.code, wrong.stdout.as_str()), (Some(2), ""), "{wrong}");
    assert!(wrong.stderr.contains("invalid value 'maybe'"), "{wrong}");
    let unknown = discover(&["-nonsense"]);
    assert_eq!(unknown.code, Some(2), "{unknown}");
}

#[cfg(not(windows))]
#[test]
fn other_systems_need_an_inventory() {
    insta::assert_snapshot!("discovery_other_system", discover(&[]));
}
