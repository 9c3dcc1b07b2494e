//! Hosts that no inventory can describe: older ones, faulty ones, and ones that change between two
//! calls.

use std::fs;
use std::process::Command;

use super::compare::{compare, without_notes};
use super::host::Host;
use super::inventories::check_host;
use super::output::{native, output, stdout, text};
use super::paths::{fixture, windows_path};

const T4: &str = "aws-t4-two";
const FIRST_T4: &str = "7048070";
const SECOND_T4: &str = "7098126";
const FIRST_T4_ID: &str = r"PCI\VEN_10DE&DEV_1EB8&SUBSYS_12A210DE&REV_A1\3&13C0B0C5&1&D8";

/// `DEVPROP_TYPE_BINARY` and `DEVPROP_TYPE_STRING_INDIRECT` (devpropdef.h).
const BINARY: &str = "4099";
const STRING_INDIRECT: &str = "25";

const JSON: [&str; 3] = ["devices", "--output", "json"];
const PLUGIN: &str = "directx-device-plugin";

#[track_caller]
fn compare_without_notes(expected: &str, found: &str) {
    compare("host", &without_notes(expected), &without_notes(found));
}

/// Windows Server 2019: the graphics kernel lists the adapters. Wine's lists those of the devices,
/// but does not report their kinds. What is recorded reads back as the same devices.
#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn no_dxcore() {
    let host = Host::of(&fixture(T4));
    host.install(&[]);
    let found = stdout(&mut host.plugin(&JSON));
    assert!(found.contains(FIRST_T4) && found.contains(SECOND_T4), "{found}");
    let inventory =
        host.write("recorded-without-dxcore.yaml", stdout(&mut host.plugin(&["record"])));
    let expected = stdout(&mut native(PLUGIN, &JSON, &inventory));
    compare_without_notes(devices(&expected), devices(&found));
}

/// The part of the JSON text before the skipped adapters.
fn devices(text: &str) -> &str {
    text.split("\"skipped\"").next().unwrap_or_default()
}

/// The registry of a container says that it is one. Then no runtime files are known, and what is
/// recorded says why.
#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn inside_a_container() {
    let text = fs::read_to_string(fixture(T4)).unwrap();
    let text = text.replacen("host:\n", "host:\n  container: true\n", 1);
    let host = Host::take();
    let inventory = host.write("container.yaml", text);
    host.set(&inventory);
    check_host(&host, &JSON, &inventory);
    let recorded = stdout(&mut host.plugin(&["record"]));
    assert!(recorded.contains("  container: true") && !recorded.contains("CopyToVm"), "{recorded}");
}

/// Without `vmcompute.dll` only the HCS schemas are missing.
#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn no_compute_service() {
    let host = Host::of(&fixture(T4));
    let expected = stdout(&mut native(PLUGIN, &["record"], &fixture(T4)));
    host.install(&["dxcore.dll"]);
    let without_schemas = |text: &str| {
        let lines = text.lines().filter(|line| !line.trim_start().starts_with("hcsSchemas:"));
        lines.collect::<Vec<_>>().join("\n")
    };
    let found = stdout(&mut host.plugin(&["record"]));
    compare_without_notes(&without_schemas(&expected), &without_schemas(&found));
}

/// A host older than the newer attributes lists adapters under those it knows.
#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn newer_attributes_are_ignored() {
    let inventory = fixture("generated/npu-beside-gpu");
    let host = Host::of(&inventory);
    let mut expected = stdout(&mut native(PLUGIN, &["record"], &inventory));
    for newer in [
        ", d3d12-generic-ml",
        ", d3d12-generic-media",
        ", gpu",
        ", compute-accelerator",
        ", media-accelerator",
    ] {
        expected = expected.replace(newer, "");
    }
    // The neural processor, which is the last adapter, has only newer attributes.
    expected.truncate(expected.find("- luid: 90002").unwrap());
    let mut record = host.plugin(&["record"]);
    let found = stdout(record.env("DXCORE_DOUBLE_NEWER_ATTRIBUTES", "ignored"));
    compare_without_notes(&expected, &found);
}

/// If one of two adapters was removed or is being updated, the other one is listed and a reason is
/// printed.
#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn an_adapter_that_fails_is_skipped() {
    let host = Host::of(&fixture(T4));
    for fault in ["DXCORE_DOUBLE_GONE", "DXCORE_DOUBLE_UPDATING"] {
        let found = stdout(host.plugin(&JSON).env(fault, FIRST_T4));
        let (devices, skipped) = found.split_once("\"skipped\"").unwrap_or((&found, ""));
        assert!(!devices.contains(FIRST_T4) && devices.contains(SECOND_T4), "{fault}: {found}");
        assert!(skipped.contains(FIRST_T4) && skipped.contains("reason"), "{fault}: {found}");
    }
}

/// Whether `devices` advertises both devices as healthy, and that the second one is not affected.
#[track_caller]
fn advertises_both(command: &mut Command, fault: &str) -> bool {
    let result = output(command);
    let [found, log] = [&result.stdout, &result.stderr].map(|bytes| text(bytes));
    let devices = devices(&found);
    assert!(result.status.success() && devices.contains(SECOND_T4), "{fault}: {found}{log}");
    let healthy = devices.matches("\"healthy\": true").count();
    assert_eq!(devices.matches("\"notAdvertised\": null").count(), healthy, "{fault}: {found}");
    if healthy == 2 {
        assert!(log.contains(&format!("cannot read {fault}:")), "{fault}: {log}");
    }
    healthy == 2
}

/// Only the LUID of an adapter is required.
#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn an_adapter_is_advertised_without_each_property_that_is_not_required() {
    let host = Host::take();
    let recorded = fs::read_to_string(fixture(T4)).unwrap();
    let hardware = "  hardware: true\n";
    let with_version = recorded.replace(hardware, &format!("{hardware}  driverVersion: 1.2.3.4\n"));
    host.set(&host.write("with-version.yaml", with_version));
    for property in [
        "InstanceLuid",
        "DriverVersion",
        "DriverDescription",
        "HardwareID",
        "DedicatedAdapterMemory",
        "IsHardware",
        "IsIntegrated",
        "IsDetachable",
    ] {
        let failing = format!("{FIRST_T4}:{property}");
        let command = &mut host.plugin(&JSON);
        let is_advertised =
            advertises_both(command.env("DXCORE_DOUBLE_FAILING", failing), property);
        assert_eq!(is_advertised, property != "InstanceLuid", "{property}");
    }
}

/// Whether a device is advertised if one of its properties has an unexpected type.
#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn a_device_is_advertised_without_each_property_that_is_not_required() {
    let host = Host::take();
    for (property, is_required) in [
        ("Gpu_Luid", true),
        ("Gpu_PhysicalAdapterIndex", false),
        ("FriendlyName", false),
        ("DeviceDesc", false),
        ("Manufacturer", false),
        ("Driver", true),
        ("DriverDate", false),
        ("LocationPaths", true),
        ("Numa_Node", false),
        ("ProblemCode", true),
    ] {
        host.set(&fixture(T4));
        host.bed(&["put-property", FIRST_T4_ID, property, BINARY, "?"]);
        let is_advertised = advertises_both(&mut host.plugin(&JSON), property);
        assert_eq!(is_advertised, !is_required, "{property}");
    }
}

/// Windows returns the name of a device so if it cannot find the translation.
#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn a_name_without_its_translation_is_that_of_the_inf_file() {
    let host = Host::of(&fixture(T4));
    let indirect = "@oem7.inf,%nvidia_dev.1eb8%;NVIDIA Tesla T4";
    host.bed(&["put-property", FIRST_T4_ID, "DeviceDesc", STRING_INDIRECT, indirect]);
    check_host(&host, &JSON, &fixture(T4));
}

/// If a device names a driver key that does not exist, a reason is printed and the other device
/// does not change.
#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn missing_driver_key() {
    let host = Host::of(&fixture(T4));
    let before = stdout(&mut host.plugin(&JSON));
    host.bed(&["remove-driver-key", r"{4d36e968-e325-11ce-bfc1-08002be10318}\0004"]);
    let result = output(&mut host.plugin(&JSON));
    let found = text(&result.stdout);
    let log = text(&result.stderr);
    assert!(result.status.success() && (found.clone() + &log).contains("0004"), "{found}{log}");
    let second = |text: &str| Some(devices(&text[text.find(SECOND_T4)?..]).to_owned());
    assert_eq!(second(&before), second(&found), "the other device changed");
}

/// A value of the wrong type is reported, and the values around it are read.
#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn one_value_of_the_wrong_type() {
    let host = Host::of(&fixture(T4));
    let key = r"{4d36e968-e325-11ce-bfc1-08002be10318}\0004\CopyToVmWhenNewer";
    host.bed(&["put-dword", key, "02b"]);
    let result = output(&mut host.plugin(&["record"]));
    assert!(text(&result.stderr).contains("`02b`"), "{}", text(&result.stderr));
    let expected = stdout(&mut native(PLUGIN, &["record"], &fixture(T4)));
    compare_without_notes(&expected, &text(&result.stdout));
}

/// An inventory that `record` writes under Wine can be used, and `simulate` predicts the same.
#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn recorded_inventories_can_be_used() {
    let host = Host::of(&fixture(T4));
    let recorded = stdout(&mut host.plugin(&["record"]));
    assert!(recorded.contains("\n  hypervisor: "), "{recorded}");
    let inventory = host.write("recorded.yaml", recorded);
    check_host(&host, &JSON, &inventory);
    let arguments = ["simulate", "--output", "json"];
    let path = windows_path(&fixture(T4));
    let found = stdout(host.plugin(&arguments).args(["--inventory", &path]));
    compare("simulate", &stdout(&mut native(PLUGIN, &arguments, &fixture(T4))), &found);
}
